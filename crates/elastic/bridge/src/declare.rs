//! What the bridge declares by itself: durable queues, and their bindings. Whatever is there already is
//! used as it is.

use quelea_broker::error::ResourceError;
use quelea_broker::{BindingError, ChannelId, DeclareQueue, DeclareQueueError, QueueBinding};
use quelea_node::Core;
use quelea_store::Ticket;

/// Makes the durable queue if there is none of that name; what arguments one has is left to who made it.
/// It is safe when the store has reached the ticket.
pub(crate) fn durable_queue(
    core: &mut Core,
    channel: ChannelId,
    queue: &str,
) -> Result<Ticket, DeclareQueueError> {
    let now = core.now();
    let name = queue.to_owned();
    let passive = DeclareQueue { name, passive: true, ..DeclareQueue::default() };
    match core.broker.declare_queue(now, channel, &passive) {
        Err(DeclareQueueError::Resource(ResourceError::NoSuchQueue(_))) => {}
        declared => return declared.map(|declared| declared.ticket),
    }
    let durable = DeclareQueue { passive: false, durable: true, ..passive };
    core.broker.declare_queue(now, channel, &durable).map(|declared| declared.ticket)
}

/// Binds the queue by all the keys. Bindings that are there stay, those by other keys too.
pub(crate) fn bindings(
    core: &mut Core,
    channel: ChannelId,
    queue: &str,
    exchange: &str,
    keys: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Ticket, BindingError> {
    let now = core.now();
    let mut ticket = Ticket::NONE;
    for key in keys {
        let binding = QueueBinding {
            queue: queue.to_owned(),
            exchange: exchange.to_owned(),
            routing_key: key.as_ref().to_owned(),
            ..QueueBinding::default()
        };
        ticket = ticket.join(core.broker.bind_queue(now, channel, &binding)?);
    }
    Ok(ticket)
}

//! What is done on the core's thread for one message of an elastic queue.

use quelea_broker::{ChannelId, DeclareQueueError, Publish, PublishError};
use quelea_node::Core;
use quelea_store::Ticket;

use crate::declare::NameChecked as _;
use crate::message::Outgoing;

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishRefusal {
    /// It goes away by itself, or when somebody makes room.
    #[error("the broker takes no messages for now")]
    Busy,
    #[error("a queue is full and refuses")]
    Full,
    /// It goes away when somebody declares or binds.
    #[error("no queue for key '{routing_key}' of exchange '{exchange}'")]
    Unroutable { exchange: String, routing_key: String },
    /// It never goes away.
    #[error("a body of {value} bytes is more than the limit of {limit} (limits.message_bytes_max)")]
    TooLarge { value: usize, limit: usize },
    /// There is no durable queue, and none can be made.
    #[error(transparent)]
    Declare(#[from] DeclareQueueError),
    /// It does not go away by itself.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl PublishRefusal {
    /// Returns whether another attempt may go better.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Busy | Self::Full => true,
            Self::Declare(error) => error.is_name_being_checked(),
            Self::Unroutable { .. } | Self::TooLarge { .. } | Self::Publish(_) => false,
        }
    }
}

/// Publishes it. It is safe when the store has reached the ticket.
pub(crate) fn publish(
    core: &mut Core,
    channel: ChannelId,
    exchange: &str,
    routing_key: &str,
    message: &Outgoing,
) -> Result<Ticket, PublishRefusal> {
    let publish = Publish {
        exchange,
        routing_key,
        properties: &message.properties,
        body: message.body.clone(),
        mandatory: false,
        confirm: true,
    };
    let now = core.now();
    let published = core.broker.publish(now, channel, publish)?;
    if !published.routed {
        let (exchange, routing_key) = (exchange.to_owned(), routing_key.to_owned());
        return Err(PublishRefusal::Unroutable { exchange, routing_key });
    }
    if published.rejected {
        return Err(PublishRefusal::Full);
    }
    Ok(published.ticket)
}

//! Class `tx` on one channel: what is published and acknowledged is kept until tx.commit hands it
//! to the broker, between `begin_atomic` and `end_atomic`, so that the log keeps all or nothing.

use quelea_amqp_codec::method::tx;
use quelea_broker::{ChannelId, Publish};
use quelea_model::Message;

use crate::channel::{Channel, Mode};
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::publish::{is_returned, send_return};
use crate::reply::Reply;
use crate::transaction::{DeferredOperation, Transaction};

/// tx.commit: all operations or none. What may have come in between (the exchange is gone, the queue
/// is full) is found before anything is done. In RabbitMQ's order: first what was published, then
/// what was acknowledged.
pub(crate) fn commit(
    context: &mut MethodContext<'_>,
    number: u16,
    channel: &mut Channel,
) -> Result<Reply, Failure> {
    let id = channel.id;
    let operations = open_transaction(channel)?.take(context.transactions);
    let messages = operations.iter().filter_map(DeferredOperation::message);
    context.broker.check_commit(context.now, id, messages)?;
    let mut complete = true;
    context.broker.release_held(id);
    context.broker.begin_atomic();
    let (publishes, settlements): (Vec<_>, Vec<_>) =
        operations.into_iter().partition(|operation| operation.message().is_some());
    for operation in publishes.into_iter().chain(settlements) {
        complete &= carry_out(context, number, id, operation);
    }
    let ticket = context.broker.end_atomic();
    debug_assert!(complete, "all was checked");
    if complete {
        Ok(Reply::promise(false, ticket, tx::CommitOk {}))
    } else {
        Err(Failure::precondition("partial tx completion"))
    }
}

/// tx.rollback: publishes are forgotten, what was acknowledged is unacknowledged again.
pub(crate) fn rollback(
    context: &mut MethodContext<'_>,
    channel: &mut Channel,
) -> Result<Reply, Failure> {
    drop(open_transaction(channel)?.take(context.transactions));
    context.broker.release_held(channel.id);
    Ok(Reply::Now(tx::RollbackOk {}.into()))
}

fn open_transaction(channel: &mut Channel) -> Result<&mut Transaction, Failure> {
    match &mut channel.mode {
        Mode::Transactional(transaction) => Ok(transaction),
        Mode::Plain | Mode::Confirm(_) => {
            Err(Failure::precondition("channel is not transactional"))
        }
    }
}

/// Whether it succeeded.
fn carry_out(
    context: &mut MethodContext<'_>,
    number: u16,
    id: ChannelId,
    operation: DeferredOperation,
) -> bool {
    match operation {
        DeferredOperation::Publish { message, mandatory } => {
            publish(context, number, id, &message, mandatory)
        }
        DeferredOperation::Ack { delivery_tag, multiple } => {
            context.broker.ack(context.now, id, delivery_tag, multiple).is_ok()
        }
        DeferredOperation::Nack { delivery_tag, multiple, requeue } => {
            context.broker.nack(context.now, id, delivery_tag, multiple, requeue).is_ok()
        }
    }
}

fn publish(
    context: &mut MethodContext<'_>,
    number: u16,
    id: ChannelId,
    message: &Message,
    mandatory: bool,
) -> bool {
    let (exchange, routing_key) = (message.exchange(), message.routing_key());
    let (properties, body) = (message.properties(), message.body_bytes());
    let publish = Publish { exchange, routing_key, properties, body, mandatory, confirm: true };
    let Ok(published) = context.broker.publish(context.now, id, publish) else {
        return false;
    };
    if mandatory && is_returned(published) {
        send_return(context, number, exchange, routing_key, properties, message.body_bytes());
    }
    !published.rejected
}

//! Class `tx` on one channel: what is published and acknowledged is kept until tx.commit hands it
//! to the broker, between `begin_atomic` and `end_atomic`, so that the log keeps all or nothing.

use std::collections::VecDeque;

use quelea_amqp_codec::method::tx;
use quelea_broker::error::CommitError;
use quelea_broker::{ChannelId, Publish, PublishRoute};
use quelea_model::Message;

use crate::channel::{Channel, Mode};
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::publish::{is_returned, send_return};
use crate::reply::Reply;
use crate::transaction::{DeferredOperation, Transaction};

/// Carries out tx.commit: all operations or none. What may have come in between (the exchange is
/// gone, the queue is full) is found before anything is done. In RabbitMQ's order: first what was
/// published, then what was acknowledged.
///
/// Where the messages go is found over as many turns as that takes; then all is done in one.
pub(crate) fn commit(
    context: &mut MethodContext<'_>,
    number: u16,
    channel: &mut Channel,
) -> Result<Reply, Failure> {
    let id = channel.id;
    let transaction = open_transaction(channel)?;
    if !find_routes(context, id, transaction)? {
        return Ok(Reply::Unfinished);
    }
    let mut routes = transaction.take_routes();
    let operations = transaction.take(context.transactions);
    let messages = operations.iter().filter_map(DeferredOperation::message);
    let found = routes.iter().map(Some).chain(std::iter::repeat(None));
    context.broker.check_commit(context.now, id, messages.zip(found))?;
    let mut complete = true;
    context.broker.release_held(id);
    context.broker.begin_atomic();
    let (publishes, settlements): (Vec<_>, Vec<_>) =
        operations.into_iter().partition(|operation| operation.message().is_some());
    for operation in publishes.into_iter().chain(settlements) {
        complete &= carry_out(context, number, id, operation, &mut routes);
    }
    let ticket = context.broker.end_atomic();
    debug_assert!(complete, "all was checked");
    if complete {
        Ok(Reply::promise(false, ticket, tx::CommitOk {}))
    } else {
        Err(Failure::precondition("partial tx completion"))
    }
}

/// Finds where the messages go, and what is wrong with them. False: this turn's steps are used up.
fn find_routes(
    context: &mut MethodContext<'_>,
    id: ChannelId,
    transaction: &mut Transaction,
) -> Result<bool, Failure> {
    while context.broker.work_done() < context.steps_end {
        let Some(message) = transaction.next_message() else { return Ok(true) };
        let (exchange, key) = (message.exchange(), message.routing_key());
        let checked = context.broker.check_publish(id, exchange, key, message.properties());
        transaction.remember(checked.map_err(CommitError::from)?);
    }
    Ok(false)
}

/// Carries out tx.rollback: publishes are forgotten, what was acknowledged is unacknowledged again.
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

/// Carries out an operation. Returns whether it succeeded.
fn carry_out(
    context: &mut MethodContext<'_>,
    number: u16,
    id: ChannelId,
    operation: DeferredOperation,
    routes: &mut VecDeque<PublishRoute>,
) -> bool {
    match operation {
        DeferredOperation::Publish { message, mandatory } => {
            publish(context, number, id, (&message, mandatory), routes.pop_front())
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
    (message, mandatory): (&Message, bool),
    route: Option<PublishRoute>,
) -> bool {
    let (exchange, routing_key) = (message.exchange(), message.routing_key());
    let (properties, body) = (message.properties(), message.body_bytes());
    let publish = Publish { exchange, routing_key, properties, body, mandatory, confirm: true };
    let published = match route {
        Some(route) => context.broker.publish_routed(context.now, id, publish, route),
        None => context.broker.publish(context.now, id, publish),
    };
    let Ok(published) = published else { return false };
    if mandatory && is_returned(published) {
        send_return(context, number, exchange, routing_key, properties, message.body_bytes());
    }
    !published.rejected
}

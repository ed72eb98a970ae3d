//! Class `queue`: declare, bind, unbind, purge, delete.

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::queue;
use quelea_broker::{DeclareQueue, QueueBinding};

use crate::channel::Channel;
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::names::without_line_ends;
use crate::reply::Reply;

pub(crate) fn declare(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: queue::Declare,
) -> Result<Reply, Failure> {
    let request = DeclareQueue {
        name: without_line_ends(&method.queue),
        passive: method.passive,
        durable: method.durable,
        exclusive: method.exclusive,
        auto_delete: method.auto_delete,
        arguments: method.arguments,
        is_imported: false,
    };
    context.broker.check_queue_name(channel.id, &request)?;
    let declared = context.broker.declare_queue(context.now, channel.id, &request)?;
    let answer = queue::DeclareOk {
        queue: ShortStr::from(declared.name.as_str()),
        message_count: declared.messages,
        consumer_count: declared.consumers,
    };
    Ok(Reply::promise(method.no_wait, declared.ticket, answer))
}

pub(crate) fn bind(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: queue::Bind,
) -> Result<Reply, Failure> {
    let binding = QueueBinding {
        queue: without_line_ends(&method.queue),
        exchange: without_line_ends(&method.exchange),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = context.broker.bind_queue(context.now, channel.id, &binding)?;
    Ok(Reply::promise(method.no_wait, ticket, queue::BindOk {}))
}

pub(crate) fn unbind(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: queue::Unbind,
) -> Result<Reply, Failure> {
    let binding = QueueBinding {
        queue: without_line_ends(&method.queue),
        exchange: without_line_ends(&method.exchange),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = context.broker.unbind_queue(context.now, channel.id, &binding)?;
    Ok(Reply::promise(false, ticket, queue::UnbindOk {}))
}

pub(crate) fn purge(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &queue::Purge,
) -> Result<Reply, Failure> {
    let purged = context.broker.purge_queue(context.now, channel.id, &method.queue)?;
    let answer = queue::PurgeOk { message_count: purged.messages };
    Ok(Reply::promise(method.no_wait, purged.ticket, answer))
}

pub(crate) fn delete(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &queue::Delete,
) -> Result<Reply, Failure> {
    let deleted = context.broker.delete_queue(
        context.now,
        channel.id,
        &without_line_ends(&method.queue),
        method.if_unused,
        method.if_empty,
    )?;
    let answer = queue::DeleteOk { message_count: deleted.messages };
    Ok(Reply::promise(method.no_wait, deleted.ticket, answer))
}

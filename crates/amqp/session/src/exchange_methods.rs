//! Class `exchange`: declare, delete, and RabbitMQ's bind and unbind between exchanges.

use quelea_amqp_codec::method::exchange;
use quelea_broker::{DeclareExchange, ExchangeBinding};

use crate::channel::Channel;
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::names::without_line_ends;
use crate::reply::Reply;

pub(crate) fn declare(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: exchange::Declare,
) -> Result<Reply, Failure> {
    let request = DeclareExchange {
        name: without_line_ends(&method.exchange),
        kind: method.kind.to_string(),
        passive: method.passive,
        durable: method.durable,
        auto_delete: method.auto_delete,
        internal: method.internal,
        arguments: method.arguments,
    };
    let ticket = context.broker.declare_exchange(context.now, channel.id, &request)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::DeclareOk {}))
}

pub(crate) fn delete(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &exchange::Delete,
) -> Result<Reply, Failure> {
    let ticket = context.broker.delete_exchange(
        context.now,
        channel.id,
        &without_line_ends(&method.exchange),
        method.if_unused,
    )?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::DeleteOk {}))
}

pub(crate) fn bind(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: exchange::Bind,
) -> Result<Reply, Failure> {
    let binding = ExchangeBinding {
        destination: without_line_ends(&method.destination),
        source: without_line_ends(&method.source),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = context.broker.bind_exchange(context.now, channel.id, &binding)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::BindOk {}))
}

pub(crate) fn unbind(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: exchange::Unbind,
) -> Result<Reply, Failure> {
    let binding = ExchangeBinding {
        destination: without_line_ends(&method.destination),
        source: without_line_ends(&method.source),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = context.broker.unbind_exchange(context.now, channel.id, &binding)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::UnbindOk {}))
}

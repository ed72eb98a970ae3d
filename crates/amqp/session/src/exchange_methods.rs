//! Class `exchange`: declare, delete, and RabbitMQ's bind and unbind between exchanges.

use quelea_amqp_codec::method::exchange;
use quelea_broker::{DeclareExchange, ExchangeBinding};

use crate::channel::Channel;
use crate::errors::Failure;
use crate::reply::Reply;
use crate::turn::Turn;

pub(crate) fn declare(
    turn: &mut Turn<'_>,
    channel: &Channel,
    method: exchange::Declare,
) -> Result<Reply, Failure> {
    let request = DeclareExchange {
        name: method.exchange.to_string(),
        kind: method.kind.to_string(),
        passive: method.passive,
        durable: method.durable,
        auto_delete: method.auto_delete,
        internal: method.internal,
        arguments: method.arguments,
    };
    let ticket = turn.broker.declare_exchange(turn.now, channel.id, &request)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::DeclareOk {}))
}

pub(crate) fn delete(
    turn: &mut Turn<'_>,
    channel: &Channel,
    method: &exchange::Delete,
) -> Result<Reply, Failure> {
    let ticket =
        turn.broker.delete_exchange(turn.now, channel.id, &method.exchange, method.if_unused)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::DeleteOk {}))
}

pub(crate) fn bind(
    turn: &mut Turn<'_>,
    channel: &Channel,
    method: exchange::Bind,
) -> Result<Reply, Failure> {
    let binding = ExchangeBinding {
        destination: method.destination.to_string(),
        source: method.source.to_string(),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = turn.broker.bind_exchange(turn.now, channel.id, &binding)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::BindOk {}))
}

pub(crate) fn unbind(
    turn: &mut Turn<'_>,
    channel: &Channel,
    method: exchange::Unbind,
) -> Result<Reply, Failure> {
    let binding = ExchangeBinding {
        destination: method.destination.to_string(),
        source: method.source.to_string(),
        routing_key: method.routing_key.to_string(),
        arguments: method.arguments,
    };
    let ticket = turn.broker.unbind_exchange(turn.now, channel.id, &binding)?;
    Ok(Reply::promise(method.no_wait, ticket, exchange::UnbindOk {}))
}

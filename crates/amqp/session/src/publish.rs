//! basic.publish: to the broker at once, or into the channel's transaction; basic.return.

use std::borrow::Cow;

use bytes::Bytes;
use quelea_amqp_codec::method::basic;
use quelea_amqp_codec::{ReplyCode, ShortStr};
use quelea_broker::{Publish, Published};
use quelea_model::{Message, without_bcc};

use crate::channel::{Channel, Mode};
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::transaction::{DeferredOperation, Transaction};

/// A publish as it came: the method, wire-shaped properties, the body.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) publish: basic::Publish,
    pub(crate) properties: Bytes,
    pub(crate) body: Bytes,
}

/// Publishes, and returns what nobody takes if it is mandatory. The confirm comes later, so that
/// basic.return is before it.
pub(crate) fn publish(
    context: &mut MethodContext<'_>,
    number: u16,
    channel: &mut Channel,
    content: Content,
) -> Result<(), Failure> {
    let Content { publish, properties, body } = content;
    if publish.immediate {
        return Err(Failure::not_implemented("immediate=true"));
    }
    if let Mode::Transactional(transaction) = &mut channel.mode {
        let content = Content { publish, properties, body };
        return keep(context, channel.id, transaction, &content);
    }
    let (exchange, routing_key) = (publish.exchange.as_str(), publish.routing_key.as_str());
    let kept = publish.mandatory.then(|| body.clone());
    let published = context.broker.publish(
        context.now,
        channel.id,
        Publish {
            exchange,
            routing_key,
            properties: &properties,
            body,
            mandatory: publish.mandatory,
            confirm: matches!(channel.mode, Mode::Confirm(_)),
        },
    )?;
    if let Some(body) = kept
        && is_returned(published)
    {
        send_return(context, number, exchange, routing_key, &properties, body);
    }
    if let Mode::Confirm(confirms) = &mut channel.mode {
        if published.rejected {
            confirms.rejected(context.input_at);
        } else {
            confirms.accepted(published.ticket, context.input_at);
        }
    }
    Ok(())
}

/// Keeps a publish for tx.commit; what is wrong with it is said now.
fn keep(
    context: &mut MethodContext<'_>,
    channel: quelea_broker::ChannelId,
    transaction: &mut Transaction,
    content: &Content,
) -> Result<(), Failure> {
    let Content { publish, properties, body } = content;
    let (exchange, routing_key) = (publish.exchange.as_str(), publish.routing_key.as_str());
    context.broker.check_publish(channel, exchange, routing_key, properties)?;
    let message = Box::new(Message::new(exchange, routing_key, properties, body.clone()));
    let operation = DeferredOperation::Publish { message, mandatory: publish.mandatory };
    transaction.push(context.transactions, operation)?;
    Ok(())
}

/// Returns whether a mandatory message goes back. One that a full queue rejected had a route.
pub(crate) const fn is_returned(published: Published) -> bool {
    !published.routed && !published.rejected
}

/// basic.return of a message that no queue took.
pub(crate) fn send_return(
    context: &mut MethodContext<'_>,
    number: u16,
    exchange: &str,
    routing_key: &str,
    properties: &[u8],
    body: Bytes,
) {
    let method = basic::Return {
        reply_code: ReplyCode::NoRoute.code(),
        reply_text: ShortStr::from_static(ReplyCode::NoRoute.text()),
        exchange: ShortStr::from(exchange),
        routing_key: ShortStr::from(routing_key),
    };
    // It was decoded when its way was looked for.
    let properties = without_bcc(properties).unwrap_or(Cow::Borrowed(properties));
    context.wire.send_content(number, &method.into(), &properties, body);
}

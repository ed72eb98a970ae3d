//! Class `basic` without publish: qos, consume, cancel, get, and the acknowledgements.

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, basic};
use quelea_broker::Consume;

use crate::channel::{Channel, Mode};
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::reply::{DelayedReply, Reply};
use crate::transaction::DeferredOperation;

pub(crate) fn qos(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &basic::Qos,
) -> Result<Reply, Failure> {
    if method.prefetch_size != 0 {
        let size = method.prefetch_size;
        return Err(Failure::not_implemented(format_args!("prefetch_size!=0 ({size})")));
    }
    context.broker.set_prefetch(context.now, channel.id, method.prefetch_count, method.global);
    Ok(Reply::Now(basic::QosOk {}.into()))
}

pub(crate) fn consume(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: basic::Consume,
) -> Result<Reply, Failure> {
    let request = Consume {
        queue: method.queue.to_string(),
        consumer_tag: method.consumer_tag.to_string(),
        no_local: method.no_local,
        no_ack: method.no_ack,
        exclusive: method.exclusive,
        arguments: method.arguments,
    };
    let tag = context.broker.consume(context.now, channel.id, &request)?;
    Ok(Reply::now(method.no_wait, basic::ConsumeOk { consumer_tag: ShortStr::from(&*tag) }))
}

/// Cancels a consumer. An unknown tag is no error (AMQP 0-9-1 §1.8.3.5).
pub(crate) fn cancel(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &basic::Cancel,
) -> Reply {
    context.broker.cancel(context.now, channel.id, &method.consumer_tag);
    if method.no_wait {
        return Reply::None;
    }
    let answer = basic::CancelOk { consumer_tag: method.consumer_tag.detached() };
    Reply::Later(DelayedReply::TurnEnd(answer.into()))
}

pub(crate) fn get(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    method: &basic::Get,
) -> Result<Reply, Failure> {
    context.broker.get(context.now, channel.id, &method.queue, method.no_ack)?;
    Ok(Reply::Later(DelayedReply::Get))
}

pub(crate) fn ack(
    context: &mut MethodContext<'_>,
    channel: &mut Channel,
    method: &basic::Ack,
) -> Result<Reply, Failure> {
    let basic::Ack { delivery_tag, multiple } = *method;
    if let Mode::Transactional(transaction) = &mut channel.mode {
        if let Some(delivery_tag) =
            context.broker.hold(context.now, channel.id, delivery_tag, multiple)?
        {
            let operation = DeferredOperation::Ack { delivery_tag, multiple };
            transaction.push(context.transactions, operation)?;
        }
    } else {
        context.broker.ack(context.now, channel.id, delivery_tag, multiple)?;
        if multiple && context.broker.is_returning(channel.id) {
            return Ok(Reply::Returning(None));
        }
    }
    Ok(Reply::None)
}

pub(crate) fn nack(
    context: &mut MethodContext<'_>,
    channel: &mut Channel,
    method: &basic::Nack,
) -> Result<Reply, Failure> {
    let basic::Nack { delivery_tag, multiple, requeue } = *method;
    if let Mode::Transactional(transaction) = &mut channel.mode {
        if let Some(delivery_tag) =
            context.broker.hold(context.now, channel.id, delivery_tag, multiple)?
        {
            let operation = DeferredOperation::Nack { delivery_tag, multiple, requeue };
            transaction.push(context.transactions, operation)?;
        }
    } else {
        context.broker.nack(context.now, channel.id, delivery_tag, multiple, requeue)?;
        if multiple && context.broker.is_returning(channel.id) {
            return Ok(Reply::Returning(None));
        }
    }
    Ok(Reply::None)
}

/// Carries out basic.reject, which is basic.nack of one delivery.
pub(crate) fn reject(
    context: &mut MethodContext<'_>,
    channel: &mut Channel,
    method: &basic::Reject,
) -> Result<Reply, Failure> {
    let basic::Reject { delivery_tag, requeue } = *method;
    nack(context, channel, &basic::Nack { delivery_tag, multiple: false, requeue })
}

/// Carries out basic.recover. Like RabbitMQ, only with requeue: "the same recipient" is a promise
/// that a queue cannot keep.
pub(crate) fn recover(
    context: &mut MethodContext<'_>,
    channel: &Channel,
    requeue: bool,
    answer: Option<Method>,
) -> Result<Reply, Failure> {
    if !requeue {
        return Err(Failure::not_implemented("requeue=false"));
    }
    context.broker.recover(context.now, channel.id, requeue);
    if context.broker.is_returning(channel.id) {
        return Ok(Reply::Returning(answer));
    }
    Ok(answer.map_or(Reply::None, Reply::Now))
}

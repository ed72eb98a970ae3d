//! Which file carries out which method.

use quelea_amqp_codec::ReplyCode;
use quelea_amqp_codec::method::{Method, access, basic, channel, confirm, tx};

use crate::channel::{Channel, Mode};
use crate::confirm::Confirms;
use crate::context::MethodContext;
use crate::errors::Failure;
use crate::reply::Reply;
use crate::transaction::Transaction;
use crate::{basic_methods, exchange_methods, queue_methods, tx as tx_methods};

/// Carries out any method but basic.publish and those that open and close.
pub(crate) fn carry_out(
    context: &mut MethodContext<'_>,
    number: u16,
    channel: &mut Channel,
    method: Method,
) -> Result<Reply, Failure> {
    match method {
        Method::BasicAck(method) => basic_methods::ack(context, channel, &method),
        Method::BasicNack(method) => basic_methods::nack(context, channel, &method),
        Method::BasicReject(method) => basic_methods::reject(context, channel, &method),
        Method::BasicGet(method) => basic_methods::get(context, channel, &method),
        Method::BasicQos(method) => basic_methods::qos(context, channel, &method),
        Method::BasicConsume(method) => basic_methods::consume(context, channel, method),
        Method::BasicCancel(method) => Ok(basic_methods::cancel(context, channel, &method)),
        // The client agrees that a consumer is gone that we cancelled.
        Method::BasicCancelOk(_) => Ok(Reply::None),
        Method::BasicRecover(method) => {
            let answer = Some(basic::RecoverOk {}.into());
            basic_methods::recover(context, channel, method.requeue, answer)
        }
        Method::BasicRecoverAsync(method) => {
            basic_methods::recover(context, channel, method.requeue, None)
        }
        Method::ExchangeDeclare(method) => exchange_methods::declare(context, channel, method),
        Method::ExchangeDelete(method) => exchange_methods::delete(context, channel, &method),
        Method::ExchangeBind(method) => exchange_methods::bind(context, channel, method),
        Method::ExchangeUnbind(method) => exchange_methods::unbind(context, channel, method),
        Method::QueueDeclare(method) => queue_methods::declare(context, channel, method),
        Method::QueueBind(method) => queue_methods::bind(context, channel, method),
        Method::QueueUnbind(method) => queue_methods::unbind(context, channel, method),
        Method::QueuePurge(method) => queue_methods::purge(context, channel, &method),
        Method::QueueDelete(method) => queue_methods::delete(context, channel, &method),
        Method::ConfirmSelect(method) => confirm_select(channel, &method),
        Method::TxSelect(_) => tx_select(channel),
        Method::TxCommit(_) => tx_methods::commit(context, number, channel),
        Method::TxRollback(_) => tx_methods::rollback(context, channel),
        Method::ChannelFlow(method) => flow(&method),
        // We never send channel.flow, but an answer to it harms nobody.
        Method::ChannelFlowOk(_) => Ok(Reply::None),
        // AMQP 0-8's realms, which nobody has had since: any ticket will do.
        Method::AccessRequest(_) => Ok(Reply::Now(access::RequestOk { ticket: 1 }.into())),
        _ => Err(Failure::new(ReplyCode::CommandInvalid, "unimplemented method")),
    }
}

/// Answers channel.flow. Like RabbitMQ it refuses `active=false`: deliveries are held back by
/// prefetch. Its clients' tests expect the refusal (amqp091-go, `TestIntegrationConsumeFlow`).
fn flow(method: &channel::Flow) -> Result<Reply, Failure> {
    if !method.active {
        return Err(Failure::not_implemented("active=false"));
    }
    Ok(Reply::Now(channel::FlowOk { active: true }.into()))
}

/// Carries out confirm.select. A second one changes nothing: the count goes on.
fn confirm_select(channel: &mut Channel, method: &confirm::Select) -> Result<Reply, Failure> {
    match channel.mode {
        Mode::Plain => channel.mode = Mode::Confirm(Confirms::new()),
        Mode::Confirm(_) => {}
        Mode::Transactional(_) => {
            return Err(Failure::precondition("cannot switch from tx to confirm mode"));
        }
    }
    Ok(Reply::now(method.no_wait, confirm::SelectOk {}))
}

/// Carries out tx.select. A second one changes nothing: the transaction stays open.
fn tx_select(channel: &mut Channel) -> Result<Reply, Failure> {
    match channel.mode {
        Mode::Plain => channel.mode = Mode::Transactional(Transaction::default()),
        Mode::Transactional(_) => {}
        Mode::Confirm(_) => {
            return Err(Failure::precondition("cannot switch from confirm to tx mode"));
        }
    }
    Ok(Reply::Now(tx::SelectOk {}.into()))
}

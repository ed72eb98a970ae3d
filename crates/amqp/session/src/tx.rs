//! Class `tx` on one channel: what is published and acknowledged is kept until tx.commit hands it
//! to the broker, between `begin_atomic` and `end_atomic`, so that the log keeps all or nothing.

use quelea_amqp_codec::method::tx;
use quelea_broker::{ChannelId, Publish};
use quelea_model::Message;
use quelea_model::limits::{TX_BYTES_MAX, TX_OPERATIONS_MAX};

use crate::channel::{Channel, Mode};
use crate::errors::Failure;
use crate::publish::{give_back, is_returned};
use crate::reply::Reply;
use crate::turn::Turn;

/// The open transaction of a channel.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    operations: Vec<Operation>,
    bytes: usize,
}

/// What the open transactions of a connection hold together. Bounded: a client may open one on each
/// of its channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionUse {
    operations: usize,
    bytes: usize,
}

/// What tx.commit is to do.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A publish, checked when it came. A small one is a copy, so that it does not pin the buffer
    /// that it was read into.
    Publish { message: Box<Message>, mandatory: bool },
    /// basic.ack.
    Ack { delivery_tag: u64, multiple: bool },
    /// basic.nack, and basic.reject as one that is not `multiple`.
    Nack { delivery_tag: u64, multiple: bool, requeue: bool },
}

/// Why a transaction takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransactionFull {
    #[error("open transactions hold {TX_OPERATIONS_MAX} operations already")]
    Operations,
    #[error("open transactions would hold {bytes} bytes, the limit is {TX_BYTES_MAX}")]
    Bytes { bytes: usize },
}

impl Transaction {
    /// Keeps an operation for the commit.
    pub(crate) fn push(
        &mut self,
        in_use: &mut TransactionUse,
        operation: Operation,
    ) -> Result<(), TransactionFull> {
        if in_use.operations >= TX_OPERATIONS_MAX {
            return Err(TransactionFull::Operations);
        }
        let bytes = in_use.bytes + operation.bytes();
        if bytes > TX_BYTES_MAX {
            return Err(TransactionFull::Bytes { bytes });
        }
        self.bytes += operation.bytes();
        in_use.bytes = bytes;
        in_use.operations += 1;
        self.operations.push(operation);
        Ok(())
    }

    /// Ends the transaction and begins the next; gives what the ended one held.
    pub(crate) fn take(&mut self, in_use: &mut TransactionUse) -> Vec<Operation> {
        in_use.bytes -= std::mem::take(&mut self.bytes);
        in_use.operations -= self.operations.len();
        std::mem::take(&mut self.operations)
    }
}

impl Operation {
    fn bytes(&self) -> usize {
        match self {
            Self::Publish { message, .. } => message.resident_bytes(),
            Self::Ack { .. } | Self::Nack { .. } => 0,
        }
    }
}

/// tx.commit: all operations in their order. One that fails (the exchange is gone, the queue is
/// full) does not keep back the others, as in RabbitMQ, but there is no commit-ok then.
pub(crate) fn commit(
    turn: &mut Turn<'_>,
    number: u16,
    channel: &mut Channel,
) -> Result<Reply, Failure> {
    let id = channel.id;
    let transaction = open_transaction(channel)?;
    let mut complete = true;
    turn.broker.begin_atomic();
    for operation in transaction.take(turn.transactions) {
        complete &= carry_out(turn, number, id, operation);
    }
    let ticket = turn.broker.end_atomic();
    if complete {
        Ok(Reply::promise(false, ticket, tx::CommitOk {}))
    } else {
        Err(Failure::precondition("partial tx completion"))
    }
}

/// tx.rollback: publishes are forgotten, what was acknowledged is unacknowledged again.
pub(crate) fn rollback(turn: &mut Turn<'_>, channel: &mut Channel) -> Result<Reply, Failure> {
    drop(open_transaction(channel)?.take(turn.transactions));
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
fn carry_out(turn: &mut Turn<'_>, number: u16, id: ChannelId, operation: Operation) -> bool {
    match operation {
        Operation::Publish { message, mandatory } => publish(turn, number, id, &message, mandatory),
        Operation::Ack { delivery_tag, multiple } => {
            turn.broker.ack(turn.now, id, delivery_tag, multiple).is_ok()
        }
        Operation::Nack { delivery_tag, multiple, requeue } => {
            turn.broker.nack(turn.now, id, delivery_tag, multiple, requeue).is_ok()
        }
    }
}

fn publish(
    turn: &mut Turn<'_>,
    number: u16,
    id: ChannelId,
    message: &Message,
    mandatory: bool,
) -> bool {
    let (exchange, routing_key) = (message.exchange(), message.routing_key());
    let (properties, body) = (message.properties(), message.body_bytes());
    let publish = Publish { exchange, routing_key, properties, body, mandatory, confirm: true };
    let Ok(published) = turn.broker.publish(turn.now, id, publish) else {
        return false;
    };
    if mandatory && is_returned(published) {
        give_back(turn, number, exchange, routing_key, properties, message.body_bytes());
    }
    !published.rejected
}

//! What is asked of a queue's owner, and what it answers, here or at another front-end.

use std::sync::Arc;

use quelea_cassandra_fifo::{Content, MoveCall, MovedOut, PeekedRows, Receipt};
use quelea_sqs_protocol::{
    Backlog, Delivery, Fault, QueueRef, ReceiptOutcome, Receive, Received, SendOutcome,
};
use uuid::Uuid;

/// The queue, as far as its owner has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FifoQueue {
    pub(crate) name: QueueRef,
    pub(crate) id: Uuid,
    pub(crate) generation: Uuid,
    pub(crate) retention_ms: u64,
    /// Where messages go that were received so often.
    pub(crate) redrive: Option<(QueueRef, u32)>,
}

/// A message for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Its id, if it has one already: it comes from another queue.
    pub(crate) id: Option<Uuid>,
    pub(crate) content: Arc<Content>,
    pub(crate) delay_ms: u64,
    pub(crate) ttl_s: i32,
    pub(crate) deduplication: Option<[u8; 16]>,
}

/// One call. It may be carried out again: messages have deduplication ids, or come from another queue at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Send(Vec<Outgoing>),
    Receive(Receive),
    Delete(Vec<Delivery>),
    ChangeVisibility(Vec<(Delivery, u64)>),
    Backlog,
    MoveOut(MoveCall),
    /// A look at so many messages.
    Peek(usize),
}

impl Operation {
    /// Returns whether one of its receipts is of another generation of that queue.
    pub(crate) fn is_of_another_generation(&self, queue: &FifoQueue) -> bool {
        let is_other = |delivery: &Delivery| {
            Receipt::decode(delivery).is_some_and(|receipt| {
                receipt.queue == queue.id && receipt.generation != queue.generation
            })
        };
        match self {
            Self::Delete(deliveries) => deliveries.iter().any(is_other),
            Self::ChangeVisibility(changes) => changes.iter().any(|(one, _)| is_other(one)),
            _ => false,
        }
    }
}

/// What an owner answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Sent(Vec<SendOutcome>),
    Received(Vec<Received>),
    Settled(Vec<ReceiptOutcome>),
    Backlog(Backlog),
    MovedOut(MovedOut),
    Peeked(PeekedRows),
    Failed(Fault),
    /// Somebody else is the owner, or nobody.
    NotOwner,
}

impl Answer {
    /// Returns the fault that an answer of another kind is.
    pub(crate) fn unexpected(self) -> Fault {
        match self {
            Self::Failed(fault) => fault,
            other => Fault::Unavailable(format!("a queue's owner answered {other:?}")),
        }
    }
}

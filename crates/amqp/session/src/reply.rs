//! What a method leaves behind for its channel: an answer now, later, or none.
//!
//! An answer that promises waits for what it promises (DESIGN.md, invariant 4), and all behind it on its
//! channel keeps its order. What is declared or deleted behind such an answer is carried out at once, and
//! its answer waits in line, so that those of a client that does not wait for each share a sync. Any other
//! method is not looked at before the channel owes no answer: its effects would overtake the answers.

use std::collections::VecDeque;

use quelea_amqp_codec::method::Method;
use quelea_store::{Progress, Ticket};

/// The outcome of a method that did not fail.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Nothing to say: `no_wait`, or a method without an answer.
    None,
    /// Nothing to wait for.
    Now(Method),
    /// What the channel returns goes back to its queues over some turns, and what comes behind the method waits for
    /// that. The answer does not, if there is one.
    Returning(Option<Method>),
    /// This turn's steps are used up: the method is carried out again in the next one, and goes on.
    Unfinished,
    /// When it happens.
    Later(DelayedReply),
}

/// An answer that has to wait.
#[derive(Debug)]
pub(crate) enum DelayedReply {
    /// For the store: what the answer promises must be durable first.
    Until(Ticket, Method),
    /// For the end of the turn: deliveries that the broker handed out before this method must leave
    /// before its answer. After cancel-ok a client takes no more deliveries for that consumer.
    TurnEnd(Method),
    /// For the broker, which answers basic.get when the message's body is in memory.
    Get,
}

impl Reply {
    /// Returns an answer that promises what `ticket` stands for; none if `no_wait` says that none
    /// is wanted.
    pub(crate) fn promise(no_wait: bool, ticket: Ticket, method: impl Into<Method>) -> Self {
        if no_wait { Self::None } else { Self::Later(DelayedReply::Until(ticket, method.into())) }
    }

    /// Returns an answer that promises nothing; none if `no_wait` says that none is wanted.
    pub(crate) fn now(no_wait: bool, method: impl Into<Method>) -> Self {
        if no_wait { Self::None } else { Self::Now(method.into()) }
    }
}

/// The answers that a channel owes, in their order. Only those that wait for the store stand together.
#[derive(Debug, Default)]
pub(crate) struct DelayedReplies(VecDeque<DelayedReply>);

/// Room that is kept for the next answers when all are sent.
const ROOM_KEPT: usize = 4;

impl DelayedReplies {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a method may be carried out before the answers are sent.
    pub(crate) fn let_pass(&self, method: &Method) -> bool {
        match self.0.back() {
            None => true,
            Some(DelayedReply::Until(..)) => only_promises(method),
            Some(DelayedReply::TurnEnd(_) | DelayedReply::Get) => false,
        }
    }

    pub(crate) fn push(&mut self, reply: DelayedReply) {
        self.0.push_back(reply);
    }

    /// Takes the first answer, if it may be sent now.
    pub(crate) fn pop(&mut self, progress: Progress, turn_ends: bool) -> Option<Method> {
        let may_leave = match self.0.front()? {
            DelayedReply::Until(ticket, _) => progress.reached(*ticket),
            DelayedReply::TurnEnd(_) => turn_ends,
            DelayedReply::Get => false,
        };
        if !may_leave {
            return None;
        }
        match self.take_first()? {
            DelayedReply::Until(_, method) | DelayedReply::TurnEnd(method) => Some(method),
            DelayedReply::Get => None,
        }
    }

    /// Notes that the answer to basic.get is out. Returns whether one was owed.
    pub(crate) fn got(&mut self) -> bool {
        matches!(self.0.front(), Some(DelayedReply::Get)) && self.take_first().is_some()
    }

    fn take_first(&mut self) -> Option<DelayedReply> {
        let first = self.0.pop_front();
        if self.0.is_empty() && self.0.capacity() > ROOM_KEPT {
            self.0 = VecDeque::new();
        }
        first
    }
}

/// Returns whether nothing comes of a method on its own channel but an answer: so that can wait in line. (A
/// consumer whose queue is deleted learns of it at once, as from any other channel.)
const fn only_promises(method: &Method) -> bool {
    matches!(
        method,
        Method::ExchangeDeclare(_)
            | Method::ExchangeDelete(_)
            | Method::ExchangeBind(_)
            | Method::ExchangeUnbind(_)
            | Method::QueueDeclare(_)
            | Method::QueueBind(_)
            | Method::QueueUnbind(_)
            | Method::QueuePurge(_)
            | Method::QueueDelete(_)
    )
}

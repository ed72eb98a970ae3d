//! What a method leaves behind for its channel: an answer now, later, or none.
//!
//! An answer that promises waits for what it promises (DESIGN.md, invariant 4). While a channel
//! waits for one its next method is not looked at, so answers keep their order and at most one a
//! channel waits; clients wait for the answer anyway before they use the channel again.

use quelea_amqp_codec::method::Method;
use quelea_store::Ticket;

/// The outcome of a method that did not fail.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Nothing to say: `no_wait`, or a method without an answer.
    None,
    /// Nothing to wait for.
    Now(Method),
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
    /// An answer that promises what `ticket` stands for. `no_wait` asked for none.
    pub(crate) fn promise(no_wait: bool, ticket: Ticket, method: impl Into<Method>) -> Self {
        if no_wait { Self::None } else { Self::Later(DelayedReply::Until(ticket, method.into())) }
    }

    /// An answer that promises nothing. `no_wait` asked for none.
    pub(crate) fn now(no_wait: bool, method: impl Into<Method>) -> Self {
        if no_wait { Self::None } else { Self::Now(method.into()) }
    }
}

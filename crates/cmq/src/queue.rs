//! A mailbox's messages.

use std::time::Duration;

use quelea_cmq_proto::Mailbox;

use crate::endpoint::Endpoint;
use crate::message::{Message, MessageRef, Receipt};

/// An open mailbox of an [`Endpoint`]. Any number of threads and tasks may pop; each message goes to
/// one of them. Dropping it closes the mailbox.
#[derive(Debug)]
pub struct Queue {
    endpoint: Endpoint,
    mailbox: Mailbox,
}

#[allow(unused_variables, clippy::todo, clippy::unused_self, clippy::unused_async)]
impl Queue {
    /// The next message if one is here: the paper's `cwPop`.
    #[must_use]
    pub fn try_pop(&self) -> Option<Message> {
        todo!()
    }

    /// Waits for the next message; none once the endpoint is closed and the mailbox empty.
    #[must_use]
    pub fn pop(&self) -> Option<Message> {
        todo!()
    }

    /// Waits for the next message at most so long.
    #[must_use]
    pub fn pop_timeout(&self, within: Duration) -> Option<Message> {
        todo!()
    }

    /// Waits for the next message at most so long, then gives it and those behind it that are here,
    /// at most `max`, to `each`, without a copy or an allocation per message; returns how many.
    pub fn pop_batch(
        &self,
        max: usize,
        within: Duration,
        each: impl FnMut(MessageRef<'_>),
    ) -> usize {
        todo!()
    }

    /// Waits for the next message, as a future of any runtime; none once the endpoint is closed and
    /// the mailbox empty.
    pub async fn pop_async(&self) -> Option<Message> {
        todo!()
    }

    /// For mailboxes with `acknowledged_by_application`: this message, and all before it of the same
    /// sender, are safe; the sender may forget them.
    pub fn acknowledge(&self, receipt: Receipt) {
        todo!()
    }

    /// Whether the endpoint was closed: what is still here can be popped, nothing more will come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        todo!()
    }

    /// Its number at this endpoint's address.
    #[must_use]
    pub const fn mailbox(&self) -> Mailbox {
        self.mailbox
    }

    /// The endpoint that it belongs to.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

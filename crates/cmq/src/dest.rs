//! A handle to a destination: pushes without the look-up of its key.

use std::time::Duration;

use quelea_cmq_proto::{DestinationId, Key, PushError};

use crate::endpoint::Endpoint;

/// A destination of an [`Endpoint`]. Clones are handles to the same one; dropping one flushes, and
/// closes nothing.
#[derive(Clone, Debug)]
#[allow(dead_code)]
pub struct Dest {
    endpoint: Endpoint,
    key: Key,
    id: DestinationId,
}

/// Why a batch was not pushed whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}, after {pushed} messages were pushed")]
pub struct PushBatchError {
    /// Messages pushed before the one that failed.
    pub pushed: usize,
    /// Why it failed.
    #[source]
    pub error: PushError,
}

#[allow(unused_variables, clippy::todo, clippy::unused_self)]
impl Dest {
    /// Puts a message into the destination's batch; sends the batch first if the message would make
    /// it too large. With [`crate::WhenFull::Block`] it waits for room.
    ///
    /// # Errors
    /// [`PushError`]: too large, no room (and told not to wait), or closed.
    pub fn push(&self, message: &[u8]) -> Result<(), PushError> {
        todo!()
    }

    /// Pushes many messages under one lock; returns how many.
    ///
    /// # Errors
    /// The first message that could not be pushed, and how many were before it.
    pub fn push_batch<I>(&self, messages: I) -> Result<usize, PushBatchError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        todo!()
    }

    /// Sends what is pending now.
    pub fn flush(&self) {
        todo!()
    }

    /// Flushes and waits until everything has left, and in reliable modes is acknowledged. False if
    /// that took longer than `within`, or the peer was given up.
    #[must_use]
    pub fn wait_acknowledged(&self, within: Duration) -> bool {
        todo!()
    }

    /// Whom it pushes to.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// Flushes, and has the endpoint forget the destination once everything is sent (and
    /// acknowledged, where it is reliable). Later pushes of other handles fail with
    /// [`PushError::Closed`].
    pub fn close(self) {
        todo!()
    }
}

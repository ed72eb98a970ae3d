//! What leaves an endpoint.

use bytes::BytesMut;

use super::{DestinationId, Endpoint, Transmit};
use crate::Time;

impl Endpoint {
    /// The destination's batch leaves as soon as it may.
    pub fn flush(&mut self, id: DestinationId) {
        self.outbox.flush_destination(id);
    }

    /// All batches leave as soon as they may.
    pub fn flush_all(&mut self) {
        self.outbox.flush_all();
    }

    /// Returns whether a push of `message_bytes` that was refused with `WouldBlock` may succeed
    /// now.
    #[must_use]
    pub fn writable(&self, id: DestinationId, message_bytes: usize) -> bool {
        self.outbox.writable(id, message_bytes)
    }

    /// Returns whether everything pushed so far has left (and is acknowledged, where it is
    /// reliable).
    #[must_use]
    pub fn is_settled(&self, id: DestinationId) -> bool {
        self.outbox.is_settled(id)
    }

    /// Returns how often messages to it were given up since it was made, and whether its receiver
    /// was, so that nothing can be pushed any more. None once it is closed and forgotten.
    #[must_use]
    pub fn given_up(&self, id: DestinationId) -> Option<(u32, bool)> {
        self.outbox.given_up(id)
    }

    /// Returns whether [`Endpoint::is_settled`] holds for every destination.
    #[must_use]
    pub fn all_settled(&self) -> bool {
        self.outbox.all_settled()
    }

    /// Flushes, and forgets it once everything is sent (and acknowledged, where it is reliable). The
    /// receiver hears it by a PROBE with the flag END, repeated as any PROBE until a STATUS comes.
    pub fn close_destination(&mut self, id: DestinationId) {
        self.outbox.close_destination(id);
    }

    /// Returns whether `poll_transmit` may have something.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        !self.challenges.is_empty() || self.inbox.has_answer() || self.outbox.has_transmit()
    }

    /// Returns a lossy train's buffer for the next batch.
    pub fn recycle(&mut self, buffer: BytesMut) {
        self.outbox.recycle(buffer);
    }

    /// Returns the next thing to send. Ask until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.answer(now).or_else(|| self.outbox.poll_transmit(now))
    }
}

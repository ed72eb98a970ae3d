//! A move that waits until one of the former relays owes nothing any more.

use super::ProducerSession;
use crate::frame::RelayAddress;
use crate::limits::{ATTACH_MS_MAX, RELAY_ATTACHMENTS_MAX};
use crate::{Epoch, Time};

/// Where the producer is to go when there is room for one more attachment.
#[derive(Debug)]
pub(super) struct DeferredMove {
    pub(super) epoch: Epoch,
    relay: RelayAddress,
    pub(super) deadline: Time,
}

impl ProducerSession {
    /// Returns whether there is no room to go to a further relay: each that owes acknowledgements
    /// keeps a connection open.
    fn attachments_are_full(&self) -> bool {
        self.attachments.len() >= RELAY_ATTACHMENTS_MAX && self.open_attachment().is_some()
    }

    /// Takes the move over for later if there is no room now; otherwise gives the relay back.
    pub(super) fn defer_move(
        &mut self,
        epoch: Epoch,
        relay: RelayAddress,
        now: Time,
    ) -> Option<RelayAddress> {
        self.deferred_move = None;
        if !self.attachments_are_full() {
            return Some(relay);
        }
        let deadline = now.plus_ms(ATTACH_MS_MAX);
        self.deferred_move = Some(DeferredMove { epoch, relay, deadline });
        None
    }

    /// Acknowledgements came, or a relay was lost: there may be room now.
    pub(super) fn resume_deferred_move(&mut self, now: Time) {
        if self.deferred_move.is_some()
            && !self.attachments_are_full()
            && let Some(DeferredMove { epoch, relay, .. }) = self.deferred_move.take()
        {
            self.attach(epoch, relay, now);
        }
    }

    /// Tells the directory that there was no room for too long.
    pub(super) fn give_up_deferred_move(&mut self, now: Time) {
        if let Some(late) =
            self.deferred_move.take_if(|deferred_move| deferred_move.deadline <= now)
        {
            let cause = format!(
                "{RELAY_ATTACHMENTS_MAX} relays still owe acknowledgements, which is the limit, for {ATTACH_MS_MAX} ms"
            );
            self.produce_failed(late.relay.relay, late.epoch, cause);
        }
    }
}

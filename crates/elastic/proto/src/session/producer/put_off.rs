//! A move that waits until one of the former relays owes nothing any more.

use super::ProducerSession;
use crate::frame::RelayAddress;
use crate::limits::{ATTACH_MS_MAX, STAYS_MAX};
use crate::{Epoch, Time};

/// Where the producer is to go when there is room for one more stay.
#[derive(Debug)]
pub(super) struct PutOff {
    pub(super) epoch: Epoch,
    relay: RelayAddress,
    pub(super) deadline: Time,
}

impl ProducerSession {
    /// Whether no further relay can be gone to: each that owes acknowledgements keeps a connection open.
    fn stays_are_full(&self) -> bool {
        self.stays.len() >= STAYS_MAX && self.open_stay().is_some()
    }

    /// Takes the move over for later if there is no room now; otherwise gives the relay back.
    pub(super) fn put_off(
        &mut self,
        epoch: Epoch,
        relay: RelayAddress,
        now: Time,
    ) -> Option<RelayAddress> {
        self.put_off = None;
        if !self.stays_are_full() {
            return Some(relay);
        }
        let deadline = now.plus_ms(ATTACH_MS_MAX);
        self.put_off = Some(PutOff { epoch, relay, deadline });
        None
    }

    /// Acknowledgements came, or a relay was lost: there may be room now.
    pub(super) fn resume_put_off(&mut self, now: Time) {
        if self.put_off.is_some()
            && !self.stays_are_full()
            && let Some(PutOff { epoch, relay, .. }) = self.put_off.take()
        {
            self.attach(epoch, relay, now);
        }
    }

    /// Tells the directory that there was no room for too long.
    pub(super) fn give_up_put_off(&mut self, now: Time) {
        if let Some(late) = self.put_off.take_if(|put_off| put_off.deadline <= now) {
            let cause = format!(
                "{STAYS_MAX} relays still owe acknowledgements, which is the limit, for {ATTACH_MS_MAX} ms"
            );
            self.produce_failed(late.relay.relay, late.epoch, cause);
        }
    }
}

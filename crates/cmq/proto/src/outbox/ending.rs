//! How a destination goes: when everything else is settled, the end is announced to its receiver
//! until that answers, or often enough.

use super::Outbox;
use super::destination::Ending;
use crate::Time;
use crate::config::Wire;
use crate::destination_id::DestinationId;
use crate::flight::Flight;

/// Between the first and the second farewell where no receiver answers, since none is asked for
/// credit; twice as long before the next.
const WAIT_US: u64 = 4_000;

/// Farewells where no receiver answers.
const FAREWELLS: u8 = 3;

/// Flights of idle destinations that are kept for what they know of the path.
const RESTING_MAX: usize = 256;

impl Outbox {
    /// The destination takes no more, and is forgotten once everything has left, or is acknowledged.
    /// Its key is free at once: a destination that is made of it anew is another flow.
    pub(crate) fn close_destination(&mut self, id: DestinationId) {
        let Some(destination) = self.destinations.get_mut(id) else { return };
        if core::mem::replace(&mut destination.closing, true) {
            return;
        }
        if let Some(train) = &mut destination.train {
            train.seal_off();
        }
        self.destinations.release_key(id.slot);
        self.flush(id.slot);
        self.enqueue(id.slot);
    }

    /// Nothing of the destination may leave now: looks whether something of it may go.
    pub(super) fn rest(&mut self, slot: u32) {
        let destination = self.destinations.at_mut(slot);
        let settled = destination.is_settled();
        if settled {
            self.unsettled -= usize::from(core::mem::take(&mut destination.unsettled));
        }
        if destination.closing && (settled || destination.is_dead()) {
            // In the line a slot has its destination; its turn ends here again.
            if !destination.queued {
                self.part(slot);
            }
            return;
        }
        let Some(busy) = &mut destination.busy else { return };
        let idle = busy.flight.as_ref().is_none_or(|flight| flight.is_settled());
        if !settled || !idle || destination.train.is_some() {
            return;
        }
        if busy.flight.is_none() && busy.sealing.is_none() && busy.parities.is_none() {
            destination.busy = None;
        } else if !busy.resting {
            busy.resting = true;
            self.resting.push_back(DestinationId { slot, generation: destination.generation });
            self.forget_resting();
        }
    }

    /// Drops the flights that have been idle longest, where there are too many.
    fn forget_resting(&mut self) {
        while self.resting.len() > RESTING_MAX
            && let Some(id) = self.resting.pop_front()
        {
            let Some(destination) = self.destinations.get_mut(id) else { continue };
            let Some(busy) = &mut destination.busy else { continue };
            busy.resting = false;
            let idle = busy.flight.as_ref().is_none_or(|flight| {
                flight.is_settled() && !flight.is_dead() && flight.next_deadline().is_none()
            });
            let asks = busy.sealing.as_ref().is_some_and(|sealing| sealing.next_at().is_some());
            if idle && !asks && busy.waiting.is_empty() && busy.ending.is_none() {
                destination.busy = None;
            }
        }
    }

    /// Begins the farewell of a destination that is settled, and forgets it when that is done, or if
    /// there is no one to announce it to.
    fn part(&mut self, slot: u32) {
        let destination = self.destinations.at(slot);
        let ending = destination.busy.as_ref().and_then(|busy| busy.ending);
        let unknown = destination.next_sequence == 0 || self.config.wire != Wire::Quelea;
        if destination.is_dead() || unknown && ending.is_none() {
            return self.forget(slot);
        }
        match ending {
            None => self.begin_farewell(slot),
            Some(Ending::Asked) if destination.flight().is_none_or(Flight::is_settled) => {
                self.forget(slot);
            }
            Some(Ending::Announced { left: 0, .. }) => self.forget(slot),
            Some(_) => {}
        }
    }

    fn begin_farewell(&mut self, slot: u32) {
        let heard = self.profiles.get(self.destinations.at(slot).profile).credit;
        if heard {
            self.make_flight(slot, Time::ZERO);
        }
        let busy = self.destinations.at_mut(slot).busy.get_or_insert_default();
        busy.ending = Some(if heard {
            Ending::Asked
        } else {
            Ending::Announced { next_at: Time::ZERO, wait_us: WAIT_US, left: FAREWELLS }
        });
        self.with_flight(slot, Flight::close);
        self.enqueue(slot);
    }

    /// Returns whether a farewell that nobody answers is to be said now; counts it.
    pub(super) fn is_end_due(&mut self, slot: u32, now: Time) -> bool {
        let busy = self.destinations.at_mut(slot).busy.as_mut();
        let Some(Ending::Announced { next_at, wait_us, left }) =
            busy.and_then(|busy| busy.ending.as_mut())
        else {
            return false;
        };
        if *next_at > now || *left == 0 {
            return false;
        }
        *left -= 1;
        *next_at = now.plus_us(*wait_us);
        *wait_us *= 2;
        self.set_timer(slot);
        true
    }

    /// Forgets the destination.
    fn forget(&mut self, slot: u32) {
        self.drop_all(slot);
        self.timers.delete(slot);
        let destination = self.destinations.remove(slot);
        self.held_bytes -= destination.busy.map_or(0, |busy| busy.kept_bytes);
        self.unsettled -= usize::from(destination.unsettled);
        self.profiles.release(destination.profile);
    }
}

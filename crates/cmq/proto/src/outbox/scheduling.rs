//! Whose turn it is to send, and how much of what waits may leave.

use super::Outbox;
use super::destination::Ending;
use super::sealing::Handshake;
use super::train::Closed;
use crate::Time;
use crate::flight::{self, Action, Flight, FlightOptions};

/// A train that does not fit the credit goes in parts, but not in smaller ones than this: each is a
/// call of the kernel.
const PART_BYTES_MIN: usize = 16 << 10;

/// What a destination has to send.
#[derive(Debug)]
pub(crate) enum Scheduled {
    /// What its flight wants.
    Act(Action),
    /// A train, or a part of one.
    Send(Closed),
    /// A HELLO, for keys.
    Greet,
    /// Word that nothing follows.
    End,
}

impl Outbox {
    /// Takes what leaves next, of the destination whose turn it is.
    pub(super) fn next_scheduled(&mut self, now: Time) -> Option<(u32, Scheduled)> {
        while let Some(slot) = self.ready.pop_front() {
            self.destinations.at_mut(slot).queued = false;
            if let Some(turn) = self.schedule(slot, now) {
                return Some((slot, turn));
            }
            // It was called before its time, which took its timer.
            self.set_timer(slot);
            self.rest(slot);
        }
        None
    }

    /// What was to be done is done. The destination stays in the line if it may have more.
    pub(super) fn finish_scheduled(&mut self, slot: u32, acted: bool) {
        if acted || self.has_more(slot) {
            self.enqueue(slot);
        } else {
            self.rest(slot);
        }
    }

    fn schedule(&mut self, slot: u32, now: Time) -> Option<Scheduled> {
        match self.handshake(slot, now) {
            Handshake::Done => {}
            Handshake::Greet => return Some(Scheduled::Greet),
            Handshake::Waits => return None,
            Handshake::Silent => {
                self.on_silence(slot);
                return None;
            }
        }
        if let Some(action) = self.with_flight(slot, |flight| flight.poll(now)).flatten() {
            return Some(Scheduled::Act(action));
        }
        if let Some(train) = self.take_allowed(slot, now) {
            return Some(Scheduled::Send(train));
        }
        self.is_end_due(slot, now).then_some(Scheduled::End)
    }

    /// Takes the oldest train of the destination, or what credit allows of it.
    fn take_allowed(&mut self, slot: u32, now: Time) -> Option<Closed> {
        let destination = self.destinations.at(slot);
        let (bytes, segment_bytes) = match (self.first_waiting(slot), &destination.train) {
            (Some(train), _) => (train.bytes.len(), train.segment_bytes),
            (None, Some(train)) if train.leaving => (train.len(), train.segment_bytes()),
            _ => return None,
        };
        let segments = bytes.div_ceil(segment_bytes);
        let credited = self.profiles.get(destination.profile).credit;
        let allowed =
            if credited { self.allowed(slot, segments, segment_bytes, now) } else { segments };
        if allowed == 0 {
            return None;
        }
        if !self.has_waiting(slot) {
            self.close_train(slot);
        }
        self.take_segments(slot, allowed)
    }

    /// Returns how many of a train's segments may leave now.
    fn allowed(&mut self, slot: u32, segments: usize, segment_bytes: usize, now: Time) -> usize {
        let destination = self.destinations.at(slot);
        let fresh = destination.next_sequence == 0;
        self.make_flight(slot, now);
        let charge =
            self.profiles.get(self.destinations.at(slot).profile).repair.charge(segment_bytes);
        self.with_flight(slot, |flight| {
            let part = PART_BYTES_MIN.div_ceil(segment_bytes).min(segments);
            let fits = usize::try_from(flight.room() / charge).unwrap_or(usize::MAX);
            // A flow's first train is not cut: it may be all that there is to say.
            let wanted = if fresh { segments } else { part };
            if fits >= segments || flight.may_send(wanted as u64 * charge) {
                // A window that is smaller than a part is kept too, as far as one datagram can.
                if fresh { segments } else { fits.clamp(1, segments) }
            } else {
                0
            }
        })
        .unwrap_or(0)
    }

    /// Makes the destination's flight, if it has none.
    pub(super) fn make_flight(&mut self, slot: u32, now: Time) {
        let destination = self.destinations.at_mut(slot);
        let (next, reliable) = (destination.next_sequence, destination.reliable);
        let loopback = destination.key.address.ip().is_loopback();
        let configured = self.profiles.get(destination.profile).dead_after;
        let dead_after = flight::patience(configured, reliable);
        let options = FlightOptions { reliable, loopback, dead_after };
        let busy = destination.busy.get_or_insert_default();
        busy.flight.get_or_insert_with(|| Flight::new(&options, next, now));
    }

    /// Takes so many segments of the oldest train.
    fn take_segments(&mut self, slot: u32, segments: usize) -> Option<Closed> {
        let busy = self.destinations.at_mut(slot).busy.as_mut()?;
        let first = busy.waiting.front_mut()?;
        if first.segments() <= segments {
            return self.take_waiting(slot);
        }
        let before = first.bytes.capacity();
        let part = first.split_off(segments);
        let taken = before - first.bytes.capacity();
        busy.waiting_bytes -= taken;
        self.held_bytes -= taken;
        Some(part)
    }

    /// Lets `act` use the destination's flight, if it has one, and takes down what has changed.
    pub(super) fn with_flight<T>(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Flight) -> T,
    ) -> Option<T> {
        let busy = self.destinations.at_mut(slot).busy.as_mut()?;
        let flight = busy.flight.as_mut()?;
        let done = act(flight);
        let kept = usize::try_from(flight.kept_bytes()).unwrap_or(usize::MAX);
        self.held_bytes = self.held_bytes - busy.kept_bytes + kept;
        busy.kept_bytes = kept;
        self.set_timer(slot);
        Some(done)
    }

    /// The flight's next deadline, or the farewell's.
    pub(super) fn set_timer(&mut self, slot: u32) {
        let busy = self.destinations.at(slot).busy.as_ref();
        let flight = busy.and_then(|busy| busy.flight.as_ref()).and_then(Flight::next_deadline);
        let ending = match busy.and_then(|busy| busy.ending) {
            Some(Ending::Announced { next_at, .. }) => Some(next_at),
            _ => None,
        };
        let sealing = busy.and_then(|busy| busy.sealing.as_ref());
        let hello = sealing.and_then(|it| it.next_at());
        // Without keys nothing else can leave, whatever is due.
        let mute = sealing.is_some_and(|it| !it.has_keys());
        let (flight, ending) = if mute { (None, None) } else { (flight, ending) };
        match [flight, ending, hello].into_iter().flatten().min() {
            Some(due) if self.timers.get(slot) == Some(due) => {}
            Some(due) => self.timers.set(slot, due),
            None => self.timers.delete(slot),
        }
    }
}

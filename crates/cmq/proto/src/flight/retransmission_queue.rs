//! What is under way and will be repeated: every datagram whole, until the receiver acknowledges it.
//!
//! A datagram goes `UnderWay` → `Received`, or `UnderWay` → `Lost` → (repeated) `UnderWay`, or from
//! either of these to `GivenUp` when its deadline passes. Between `UnderWay` and the two it may be `Unreported`. It leaves the ring from the front, when
//! everything below it is acknowledged.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::{REORDERED_MAX, Sent};
use crate::Time;
use crate::limits::{STATUS_RANGES_MAX, WINDOW_DATAGRAMS_MAX};
use crate::wire::status::Status;

/// The datagrams of a reliable destination from the lowest that is not acknowledged.
#[derive(Debug, Default)]
pub(super) struct RetransmissionQueue {
    /// The sequence of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    /// Sum of the charges of what is under way.
    charges: u64,
    /// Sum of the lengths of what is kept.
    bytes: u64,
    /// The receiver has said that it waits for nothing below.
    received_below: u64,
    /// Everything below is received or given up.
    floor: u64,
    /// Sequences that are `Lost`; some may have arrived in the meantime. The lowest goes first: a receiver whose memory
    /// is full of what is ahead has room for nothing else.
    lost: BTreeSet<u64>,
    /// Sendings so far, repetitions with them.
    departures: u64,
    /// Everything that departed before this one has arrived, is lost, or is late: one that left at its
    /// place or later is known to have arrived.
    evidence: u64,
    /// When the next datagram has been missing for long enough.
    overdue_at: Option<Time>,
    /// The highest of which a STATUS spoke, and, if that STATUS had as many ranges as it can hold, where
    /// they ended: what lies between may have arrived.
    highest: u64,
    reported_below: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    bytes: Bytes,
    sent_at: Time,
    expires: Option<Time>,
    /// Its place among all sendings, at its last one. A train's segments leave in the same
    /// microsecond, so that `sent_at` would not show which of them are behind one that arrived.
    departure: u64,
    charge: u32,
    messages: u16,
    /// Its place in the sequence says nothing of when it was sent last.
    repeated: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    /// It is under way no more, and beyond what the last STATUS had room to speak of: it arrived, or was lost.
    Unreported,
    Lost,
    /// After a restart: not sent under its new number yet. Also in the queue `lost`.
    Unsent,
    Received,
    GivenUp,
}

/// What a STATUS reported of the ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// Datagrams that are now known to have arrived, and their charges.
    pub(super) arrived: u32,
    pub(super) arrived_charges: u64,
    /// Datagrams that are now taken as lost.
    pub(super) lost: u32,
    /// Datagrams that the sender may forget.
    pub(super) acknowledged: u32,
    /// Microseconds since the highest that arrived was sent, if it was never repeated and this is the
    /// first word on it (Karn's rule).
    pub(super) sample_us: Option<u64>,
}

/// A datagram that waits to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) charge: u64,
    /// Whether it was sent before under its number, so that it needs budget.
    pub(super) repeated: bool,
}

impl RetransmissionQueue {
    pub(super) fn new(first: u64) -> Self {
        Self { first, received_below: first, floor: first, ..Self::default() }
    }

    pub(super) fn charges(&self) -> u64 {
        self.charges
    }

    /// Returns how many bytes of memory the datagrams take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns one past the highest sequence that was sent.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Returns the floor: everything below is received or given up.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn received_below(&self) -> u64 {
        self.received_below
    }

    /// Returns whether the receiver waits for something that was given up.
    pub(super) fn floor_is_news(&self) -> bool {
        self.floor > self.received_below
    }

    /// Returns the number of datagrams between the lowest for which the receiver waits and the
    /// highest sent.
    pub(super) fn span(&self) -> u64 {
        self.next() - self.received_below
    }

    pub(super) fn sent(&mut self, datagram: Sent, now: Time) {
        debug_assert_eq!(datagram.sequence, self.next(), "sequences have no holes");
        debug_assert!(datagram.kept.is_some(), "what may be repeated is kept");
        let bytes = datagram.kept.unwrap_or_default();
        self.bytes += bytes.len() as u64;
        self.charges += u64::from(datagram.charge);
        self.entries.push_back(Entry {
            bytes,
            sent_at: now,
            expires: datagram.expires,
            departure: self.departures,
            charge: datagram.charge,
            messages: datagram.messages,
            repeated: false,
            state: State::UnderWay,
        });
        self.departures += 1;
    }

    /// Returns the number of sendings so far.
    pub(super) fn departures(&self) -> u64 {
        self.departures
    }

    /// Takes a STATUS whose numbers are possible. `probed`: the sendings before the probe that it
    /// answers.
    pub(super) fn on_status(
        &mut self,
        status: &Status,
        probed: Option<u64>,
        overdue_us: u64,
        now: Time,
    ) -> AckSummary {
        let mut summary = AckSummary::default();
        let highest_was = self.entry(status.highest.wrapping_sub(1)).map(|entry| entry.state);
        for sequence in self.received_below.max(self.first)..status.received_below {
            self.arrived(sequence, &mut summary);
        }
        self.received_below = self.received_below.max(status.received_below);
        for &(first, end) in &status.ranges {
            for sequence in first.max(self.received_below)..end {
                self.arrived(sequence, &mut summary);
            }
        }
        if let Some(entry) = self.entry(status.highest.wrapping_sub(1))
            && entry.state == State::Received
            && highest_was == Some(State::UnderWay)
            && !entry.repeated
        {
            summary.sample_us = Some(now.since_us(entry.sent_at));
        }
        self.evidence = self.evidence.max(probed.unwrap_or(0));
        if status.highest >= self.highest {
            self.highest = status.highest;
            let full = status.ranges.len() >= STATUS_RANGES_MAX;
            self.reported_below = status.ranges.last().filter(|_| full).map(|&(_, end)| end);
        }
        summary.lost = self.find_lost(Some(status), overdue_us, now);
        self.acknowledge_below(status.acknowledged_below, &mut summary);
        self.raise_floor();
        summary
    }

    /// Takes as lost what is missing for long enough by now.
    pub(super) fn on_overdue(&mut self, overdue_us: u64, now: Time) -> u32 {
        if self.overdue_at.is_none_or(|at| now < at) {
            return 0;
        }
        self.find_lost(None, overdue_us, now)
    }

    /// Returns when `on_overdue` has something to do.
    pub(super) fn overdue_at(&self) -> Option<Time> {
        self.overdue_at
    }

    /// Gives up what expired. Returns whether the floor moved.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let before = self.floor;
        while let Some(index) = self.index(self.floor) {
            let entry = &mut self.entries[index];
            match entry.state {
                State::Received | State::GivenUp => {}
                State::UnderWay | State::Unreported | State::Lost | State::Unsent => {
                    if entry.expires.is_none_or(|at| now < at) {
                        break;
                    }
                    if entry.state == State::UnderWay {
                        self.charges -= u64::from(entry.charge);
                    }
                    entry.state = State::GivenUp;
                    self.bytes -= entry.bytes.len() as u64;
                    entry.bytes = Bytes::new();
                }
            }
            self.floor += 1;
        }
        self.floor != before
    }

    /// Returns when the first deadline passes.
    pub(super) fn expires_at(&self) -> Option<Time> {
        self.entries.get(self.index(self.floor)?)?.expires
    }

    /// Returns what waits to be sent again, if the receiver has a place for it.
    pub(super) fn next_lost(&mut self) -> Option<Waiting> {
        while let Some(&sequence) = self.lost.first() {
            match self.entry(sequence).map(|entry| entry.state) {
                Some(State::Lost | State::Unsent) => break,
                _ => {
                    self.lost.pop_first();
                }
            }
        }
        self.first_lost()
    }

    /// Returns the same as [`next_lost`](Self::next_lost), when that has put aside what arrived in
    /// the meantime; none if it has not yet.
    pub(super) fn first_lost(&self) -> Option<Waiting> {
        let &sequence = self.lost.first()?;
        let entry = self.entry(sequence)?;
        let repeated = match entry.state {
            State::Lost => true,
            State::Unsent => false,
            _ => return None,
        };
        let placed = sequence - self.received_below < WINDOW_DATAGRAMS_MAX as u64;
        placed.then_some(Waiting { charge: u64::from(entry.charge), repeated })
    }

    /// Repeats what `next_lost` returned.
    pub(super) fn repeat(&mut self, now: Time) -> Option<Bytes> {
        let sequence = self.lost.pop_first()?;
        let index = self.index(sequence)?;
        let entry = &mut self.entries[index];
        entry.state = State::UnderWay;
        entry.repeated = true;
        entry.sent_at = now;
        entry.departure = self.departures;
        self.departures += 1;
        self.charges += u64::from(entry.charge);
        Some(entry.bytes.clone())
    }

    /// Takes the highest that is under way as lost: nothing is heard of it, and nothing behind it
    /// can show it.
    pub(super) fn lose_last(&mut self) -> bool {
        let last = self.entries.iter().rposition(|entry| entry.state == State::UnderWay);
        let Some(index) = last else { return false };
        let entry = &mut self.entries[index];
        entry.state = State::Lost;
        self.charges -= u64::from(entry.charge);
        self.lost.insert(self.first + index as u64);
        true
    }

    /// Returns the number of messages that are not known to have arrived.
    pub(super) fn missing_messages(&self) -> u64 {
        let missing = |entry: &&Entry| entry.state != State::Received;
        self.entries.iter().filter(missing).map(|entry| u64::from(entry.messages)).sum()
    }

    /// Begins again when the receiver was started anew, before it acknowledged anything: it lacks
    /// everything, but its word on the flow still counts from 0 on. Returns whether that is so.
    pub(super) fn begin_again(&mut self) -> bool {
        if self.first != 0 {
            return false;
        }
        (self.received_below, self.floor) = (0, 0);
        (self.highest, self.reported_below, self.evidence) = (0, None, 0);
        for (sequence, entry) in (0..).zip(&mut self.entries) {
            if entry.state == State::Received {
                entry.state = State::Lost;
                entry.repeated = true;
                self.lost.insert(sequence);
            }
        }
        self.raise_floor();
        true
    }

    /// Makes everything that is not acknowledged and not given up a new flow from sequence 0 on,
    /// that is to be sent as credit allows. `rewrite` puts the new numbers into a datagram, or
    /// drops it. What has expired is left out whole, also what the old receiver had of it: without
    /// the rest of its message, which was given up, it would wait there for ever.
    pub(super) fn restart(
        &mut self,
        now: Time,
        mut rewrite: impl FnMut(u64, u16, Bytes) -> Option<Bytes>,
    ) {
        let old = std::mem::take(self);
        for mut entry in old.entries {
            if entry.state == State::GivenUp || entry.expires.is_some_and(|at| at <= now) {
                continue;
            }
            let sequence = self.next();
            let Some(bytes) = rewrite(sequence, entry.messages, entry.bytes) else { continue };
            entry.bytes = bytes;
            entry.state = State::Unsent;
            entry.repeated = true;
            self.bytes += entry.bytes.len() as u64;
            self.entries.push_back(entry);
            self.lost.insert(sequence);
        }
    }

    fn index(&self, sequence: u64) -> Option<usize> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        (index < self.entries.len()).then_some(index)
    }

    fn entry(&self, sequence: u64) -> Option<&Entry> {
        self.entries.get(self.index(sequence)?)
    }

    fn arrived(&mut self, sequence: u64, summary: &mut AckSummary) {
        let Some(index) = self.index(sequence) else { return };
        let entry = &mut self.entries[index];
        match entry.state {
            State::Received | State::GivenUp => return,
            State::UnderWay => self.charges -= u64::from(entry.charge),
            State::Unreported | State::Lost | State::Unsent => {}
        }
        entry.state = State::Received;
        summary.arrived += 1;
        summary.arrived_charges += u64::from(entry.charge);
        // A repeated one may have arrived the first time: its last sending proves nothing.
        if !entry.repeated {
            self.evidence = self.evidence.max(entry.departure + 1);
        }
    }

    /// Finds the datagrams that are lost, and returns how many. A datagram is lost if
    /// [`REORDERED_MAX`] later ones arrived, or if one that was sent later arrived and it is
    /// overdue itself. The first rule is not for repeated ones, whose place in the sequence says
    /// nothing of when they were sent. What lies beyond the ranges of a full STATUS is not said to
    /// be missing; it takes up none of the path any more.
    fn find_lost(&mut self, status: Option<&Status>, overdue_us: u64, now: Time) -> u32 {
        self.overdue_at = None;
        let mut later = status.map_or(0, Self::reported);
        let mut ranges = status.map_or(&[][..], |status| &status.ranges).iter().peekable();
        let mut found = 0;
        let start = self.received_below.max(self.first).max(self.floor);
        let reported_below = self.reported_below.unwrap_or(u64::MAX);
        for sequence in start..self.next() {
            while let Some(&&(first, end)) = ranges.peek()
                && end <= sequence
            {
                later -= end - first;
                ranges.next();
            }
            let Some(index) = self.index(sequence) else { break };
            let entry = &mut self.entries[index];
            let is_reported = sequence < reported_below;
            if entry.state == State::Unreported && is_reported {
                entry.state = State::Lost;
                self.lost.insert(sequence);
                found += 1;
            }
            if entry.state != State::UnderWay {
                continue;
            }
            let sent_before = entry.departure < self.evidence;
            if !sent_before && later < REORDERED_MAX {
                // What was sent for the first time behind this one was sent later still.
                if entry.repeated { continue } else { break }
            }
            let overdue_at = entry.sent_at.plus_us(overdue_us);
            if (later >= REORDERED_MAX && !entry.repeated) || (sent_before && overdue_at <= now) {
                self.charges -= u64::from(entry.charge);
                if is_reported {
                    entry.state = State::Lost;
                    self.lost.insert(sequence);
                    found += 1;
                } else {
                    entry.state = State::Unreported;
                }
            } else if sent_before {
                let soonest = self.overdue_at.map_or(overdue_at, |at| at.min(overdue_at));
                self.overdue_at = Some(soonest);
            }
        }
        found
    }

    /// Returns the number of datagrams above the first gap that the receiver has.
    fn reported(status: &Status) -> u64 {
        status.ranges.iter().map(|&(first, end)| end - first).sum()
    }

    fn acknowledge_below(&mut self, below: u64, summary: &mut AckSummary) {
        while self.first < below {
            let Some(entry) = self.entries.pop_front() else { break };
            debug_assert!(matches!(entry.state, State::Received | State::GivenUp));
            self.bytes -= entry.bytes.len() as u64;
            self.first += 1;
            summary.acknowledged += 1;
        }
    }

    fn raise_floor(&mut self) {
        self.floor = self.floor.max(self.received_below);
        while let Some(entry) = self.entry(self.floor)
            && matches!(entry.state, State::Received | State::GivenUp)
        {
            self.floor += 1;
        }
    }
}

//! The receiving side of [`crate::replay`] and [`crate::replace`]: sees by their numbers which messages
//! are missing, and reports them to their sender.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use quelea_cmq_proto::{Key, Time};

use crate::message::Message;
pub use crate::missing::GapDetectorOptions;
use crate::missing::Missing;
use crate::numbered::{Frame, write_report};
use crate::queue::Queue;

/// Senders that are remembered; beyond, the one heard least recently is forgotten.
const SENDERS_MAX: usize = 4_096;

/// Messages of all senders that may be missing at a time: some megabytes of memory. Beyond, the sender
/// that misses most loses the older half.
const MISSING_MAX: u64 = 65_536;

/// Senders that are reported to between two pops.
const REPORTS_MAX: usize = 64;

/// A message with its number.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// The sending socket.
    pub from: SocketAddr,
    /// Its place among the sender's messages, from 0. A replayed message has the number that it had.
    pub number: u64,
    /// The lost one that it replaces.
    pub replaces: Option<u64>,
    /// The message.
    pub bytes: Bytes,
}

/// A queue of numbered messages. It works while it is popped from.
#[derive(Debug)]
pub struct GapDetector {
    queue: Queue,
    senders: Senders,
    reported: u64,
}

/// Who sends: a socket, and its session.
type SenderKey = (SocketAddr, u64);

/// All that were heard.
#[derive(Debug)]
struct Senders {
    options: GapDetectorOptions,
    by_key: HashMap<SenderKey, Sender>,
    /// Who was heard when, by numbers that grow.
    heard: BTreeMap<u64, SenderKey>,
    /// Who is to be asked when.
    due: BTreeSet<(Time, SenderKey)>,
    hearings: u64,
    missing: u64,
    lost: u64,
}

#[derive(Debug)]
struct Sender {
    report_to: Key,
    heard: u64,
    due: Option<Time>,
    missing: Missing,
}

impl GapDetector {
    /// Pops from `queue`.
    #[must_use]
    pub fn new(queue: Queue, options: GapDetectorOptions) -> Self {
        Self { queue, senders: Senders::new(options), reported: 0 }
    }

    /// Waits for the next message at most so long, and meanwhile asks for those that are missing.
    /// Messages come as they arrive, replayed ones later than those behind them; none comes twice.
    pub fn pop_timeout(&mut self, within: Duration) -> Option<Numbered> {
        let clock = self.queue.endpoint().driver().clock;
        let deadline = clock.after(within);
        loop {
            let now = clock.now();
            let ask_at = self.report(now);
            let until = ask_at.map_or(deadline, |ask_at| ask_at.min(deadline));
            let popped = self.queue.pop_timeout(Duration::from_micros(until.since_us(now)));
            match popped.and_then(|message| self.senders.take(&message, now)) {
                Some(numbered) => return Some(numbered),
                None if self.queue.is_closed() || clock.now() >= deadline => return None,
                None => {}
            }
        }
    }

    /// Reports what is missing and due; says when something will be.
    fn report(&mut self, now: Time) -> Option<Time> {
        for key in self.senders.due(now) {
            let Some((report_to, numbers)) = self.senders.take_requests(key, now) else { continue };
            if !numbers.is_empty() {
                self.reported += numbers.len() as u64;
                // A report that can't be sent is as lost as one that was lost on its way: it is not
                // waited for.
                let _ = self.queue.endpoint().try_push(report_to, &write_report(&numbers));
            }
        }
        self.senders.due.first().map(|(at, _)| *at)
    }

    /// Returns the number of messages that were pushed and did not come, however often they were
    /// asked for.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.senders.lost
    }

    /// Returns the number of messages that were asked for, each as often as it was.
    #[must_use]
    pub const fn reported(&self) -> u64 {
        self.reported
    }

    /// Returns the queue below.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Senders {
    fn new(options: GapDetectorOptions) -> Self {
        Self {
            options,
            by_key: HashMap::new(),
            heard: BTreeMap::new(),
            due: BTreeSet::new(),
            hearings: 0,
            missing: 0,
            lost: 0,
        }
    }

    fn take(&mut self, message: &Message, now: Time) -> Option<Numbered> {
        let frame = Frame::read(&message.bytes)?;
        let (report_to, at) = match frame {
            Frame::Message { report_to, number } | Frame::Replacement { report_to, number, .. } => {
                (report_to, number)
            }
            Frame::Mark { report_to, next } => (report_to, next),
            Frame::Gone { report_to, number } | Frame::Replaced { report_to, number } => {
                (report_to, number)
            }
        };
        let from = message.from;
        let key = (from, message.session);
        self.record(key, Key::new(from, report_to), at);
        let options = self.options;
        let frame_bytes = frame.bytes();
        let numbered = |number, replaces| {
            let bytes = message.bytes.slice(frame_bytes..);
            Numbered { from, number, replaces, bytes }
        };
        self.change(key, now, |missing| match frame {
            Frame::Mark { next, .. } => (None, missing.expect(next, &options)),
            // Each report of it is answered: only the first answer is news.
            Frame::Gone { number, .. } => (None, u64::from(missing.forget(number))),
            Frame::Replaced { number, .. } => {
                missing.forget(number);
                (None, 0)
            }
            Frame::Message { number, .. } => {
                let (is_new, lost) = missing.came(number, &options);
                (is_new.then(|| numbered(number, None)), lost)
            }
            Frame::Replacement { number, replaces, .. } => {
                missing.forget(replaces);
                let (is_new, lost) = missing.came(number, &options);
                (is_new.then(|| numbered(number, Some(replaces))), lost)
            }
        })
    }

    /// It was heard last; a new one is at the number `at`.
    fn record(&mut self, key: SenderKey, report_to: Key, at: u64) {
        self.hearings += 1;
        let hearing = self.hearings;
        let options = &self.options;
        let sender = self.by_key.entry(key).or_insert_with(|| Sender {
            report_to,
            heard: hearing,
            due: None,
            missing: Missing::of_sender_at(at, options),
        });
        self.heard.remove(&sender.heard);
        sender.heard = hearing;
        self.heard.insert(hearing, key);
        if self.by_key.len() > SENDERS_MAX
            && let Some((_, oldest)) = self.heard.pop_first()
            && let Some(sender) = self.by_key.remove(&oldest)
        {
            self.missing -= sender.missing.count();
            self.lost = self.lost.saturating_add(sender.missing.count());
            if let Some(due) = sender.due {
                self.due.remove(&(due, oldest));
            }
        }
    }

    /// Applies `change`, which says how many are lost, to what is missing of one sender, and does
    /// what follows from that.
    fn change<T>(
        &mut self,
        key: SenderKey,
        now: Time,
        change: impl FnOnce(&mut Missing) -> (Option<T>, u64),
    ) -> Option<T> {
        let sender = self.by_key.get_mut(&key)?;
        let before = sender.missing.count();
        let (value, lost) = change(&mut sender.missing);
        self.lost = self.lost.saturating_add(lost);
        self.missing = self.missing - before + sender.missing.count();
        self.plan(key, now);
        while self.missing > MISSING_MAX {
            let most = self.by_key.iter().max_by_key(|(_, sender)| sender.missing.count());
            let Some(most) = most.map(|(key, _)| *key) else { break };
            self.halve(most, now);
        }
        value
    }

    fn halve(&mut self, key: SenderKey, now: Time) {
        if let Some(sender) = self.by_key.get_mut(&key) {
            let gone = sender.missing.shrink(sender.missing.count() / 2);
            self.missing -= gone;
            self.lost = self.lost.saturating_add(gone);
            self.plan(key, now);
        }
    }

    /// Notes when it is to be asked.
    fn plan(&mut self, key: SenderKey, now: Time) {
        let Some(sender) = self.by_key.get_mut(&key) else { return };
        let due = sender.missing.ask_at(now);
        if due != sender.due {
            if let Some(before) = sender.due {
                self.due.remove(&(before, key));
            }
            self.due.extend(due.map(|due| (due, key)));
            sender.due = due;
        }
    }

    /// Returns the senders to ask now.
    fn due(&self, now: Time) -> Vec<SenderKey> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.take(REPORTS_MAX).map(|(_, key)| *key).collect()
    }

    /// Takes the numbers to ask one sender for; returns where to ask, and the numbers.
    fn take_requests(&mut self, key: SenderKey, now: Time) -> Option<(Key, Vec<u64>)> {
        let report_to = self.by_key.get(&key)?.report_to;
        let options = self.options;
        let numbers = self.change(key, now, |missing| {
            let (numbers, lost) = missing.take_requests(now, &options);
            (Some(numbers), lost)
        })?;
        Some((report_to, numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> (SenderKey, Key) {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        ((address, number), Key::new(address, 0))
    }

    fn expect(senders: &mut Senders, number: u64, next: u64) {
        let (key, report_to) = key(number);
        let options = senders.options;
        senders.record(key, report_to, 0);
        let nothing = senders.change(key, Time::from_micros(1), |missing| {
            (None::<()>, missing.expect(next, &options))
        });
        assert_eq!(nothing, None);
    }

    #[test]
    fn who_was_heard_least_recently_makes_room_for_a_new_sender() {
        let mut senders = Senders::new(GapDetectorOptions::default());
        for number in 0..SENDERS_MAX as u64 {
            expect(&mut senders, number, 2);
        }
        expect(&mut senders, 0, 2);
        expect(&mut senders, 1_000_000, 2);
        assert_eq!((senders.by_key.len(), senders.heard.len()), (SENDERS_MAX, SENDERS_MAX));
        assert_eq!(senders.due.len(), SENDERS_MAX);
        assert!(senders.by_key.contains_key(&key(0).0));
        assert!(!senders.by_key.contains_key(&key(1).0));
        assert!(senders.by_key.contains_key(&key(1_000_000).0));
        assert_eq!((senders.lost, senders.missing), (2, 2 * SENDERS_MAX as u64));
    }

    #[test]
    fn who_misses_most_makes_room_for_the_others() {
        let mut senders = Senders::new(GapDetectorOptions::default());
        expect(&mut senders, 1_000, 3);
        for number in 0..100 {
            expect(&mut senders, number, 4_096);
            assert!(senders.missing <= MISSING_MAX);
        }
        assert_eq!(senders.by_key[&key(1_000).0].missing.count(), 3);
        let missing: u64 = senders.by_key.values().map(|sender| sender.missing.count()).sum();
        assert_eq!(missing, senders.missing);
        assert_eq!(senders.lost + missing, 100 * 4_096 + 3);
        assert_eq!(senders.due(Time::from_micros(1)).len(), REPORTS_MAX);
    }
}

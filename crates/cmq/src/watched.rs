//! The receiving side of [`crate::replay`] and [`crate::replace`]: sees by their numbers which messages
//! are missing, and reports them to their sender.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use quelea_cmq_proto::{Key, Time};

use crate::message::Message;
use crate::numbered::{Frame, write_report};
use crate::queue::Queue;

/// Senders that are remembered; beyond, new ones are served but not watched.
const SENDERS_MAX: usize = 4_096;

/// Numbers that one report names: what a small datagram holds.
const REPORT_MAX: usize = 64;

/// How patient a [`Watched`] is.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// How long after a report the same message is reported again.
    pub ask_again_after: Duration,
    /// How often a message is reported before it counts as lost.
    pub asks_max: u32,
    /// Messages of one sender that may be missing; the oldest count as lost beyond.
    pub missing_max: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        // A round trip in a data centre is a fraction of this.
        Self { ask_again_after: Duration::from_millis(5), asks_max: 10, missing_max: 4_096 }
    }
}

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
pub struct Watched {
    queue: Queue,
    options: WatchOptions,
    senders: HashMap<(SocketAddr, u64), Sender>,
    lost: u64,
    reported: u64,
}

#[derive(Debug)]
struct Sender {
    report_to: Key,
    next: u64,
    missing: BTreeMap<u64, Missing>,
}

#[derive(Debug, Default)]
struct Missing {
    asks: u32,
    ask_at: Time,
}

impl Watched {
    /// Pops from `queue`.
    #[must_use]
    pub fn new(queue: Queue, options: WatchOptions) -> Self {
        Self { queue, options, senders: HashMap::new(), lost: 0, reported: 0 }
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
            let popped = self.queue.pop_timeout(Duration::from_micros(until.us_since(now)));
            match popped.and_then(|message| self.take(message)) {
                Some(numbered) => return Some(numbered),
                None if self.queue.is_closed() || clock.now() >= deadline => return None,
                None => {}
            }
        }
    }

    fn take(&mut self, message: Message) -> Option<Numbered> {
        let frame = Frame::read(&message.bytes)?;
        let (report_to, number, replaces) = match frame {
            Frame::Message { report_to, number } => (report_to, Some(number), None),
            Frame::Replacement { report_to, number, replaces } => {
                (report_to, Some(number), Some(replaces))
            }
            Frame::Mark { report_to, .. }
            | Frame::Gone { report_to, .. }
            | Frame::Replaced { report_to, .. } => (report_to, None, None),
        };
        let sender = self.sender(&message, report_to);
        let is_new = sender.is_none_or(|sender| match frame {
            Frame::Mark { next, .. } => {
                sender.expect(next);
                false
            }
            Frame::Gone { number, .. } | Frame::Replaced { number, .. } => {
                sender.missing.remove(&number);
                false
            }
            Frame::Message { number, .. } => sender.has(number),
            Frame::Replacement { number, replaces, .. } => {
                sender.missing.remove(&replaces);
                sender.has(number)
            }
        });
        if matches!(frame, Frame::Gone { .. }) {
            self.lost += 1;
        }
        let (from, number) = (message.from, number.filter(|_| is_new)?);
        let bytes = message.bytes.slice(frame.bytes()..);
        Some(Numbered { from, number, replaces, bytes })
    }

    fn sender(&mut self, message: &Message, report_to: u64) -> Option<&mut Sender> {
        let key = (message.from, message.session);
        if self.senders.len() >= SENDERS_MAX && !self.senders.contains_key(&key) {
            return None;
        }
        let report_to = Key::new(message.from, report_to);
        Some(self.senders.entry(key).or_insert_with(|| Sender {
            report_to,
            next: 0,
            missing: BTreeMap::new(),
        }))
    }

    /// Reports what is missing and due; says when something will be.
    fn report(&mut self, now: Time) -> Option<Time> {
        let mut next = None;
        for sender in self.senders.values_mut() {
            while sender.missing.len() > self.options.missing_max {
                sender.missing.pop_first();
                self.lost += 1;
            }
            let before = sender.missing.len();
            sender
                .missing
                .retain(|_, missing| missing.asks < self.options.asks_max || missing.ask_at > now);
            self.lost += (before - sender.missing.len()) as u64;
            let mut due = Vec::new();
            for (number, missing) in &mut sender.missing {
                if missing.ask_at <= now && due.len() < REPORT_MAX {
                    due.push(*number);
                    missing.asks += 1;
                    missing.ask_at = now.after(self.options.ask_again_after);
                }
                next = Some(next.map_or(missing.ask_at, |next: Time| next.min(missing.ask_at)));
            }
            if !due.is_empty() {
                self.reported += due.len() as u64;
                // A report that can't be sent is as lost as one that was lost on its way.
                let _ = self.queue.endpoint().push(sender.report_to, &write_report(&due));
            }
        }
        next
    }

    /// Messages that were pushed and did not come, however often they were asked for.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Messages that were asked for, each as often as it was.
    #[must_use]
    pub const fn reported(&self) -> u64 {
        self.reported
    }

    /// The queue below.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Sender {
    /// All below `next` were pushed.
    fn expect(&mut self, next: u64) {
        // A number far ahead is a lie or a restart: no more is remembered than a sender keeps.
        const AHEAD_MAX: u64 = 1 << 16;
        let from = self.next.max(next.saturating_sub(AHEAD_MAX));
        for number in from..next {
            self.missing.insert(number, Missing::default());
        }
        self.next = self.next.max(next);
    }

    /// Whether the message is new.
    fn has(&mut self, number: u64) -> bool {
        if number < self.next {
            return self.missing.remove(&number).is_some();
        }
        self.expect(number);
        self.next = number.saturating_add(1);
        true
    }
}

//! What of a log no crash explains, and what is lost by it.

use std::collections::BTreeMap;
use std::fmt;

use quelea_model::{QueueId, Seq};

use crate::Entry;

/// A place that cannot be read, found at a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The place.
    pub offset: u64,
    /// What is wrong there.
    pub problem: String,
    /// What is lost by it.
    pub lost: Vec<LostMessages>,
}

/// Messages that are lost, of one queue or of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostMessages {
    /// Their queue; unknown if nothing is left to tell.
    pub queue: Option<QueueId>,
    /// How many, if that is known; the others are between the first and the last number.
    pub messages: Option<u64>,
    /// The smallest number that may be lost.
    pub first: Seq,
    /// The greatest; `u64::MAX` if nothing came behind.
    pub last: Seq,
}

impl LostMessages {
    /// Returns a single lost message.
    pub(crate) const fn one(queue: QueueId, seq: Seq) -> Self {
        Self { queue: Some(queue), messages: Some(1), first: seq, last: seq }
    }
}

impl Damage {
    /// Returns how many messages are lost, as far as that is known.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.lost.iter().filter_map(|lost| lost.messages).sum()
    }

    /// Returns all of it as text for people, with the names of queues.
    pub fn describe(&self, name: impl Fn(QueueId) -> String) -> String {
        let Self { file, offset, problem, lost } = self;
        let mut text = format!("{file} is damaged at byte {offset}: {problem}");
        for LostMessages { queue, messages, first, last } in lost {
            let whose = queue.map_or_else(|| "any queue".to_owned(), &name);
            let count = messages.map_or_else(|| "what".to_owned(), |count| count.to_string());
            let numbers = match (first.0, last.0) {
                (first, last) if first == last => format!("number {first}"),
                (first, u64::MAX) => format!("numbers from {first} on"),
                (first, last) => format!("numbers from {first} to {last}"),
            };
            let whole = if messages.is_some() { "of" } else { "there was of" };
            text += &format!("; lost: {count} {whole} {whose}, {numbers}");
        }
        text
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|queue| format!("queue {}", queue.0)))
    }
}

/// Sums lost messages up by queue.
#[derive(Default)]
pub(crate) struct LossByQueue(BTreeMap<QueueId, LostMessages>);

impl LossByQueue {
    pub(crate) fn add_entry(&mut self, queue: QueueId, entry: &Entry) {
        self.add(queue, 1, entry.seq, entry.seq);
    }

    pub(crate) fn add(&mut self, queue: QueueId, messages: u64, first: Seq, last: Seq) {
        let lost = LostMessages { queue: Some(queue), messages: Some(0), first, last };
        let lost = self.0.entry(queue).or_insert(lost);
        lost.messages = lost.messages.map(|count| count + messages);
        lost.first = lost.first.min(first);
        lost.last = lost.last.max(last);
    }

    pub(crate) fn into_list(self) -> Vec<LostMessages> {
        self.0.into_values().collect()
    }
}

//! The naive model: a queue as SQS says that it is.

use quelea_broker::Receipt;
use quelea_model::Timestamp;

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) name: u64,
    pub(crate) group: u8,
    pub(crate) count: u16,
    /// The greatest count so far.
    pub(crate) most: u16,
    pub(crate) visible_at: Timestamp,
    /// An AMQP client has it.
    pub(crate) unacked: bool,
    /// How often it went to the other queue: receipts of before that stand for nothing.
    pub(crate) moves: u16,
}

impl Known {
    /// As it is in the other queue from now on.
    pub(crate) fn moved(self, now: Timestamp) -> Self {
        Self { count: 0, most: 0, visible_at: now, moves: self.moves + 1, ..self }
    }

    pub(crate) fn is_visible(&self, now: Timestamp) -> bool {
        !self.unacked && self.visible_at <= now
    }

    pub(crate) fn is_delayed(&self, now: Timestamp) -> bool {
        !self.unacked && self.visible_at > now && self.count == 0
    }

    pub(crate) fn is_in_flight(&self, now: Timestamp) -> bool {
        self.unacked || (self.visible_at > now && self.count > 0)
    }
}

/// A queue as it ought to be, in the order of publication.
#[derive(Debug, Default)]
pub(crate) struct Naive {
    pub(crate) messages: Vec<Known>,
    pub(crate) is_fifo: bool,
}

impl Naive {
    /// The place of the message that a receive takes next, which has taken one of `with` before.
    pub(crate) fn next(&self, now: Timestamp, with: Option<u8>) -> Option<usize> {
        let first = |wanted: &dyn Fn(&Known) -> bool| {
            self.messages.iter().position(|known| known.is_visible(now) && wanted(known))
        };
        if !self.is_fifo {
            return first(&|_| true);
        }
        let waits = |known: &Known| {
            let before = self.messages.iter().take_while(|other| other.name != known.name);
            before.into_iter().any(|other| other.group == known.group && other.is_delayed(now))
        };
        let is_free = |known: &Known| {
            let mut group = self.messages.iter().filter(|other| other.group == known.group);
            group.all(|other| !other.is_in_flight(now))
        };
        let same = with.and_then(|group| first(&|known| known.group == group && !waits(known)));
        same.or_else(|| first(&|known| is_free(known) && !waits(known)))
    }

    /// What a receipt stands for.
    pub(crate) fn find(&mut self, held: &Held) -> Option<&mut Known> {
        let mut messages = self.messages.iter_mut();
        messages.find(|known| known.name == held.name && known.moves == held.moves)
    }

    pub(crate) fn remove(&mut self, name: u64) {
        self.messages.retain(|known| known.name != name);
    }
}

/// A receipt that was got.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// The queue that gave it.
    pub(crate) at: usize,
    pub(crate) name: u64,
    /// How often the message had been moved by then.
    pub(crate) moves: u16,
    pub(crate) receipt: Receipt,
}

//! The naive model: a queue as SQS says that it is.

use std::collections::BTreeMap;

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
    /// Its place in the order of publication.
    pub(crate) order: u64,
    /// It is visible, and if it came back its group has its place for that.
    pub(crate) is_back: bool,
}

impl Known {
    /// Returns the message as it is in the other queue from now on.
    pub(crate) fn moved(self, now: Timestamp) -> Self {
        Self { count: 0, most: 0, visible_at: now, moves: self.moves + 1, is_back: true, ..self }
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
    pushed: u64,
    returns: u64,
    /// Where groups stand of which a message came back: behind the newest one of then.
    came_back: BTreeMap<u8, (u64, u64)>,
}

impl Naive {
    pub(crate) fn new(is_fifo: bool) -> Self {
        Self { is_fifo, ..Self::default() }
    }

    pub(crate) fn push(&mut self, known: Known) {
        self.pushed += 1;
        self.messages.push(Known { order: self.pushed, ..known });
    }

    /// Notes what came back since the last time.
    pub(crate) fn note_returns(&mut self, now: Timestamp) {
        let messages = &self.messages;
        self.came_back.retain(|group, _| messages.iter().any(|known| known.group == *group));
        let is_new = |known: &&mut Known| known.is_visible(now) && !known.is_back;
        let mut back: Vec<_> = self.messages.iter_mut().filter(is_new).collect();
        back.sort_by_key(|known| (known.visible_at, known.order));
        for known in back {
            known.is_back = true;
            if known.count > 0 {
                self.returns += 1;
                self.came_back.insert(known.group, (self.pushed, self.returns));
            }
        }
    }

    /// Takes the message at that place: neither it nor its group counts as one that came back any
    /// more.
    pub(crate) fn take(&mut self, place: usize) -> &mut Known {
        let known = &mut self.messages[place];
        known.is_back = false;
        self.came_back.remove(&known.group);
        known
    }

    /// After a start nobody knows any more what came back.
    pub(crate) fn forget_returns(&mut self, now: Timestamp) {
        self.note_returns(now);
        self.came_back.clear();
    }

    /// Returns the place of the message that a receive takes next. `with` is the one that it took
    /// last: its group, and its order.
    pub(crate) fn next(&self, now: Timestamp, with: Option<(u8, u64)>) -> Option<usize> {
        let visible = || self.messages.iter().filter(|known| known.is_visible(now));
        let place = |wanted: &Known| self.messages.iter().position(|k| k.order == wanted.order);
        if !self.is_fifo {
            return visible().next().and_then(place);
        }
        // Behind none of its group that is delayed, or in flight and not the receive's own.
        let waits = |known: &Known, own: u64| {
            let group = self.messages.iter().filter(|other| other.group == known.group);
            let mut before = group.filter(|other| other.order < known.order);
            before.any(|k| k.is_delayed(now) || k.is_in_flight(now) && k.order > own)
        };
        if let Some((group, own)) = with
            && let Some(first) = visible().find(|known| known.group == group)
            && first.order > own
            && !waits(first, own)
        {
            return place(first);
        }
        let heads = visible().filter(|known| {
            let mut group = visible().filter(|other| other.group == known.group);
            group.all(|other| other.order >= known.order) && !waits(known, 0)
        });
        let stands = |known: &&Known| {
            let own = (known.order, 0);
            self.came_back.get(&known.group).map_or(own, |back| own.max(*back))
        };
        heads.min_by_key(stands).and_then(place)
    }

    /// Returns what a receipt stands for.
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

//! What is to happen at which second: a heap, in the order of time and then of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a queue by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The day goes on.
    Day,
    /// A producer comes.
    Join,
    /// One goes.
    Leave { slot: u32, life: u32 },
    /// One sends more for a while.
    Burst { slot: u32, life: u32 },
    /// And then as before.
    Calm { slot: u32, life: u32 },
    /// All send more for a while.
    Flash,
    /// And then as before.
    FlashOver,
    /// A relay has booted.
    Booted { relay: u64 },
    /// A relay dies.
    Crash { relay: u64 },
    /// The directory declares it dead.
    Found { relay: u64 },
}

#[derive(Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u32, u64, Event)>>,
    entered: u64,
}

impl Events {
    /// Enters what happens after so many seconds, at least one.
    pub(super) fn after(&mut self, now: u32, seconds: f64, event: Event) {
        let wait = seconds.clamp(1.0, f64::from(u32::MAX / 2)) as u32;
        self.entered += 1;
        self.heap.push(Reverse((now + wait, self.entered, event)));
    }

    /// When the next one is.
    pub(super) fn next_at(&self) -> Option<u32> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next that is due.
    pub(super) fn pop(&mut self, now: u32) -> Option<Event> {
        let Reverse((at, _, event)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some(event)
    }
}

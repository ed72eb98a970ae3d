//! The paper's priority search queue: a deadline for each key, the oldest in one look, and any of
//! them changed or deleted by its key. Here the key is a destination's slot, so the search half is an
//! array of places, and the priority half a binary heap. The crate `priority-queue` is not used: it
//! hashes keys where an index does, and its licence is not among those of deny.toml.

use crate::Time;

const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline: Time,
    /// Equal deadlines come in the order in which they were set, as in a line.
    order: u64,
    slot: u32,
}

/// At most one deadline of each slot.
#[derive(Debug, Default)]
pub(crate) struct PrioritySearchQueue {
    heap: Vec<Entry>,
    /// Where each slot's entry is in the heap, or [`NOWHERE`].
    places: Vec<u32>,
    last_order: u64,
}

impl PrioritySearchQueue {
    /// Sets or changes the slot's deadline.
    pub(crate) fn set(&mut self, slot: u32, deadline: Time) {
        let index = slot as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
        }
        self.last_order += 1;
        let entry = Entry { deadline, order: self.last_order, slot };
        let place = match self.places[index] {
            NOWHERE => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
            place => {
                self.heap[place as usize] = entry;
                place as usize
            }
        };
        self.settle(place);
    }

    /// Deletes the slot's deadline; does nothing if it has none.
    pub(crate) fn delete(&mut self, slot: u32) {
        let Some(place) = self.place(slot) else { return };
        self.places[slot as usize] = NOWHERE;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.settle(place);
        }
    }

    /// Returns the oldest deadline, with its slot.
    pub(crate) fn oldest(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|entry| (entry.deadline, entry.slot))
    }

    /// Returns the slot's deadline.
    pub(crate) fn get(&self, slot: u32) -> Option<Time> {
        self.place(slot).map(|place| self.heap[place].deadline)
    }

    fn place(&self, slot: u32) -> Option<usize> {
        self.places
            .get(slot as usize)
            .filter(|place| **place != NOWHERE)
            .map(|place| *place as usize)
    }

    /// Moves the entry at `place`, whose neighbours are in order, to where it belongs.
    fn settle(&mut self, place: usize) {
        let entry = self.heap[place];
        let mut place = place;
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        loop {
            let left = 2 * place + 1;
            let Some(&first) = self.heap.get(left) else { break };
            let (child, least) = match self.heap.get(left + 1) {
                Some(&second) if second < first => (left + 1, second),
                _ => (left, first),
            };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.slot as usize] =
            u32::try_from(place).expect("slots have 32 bits, and each has one place");
    }
}

//! Up to 512 consecutive entries of an index, with their bodies and expiries as far as there are.

use std::sync::Arc;

use quelea_model::{Message, Resident, Seq, Timestamp};

use crate::queued_message::QueuedMessage;
use crate::{Entry, EntryFlags, Location, NEVER};

/// Entries of one chunk. 512 × 24 bytes move in some 200 ns when one is inserted in the middle.
pub(crate) const CHUNK_ENTRIES: usize = 512;

/// Sorted entries. The live ones are `entries[head..]`; what lies before is room for insertions at
/// the front. The side arrays are empty or as long as `entries`.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    entries: Vec<Entry>,
    expiries: Vec<Timestamp>,
    bodies: Vec<Option<Arc<Message>>>,
    head: usize,
    /// Bytes of the bodies that are here.
    resident_bytes: Resident,
    /// Number of the bodies that are here.
    resident: usize,
    /// Number of those whose entries are in the log, so that they may be dropped.
    evictable: usize,
    /// Entries that are not in the log.
    unstored: usize,
    /// Something was taken from or put into the middle: the log between the first and the last
    /// entry may hold records of the queue that are not entries, so it cannot be a range.
    sparse: bool,
    /// Nothing may be appended: what the queue got behind the last entry may have gone already.
    closed: bool,
}

impl Chunk {
    /// Returns a chunk that grows at its end, at first as small as its content.
    pub(crate) fn small() -> Self {
        Self::default()
    }

    /// Returns a chunk that will become full at its end.
    pub(crate) fn full_size() -> Self {
        Self { entries: Vec::with_capacity(CHUNK_ENTRIES), ..Self::default() }
    }

    /// Returns a chunk that will become full at its front.
    pub(crate) fn growing_forward() -> Self {
        Self {
            entries: vec![Entry::default(); CHUNK_ENTRIES],
            head: CHUNK_ENTRIES,
            sparse: true,
            ..Self::default()
        }
    }

    /// Returns a chunk of entries that are all messages that the queue got between the first and
    /// the last.
    pub(crate) fn whole(entries: Vec<Entry>, expiries: Vec<Timestamp>) -> Self {
        let unstored = entries.iter().filter(|e| !e.is_stored()).count();
        Self { entries, expiries, unstored, closed: true, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.head
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[self.head..]
    }

    /// Returns the entries, whose locations may be changed, and the expiries.
    pub(crate) fn entries_mut(&mut self) -> (&mut [Entry], &[Timestamp]) {
        let expiries = if self.expiries.is_empty() { &[][..] } else { &self.expiries[self.head..] };
        (&mut self.entries[self.head..], expiries)
    }

    pub(crate) fn expiries(&self) -> &[Timestamp] {
        if self.expiries.is_empty() { &[] } else { &self.expiries[self.head..] }
    }

    pub(crate) const fn resident_bytes(&self) -> Resident {
        self.resident_bytes
    }

    pub(crate) const fn unstored(&self) -> usize {
        self.unstored
    }

    /// Returns how many bodies may be dropped.
    pub(crate) const fn evictable(&self) -> usize {
        self.evictable
    }

    pub(crate) const fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Returns the bytes that entries and side arrays take.
    pub(crate) const fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.expiries.capacity() * size_of::<Timestamp>()
            + self.bodies.capacity() * size_of::<Option<Arc<Message>>>()
    }

    fn has_room_at_end(&self) -> bool {
        self.entries.len() < CHUNK_ENTRIES
    }

    /// Returns whether new messages may be appended.
    pub(crate) fn is_open(&self) -> bool {
        self.has_room_at_end() && !self.closed
    }

    pub(crate) fn has_room(&self) -> bool {
        self.head > 0 || self.has_room_at_end()
    }

    pub(crate) fn first_seq(&self) -> Option<Seq> {
        self.entries().first().map(|e| e.seq)
    }

    pub(crate) fn last_seq(&self) -> Option<Seq> {
        self.entries.last().filter(|_| !self.is_empty()).map(|e| e.seq)
    }

    pub(crate) fn expiry(&self, at: usize) -> Option<Timestamp> {
        self.expiries.get(self.head + at).copied().filter(|e| *e != NEVER)
    }

    pub(crate) fn body(&self, at: usize) -> Option<&Arc<Message>> {
        self.bodies.get(self.head + at).and_then(Option::as_ref)
    }

    /// Returns the index among the live entries: `Ok` of the entry, `Err` of its place.
    pub(crate) fn search(&self, seq: Seq) -> Result<usize, usize> {
        self.entries().binary_search_by_key(&seq, |e| e.seq)
    }

    /// Appends; the caller has checked the order and the room.
    pub(crate) fn push_back(&mut self, ready: QueuedMessage) {
        let QueuedMessage { entry, expires_at, body } = ready;
        if expires_at.is_some() || !self.expiries.is_empty() {
            self.allocate_expiries();
            self.expiries.push(expires_at.unwrap_or(NEVER));
        }
        if body.is_some() || !self.bodies.is_empty() {
            self.allocate_bodies();
            self.count_body(&entry, body.as_ref());
            self.bodies.push(body);
        }
        self.unstored += usize::from(!entry.is_stored());
        self.entries.push(entry);
    }

    /// Inserts at a live index; the caller has checked the order and that there is room.
    pub(crate) fn insert(&mut self, at: usize, ready: QueuedMessage) {
        if at == self.len() && self.has_room_at_end() {
            self.sparse = true;
            return self.push_back(ready);
        }
        let QueuedMessage { entry, expires_at, body } = ready;
        if expires_at.is_some() {
            self.allocate_expiries();
        }
        if body.is_some() {
            self.allocate_bodies();
        }
        self.count_body(&entry, body.as_ref());
        self.unstored += usize::from(!entry.is_stored());
        self.sparse = true;
        let expiry = expires_at.unwrap_or(NEVER);
        let forward = self.head > 0 && (at <= self.len() / 2 || !self.has_room_at_end());
        let head = self.head;
        if forward {
            insert_before(&mut self.entries, head, at, entry);
            insert_before(&mut self.expiries, head, at, expiry);
            insert_before(&mut self.bodies, head, at, body);
            self.head -= 1;
        } else {
            self.entries.insert(head + at, entry);
            if !self.expiries.is_empty() {
                self.expiries.insert(head + at, expiry);
            }
            if !self.bodies.is_empty() {
                self.bodies.insert(head + at, body);
            }
        }
    }

    /// Puts another entry into the place of one with the same number.
    pub(crate) fn replace(&mut self, at: usize, ready: QueuedMessage) -> QueuedMessage {
        let QueuedMessage { entry, expires_at, body } = ready;
        let index = self.head + at;
        if expires_at.is_some() {
            self.allocate_expiries();
        }
        if body.is_some() {
            self.allocate_bodies();
        }
        let old = QueuedMessage {
            entry: self.entries[index],
            expires_at: self.expiry(at),
            body: self.take_body(index),
        };
        self.unstored -= usize::from(!old.entry.is_stored());
        self.unstored += usize::from(!entry.is_stored());
        self.entries[index] = entry;
        if let Some(slot) = self.expiries.get_mut(index) {
            *slot = expires_at.unwrap_or(NEVER);
        }
        self.count_body(&entry, body.as_ref());
        if let Some(slot) = self.bodies.get_mut(index) {
            *slot = body;
        }
        old
    }

    pub(crate) fn pop_front(&mut self) -> Option<QueuedMessage> {
        let entry = *self.entries.get(self.head)?;
        let ready =
            QueuedMessage { entry, expires_at: self.expiry(0), body: self.take_body(self.head) };
        self.unstored -= usize::from(!entry.is_stored());
        self.head += 1;
        if self.is_empty() {
            self.reset();
        }
        Some(ready)
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<QueuedMessage> {
        if at == 0 {
            return self.pop_front();
        }
        let index = self.head + at;
        let entry = *self.entries.get(index)?;
        let ready =
            QueuedMessage { entry, expires_at: self.expiry(at), body: self.take_body(index) };
        self.unstored -= usize::from(!entry.is_stored());
        self.sparse = true;
        let head = self.head;
        if at < self.len() / 2 {
            self.entries.copy_within(head..index, head + 1);
            if !self.expiries.is_empty() {
                self.expiries.copy_within(head..index, head + 1);
            }
            if !self.bodies.is_empty() {
                self.bodies[head..=index].rotate_right(1);
            }
            self.head += 1;
        } else {
            self.entries.remove(index);
            if !self.expiries.is_empty() {
                self.expiries.remove(index);
            }
            if !self.bodies.is_empty() {
                self.bodies.remove(index);
            }
        }
        Some(ready)
    }

    /// Cuts the chunk; returns what was from this live index on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let index = self.head + at;
        let mut rest = Self { sparse: self.sparse, closed: self.closed, ..Self::full_size() };
        rest.entries.extend(self.entries.drain(index..));
        if !self.expiries.is_empty() {
            rest.expiries = self.expiries.split_off(index);
        }
        if !self.bodies.is_empty() {
            rest.bodies = self.bodies.split_off(index);
        }
        self.recount();
        rest.recount();
        rest
    }

    /// Drops bodies of stored entries from the end until `wanted` bytes are free; returns the bytes.
    pub(crate) fn evict(&mut self, wanted: usize) -> usize {
        let before = self.resident_bytes.all;
        for index in (self.head..self.bodies.len()).rev() {
            if self.evictable == 0 || before - self.resident_bytes.all >= wanted {
                break;
            }
            if self.entries[index].is_stored() {
                drop(self.take_body(index));
            }
        }
        if self.resident == 0 {
            self.bodies = Vec::new();
        }
        before - self.resident_bytes.all
    }

    /// Sets a body; false if it is there already.
    pub(crate) fn set_body(&mut self, at: usize, body: &Arc<Message>) -> bool {
        self.allocate_bodies();
        let index = self.head + at;
        if self.bodies[index].is_some() {
            return false;
        }
        self.bodies[index] = Some(Arc::clone(body));
        let entry = self.entries[index];
        self.count_body(&entry, Some(body));
        true
    }

    /// Notes that an entry was written to the log.
    pub(crate) fn set_stored(&mut self, at: usize, location: Location) {
        let index = self.head + at;
        let entry = &mut self.entries[index];
        if !entry.is_stored() {
            self.unstored -= 1;
            self.evictable += usize::from(self.bodies.get(index).is_some_and(Option::is_some));
        }
        entry.flags = entry.flags.with(EntryFlags::STORED);
        entry.location = location;
    }

    /// Notes that an entry's record was copied to another place; returns the old one.
    pub(crate) fn relocate(&mut self, at: usize, location: Location) -> Location {
        std::mem::replace(&mut self.entries[self.head + at].location, location)
    }

    /// Notes that the log between the entries may hold others.
    pub(crate) const fn set_sparse(&mut self) {
        self.sparse = true;
    }

    fn take_body(&mut self, index: usize) -> Option<Arc<Message>> {
        let body = self.bodies.get_mut(index)?.take()?;
        self.resident_bytes -= body.resident();
        self.resident -= 1;
        self.evictable -= usize::from(self.entries[index].is_stored());
        Some(body)
    }

    fn count_body(&mut self, entry: &Entry, body: Option<&Arc<Message>>) {
        if let Some(body) = body {
            self.resident_bytes += body.resident();
            self.resident += 1;
            self.evictable += usize::from(entry.is_stored());
        }
    }

    fn allocate_expiries(&mut self) {
        if self.expiries.len() < self.entries.len() || self.expiries.capacity() == 0 {
            self.expiries.reserve_exact(self.entries.capacity() - self.expiries.len());
            self.expiries.resize(self.entries.len(), NEVER);
        }
    }

    fn allocate_bodies(&mut self) {
        if self.bodies.len() < self.entries.len() || self.bodies.capacity() == 0 {
            self.bodies.reserve_exact(self.entries.capacity() - self.bodies.len());
            self.bodies.resize(self.entries.len(), None);
        }
    }

    fn recount(&mut self) {
        self.unstored = self.entries().iter().filter(|e| !e.is_stored()).count();
        self.resident = 0;
        self.evictable = 0;
        self.resident_bytes = Resident::default();
        for (entry, body) in self.entries.iter().zip(&self.bodies) {
            let Some(body) = body else { continue };
            self.resident += 1;
            self.evictable += usize::from(entry.is_stored());
            self.resident_bytes += body.resident();
        }
    }

    /// Makes an emptied chunk fit for reuse.
    fn reset(&mut self) {
        self.entries.clear();
        self.expiries.clear();
        self.bodies.clear();
        self.head = 0;
        self.sparse = false;
        self.closed = false;
    }
}

/// Inserts at live index `at` by moving what is before it one place towards the front, where
/// `head > 0` places are unused. Nothing happens to an unused side array.
fn insert_before<T>(array: &mut [T], head: usize, at: usize, value: T) {
    if array.is_empty() {
        return;
    }
    array[head - 1..head + at].rotate_left(1);
    array[head + at - 1] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insertion_before_the_head_moves_only_what_precedes_it() {
        let mut array = vec![0, 0, 10, 30, 40];
        insert_before(&mut array, 2, 1, 20);
        assert_eq!(array, [0, 10, 20, 30, 40]);
        insert_before(&mut array, 1, 0, 5);
        assert_eq!(array, [5, 10, 20, 30, 40]);
    }
}

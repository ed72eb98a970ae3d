//! The live, ready messages of one queue, sorted by number.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::{Message, QueueId, Resident, Seq, Timestamp};

use crate::chunk::Chunk;
use crate::cleared_range::ClearedRange;
use crate::queued_message::{
    CheckpointCursor, Drained, Front, NextRead, QueuedMessage, QueuedMessageRef,
};
use crate::slot::Slot;
use crate::{Entry, LoadItem, Loaded, LoadedRange, Location, NEVER, PagedRange, Store};

/// Chunks at the head that are never paged out: they are read next.
const HEAD_CHUNKS_KEPT: usize = 2;

/// A queue's ready messages (one index per priority in a priority queue), sorted by [`Seq`].
///
/// Entries lie in chunks; bodies and expiries in side arrays that exist only where needed. Appending
/// and taking from the front cost O(1); inserting near the front, for a requeue, a short move.
///
/// A queue has to push every message that is appended for it, unless the index is empty and the
/// message leaves at once; otherwise a range read back from the log would hold strangers.
#[derive(Debug, Default)]
pub struct QueueIndex {
    pub(crate) slots: VecDeque<Slot>,
    pub(crate) len: usize,
    pub(crate) body_bytes: u64,
    resident: Resident,
    index_bytes: usize,
    pub(crate) unstored: usize,
    /// Bodies that may be dropped from memory.
    pub(crate) evictable: usize,
    /// Where none of them are.
    pub(crate) evicted: ClearedRange,
    /// Where all is in the log.
    pub(crate) spilled: ClearedRange,
}

impl QueueIndex {
    /// Returns an empty index; takes no memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of messages, paged-out ones included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the sum of the bodies' bytes, wherever they are.
    #[must_use]
    pub const fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Returns the bytes that messages in memory take.
    #[must_use]
    pub const fn resident_bytes(&self) -> usize {
        self.resident.all
    }

    /// Returns the same as [`QueueIndex::resident_bytes`], and what of it are bodies that other
    /// queues hold too.
    #[must_use]
    pub const fn resident(&self) -> Resident {
        self.resident
    }

    /// Returns the bytes that the index itself takes.
    #[must_use]
    pub const fn index_bytes(&self) -> usize {
        self.index_bytes
    }

    /// Returns how many messages are not in the log.
    #[must_use]
    pub const fn unstored_len(&self) -> usize {
        self.unstored
    }

    /// Returns the greatest number in the index.
    #[must_use]
    pub fn last_seq(&self) -> Option<Seq> {
        self.slots.back().map(Slot::last_seq)
    }

    /// Adds a message at the end. If its number is not the greatest it goes to its place.
    pub fn push_back(
        &mut self,
        entry: Entry,
        expires_at: Option<Timestamp>,
        body: Option<Arc<Message>>,
    ) {
        let ready = QueuedMessage { entry, expires_at, body };
        match self.slots.back_mut() {
            Some(Slot::Chunk(chunk)) if chunk.is_open() => {
                if chunk.last_seq().is_some_and(|last| last >= entry.seq) {
                    return self.insert_message(ready);
                }
                self.count_in(&ready);
                self.change_chunk(self.slots.len() - 1, |chunk| chunk.push_back(ready));
            }
            Some(slot) if slot.last_seq() >= entry.seq => self.insert_message(ready),
            last => {
                let chunk = if last.is_none() { Chunk::small() } else { Chunk::full_size() };
                self.count_in(&ready);
                self.add_chunk(self.slots.len(), chunk, |chunk| chunk.push_back(ready));
            }
        }
    }

    /// Puts a message to its place by number: a requeue. One with the same number is replaced.
    pub fn insert(
        &mut self,
        entry: Entry,
        expires_at: Option<Timestamp>,
        body: Option<Arc<Message>>,
    ) {
        if self.last_seq().is_none_or(|last| last < entry.seq) {
            self.push_back(entry, expires_at, body);
            // What lay between it and the one before may be gone.
            return self.set_sparse(entry.seq);
        }
        self.insert_message(QueuedMessage { entry, expires_at, body });
    }

    /// Returns what comes next.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Front<'_> {
        match self.slots.front() {
            None => Front::Empty,
            Some(Slot::PagedRange(range)) => Front::Paged(range),
            Some(Slot::Chunk(chunk)) => match chunk.entries().first() {
                None => Front::Empty,
                Some(entry) => {
                    Front::Entry { entry, expires_at: chunk.expiry(0), body: chunk.body(0) }
                }
            },
        }
    }

    /// Takes the first message; `None` if there is none or it is paged out.
    pub fn pop_front(&mut self) -> Option<QueuedMessage> {
        let Some(Slot::Chunk(chunk)) = self.slots.front_mut() else {
            return None;
        };
        let before = (chunk.resident_bytes(), chunk.evictable());
        let ready = chunk.pop_front()?;
        self.resident -= before.0 - chunk.resident_bytes();
        self.evictable -= before.1 - chunk.evictable();
        let empty = chunk.is_empty();
        self.count_out(&ready.entry);
        if empty && self.slots.len() > 1 {
            self.remove_slot(0);
        }
        Some(ready)
    }

    /// Takes the range at the front, to move it to another index.
    pub fn pop_front_paged_range(&mut self) -> Option<PagedRange> {
        let Some(Slot::PagedRange(range)) = self.slots.front() else {
            return None;
        };
        let range = *range;
        self.count_paged_range_out(&range);
        self.remove_slot(0);
        Some(range)
    }

    /// Returns the message of a number, if it is here and not paged out.
    #[must_use]
    pub fn get(&self, seq: Seq) -> Option<QueuedMessageRef<'_>> {
        let (slot, at) = self.find(seq)?;
        let chunk = self.slots[slot].chunk()?;
        let entry = &chunk.entries()[at];
        Some(QueuedMessageRef { entry, expires_at: chunk.expiry(at), body: chunk.body(at) })
    }

    /// Returns the number of the message that has `n` before it; `None` if that one is paged out.
    #[must_use]
    pub fn nth(&self, mut n: usize) -> Option<Seq> {
        for slot in &self.slots {
            let entries = slot.chunk()?.entries();
            match entries.get(n) {
                Some(entry) => return Some(entry.seq),
                None => n -= entries.len(),
            }
        }
        None
    }

    /// Notes that the queue gets a message which is not pushed now, greater than all that are here:
    /// it is not visible yet.
    pub fn skip(&mut self) {
        if let Some(Slot::Chunk(chunk)) = self.slots.back_mut()
            && !chunk.is_empty()
        {
            chunk.set_sparse();
        }
    }

    /// Returns the range that a number would be in.
    #[must_use]
    pub fn paged_range_of(&self, seq: Seq) -> Option<&PagedRange> {
        let after = self.slots.partition_point(|slot| slot.first_seq() <= seq);
        match self.slots.get(after.checked_sub(1)?)? {
            Slot::PagedRange(range) if range.last >= seq => Some(range),
            _ => None,
        }
    }

    /// Takes the message of a number; `None` if it is not here or paged out.
    pub fn remove(&mut self, seq: Seq) -> Option<QueuedMessage> {
        let (slot, at) = self.find(seq)?;
        let Slot::Chunk(chunk) = &mut self.slots[slot] else {
            return None;
        };
        let before = (chunk.resident_bytes(), chunk.evictable());
        let ready = chunk.remove(at)?;
        self.resident -= before.0 - chunk.resident_bytes();
        self.evictable -= before.1 - chunk.evictable();
        let empty = chunk.is_empty();
        self.count_out(&ready.entry);
        if empty && self.slots.len() > 1 {
            self.remove_slot(slot);
        }
        Some(ready)
    }

    /// Hands out all that is in the index and leaves it empty: purge and delete.
    pub fn drain(&mut self, f: &mut dyn FnMut(Drained)) {
        for slot in std::mem::take(self).slots {
            match slot {
                Slot::PagedRange(range) => f(Drained::PagedRange(range)),
                Slot::Chunk(mut chunk) => {
                    while let Some(ready) = chunk.pop_front() {
                        f(Drained::Entry(ready));
                    }
                }
            }
        }
    }

    /// Notes that a message was written to the log. False if it is not here any more; then the
    /// caller has to release it.
    pub fn mark_stored(&mut self, seq: Seq, location: Location) -> bool {
        let Some((slot, at)) = self.find(seq) else {
            return false;
        };
        self.evicted.admit(seq);
        self.change_chunk(slot, |chunk| chunk.set_stored(at, location)).is_some()
    }

    /// Replaces chunks by ranges, from the end towards the head, until `bytes_wanted` of the
    /// index are free. Returns the bytes. Only chunks that the log restores exactly can go; the head
    /// stays.
    pub fn page_out(&mut self, bytes_wanted: usize) -> usize {
        let before = self.index_bytes;
        // The last chunk is still growing.
        for at in (HEAD_CHUNKS_KEPT..self.slots.len().saturating_sub(1)).rev() {
            if before.saturating_sub(self.index_bytes) >= bytes_wanted {
                break;
            }
            let Slot::Chunk(chunk) = &self.slots[at] else { continue };
            if chunk.is_sparse() {
                continue;
            }
            if let Some(range) = PagedRange::of(chunk.entries(), chunk.expiries()) {
                self.index_bytes -= chunk.heap_bytes();
                self.resident -= chunk.resident_bytes();
                self.evictable -= chunk.evictable();
                self.slots[at] = Slot::PagedRange(range);
            }
        }
        before.saturating_sub(self.index_bytes)
    }

    /// Returns what to read so that the first messages, up to `bytes_max` of bodies (at least one),
    /// are in memory. Only one load at a time may be under way for an index.
    #[must_use]
    pub fn next_read(&self, bytes_max: usize) -> NextRead {
        let mut items = Vec::new();
        let mut bytes = 0;
        'slots: for slot in &self.slots {
            let chunk = match slot {
                Slot::Chunk(chunk) => chunk,
                Slot::PagedRange(range) if items.is_empty() => return NextRead::PagedRange(*range),
                Slot::PagedRange(_) => break,
            };
            for (at, entry) in chunk.entries().iter().enumerate() {
                bytes += entry.body_bytes as usize;
                if bytes > bytes_max && bytes > entry.body_bytes as usize {
                    break 'slots;
                }
                if entry.is_stored() && chunk.body(at).is_none() {
                    items.push(LoadItem {
                        seq: entry.seq,
                        location: entry.location,
                        body_bytes: entry.body_bytes,
                    });
                }
                bytes += LOAD_OVERHEAD_BYTES;
            }
        }
        if items.is_empty() { NextRead::Nothing } else { NextRead::Items(items) }
    }

    /// Takes what was loaded. Messages that have left meanwhile are ignored.
    pub fn fill(&mut self, loaded: Loaded) {
        if let Some(range) = loaded.range {
            self.page_in(range);
        }
        for (seq, message) in &loaded.messages {
            if let Some((slot, at)) = self.find(*seq) {
                self.evicted.admit(*seq);
                self.change_chunk(slot, |chunk| chunk.set_body(at, message));
            }
        }
    }

    /// Passes up to some `max` entries to the store's checkpoint, going on at the cursor. True when
    /// all have been given.
    pub fn checkpoint(
        &mut self,
        queue: QueueId,
        cursor: &mut CheckpointCursor,
        max: usize,
        store: &mut dyn Store,
    ) -> bool {
        let mut at = self.slots.partition_point(|slot| slot.last_seq() < cursor.next);
        let mut given = 0;
        while let Some(slot) = self.slots.get_mut(at) {
            if given >= max {
                return false;
            }
            if slot.is_empty() {
                break;
            }
            cursor.next = slot.last_seq().next();
            match slot {
                Slot::PagedRange(range) => {
                    store.checkpoint_paged_range(queue, range);
                    given += 1;
                }
                Slot::Chunk(chunk) => {
                    let sparse = chunk.is_sparse();
                    let (entries, expiries) = chunk.entries_mut();
                    given += entries.len();
                    if sparse {
                        store.checkpoint_entries(queue, entries, expiries);
                    } else {
                        store.checkpoint_run(queue, entries, expiries);
                    }
                }
            }
            at += 1;
        }
        true
    }

    /// Returns all entries that are not paged out, in order. For recovery and tests.
    pub fn entries(&self) -> impl Iterator<Item = (&Entry, Option<Timestamp>)> {
        self.slots.iter().filter_map(Slot::chunk).flat_map(|chunk| {
            chunk.entries().iter().enumerate().map(|(at, entry)| (entry, chunk.expiry(at)))
        })
    }

    /// Returns the entries from this number on that are not paged out, in order.
    pub fn entries_from(&self, seq: Seq) -> impl Iterator<Item = &Entry> {
        let first = self.slots.partition_point(|slot| slot.last_seq() < seq);
        let chunks = self.slots.range(first..).filter_map(Slot::chunk);
        chunks.flat_map(move |chunk| {
            let at = chunk.entries().partition_point(|entry| entry.seq < seq);
            &chunk.entries()[at..]
        })
    }

    /// Returns the entries and paged-out ranges from this number on, in order. The first range may
    /// begin before it.
    pub fn all_from(&self, seq: Seq) -> impl Iterator<Item = Front<'_>> {
        let first = self.slots.partition_point(|slot| slot.last_seq() < seq);
        self.slots.range(first..).flat_map(move |slot| {
            let (range, chunk) = match slot {
                Slot::PagedRange(range) => (Some(Front::Paged(range)), None),
                Slot::Chunk(chunk) => (None, Some(chunk)),
            };
            let entries = chunk.into_iter().flat_map(move |chunk| {
                let at = chunk.entries().partition_point(|entry| entry.seq < seq);
                (at..chunk.len()).map(|at| Front::Entry {
                    entry: &chunk.entries()[at],
                    expires_at: chunk.expiry(at),
                    body: chunk.body(at),
                })
            });
            range.into_iter().chain(entries)
        })
    }

    /// Returns all paged-out ranges, in order.
    pub fn paged_ranges(&self) -> impl Iterator<Item = &PagedRange> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::PagedRange(range) => Some(range),
            Slot::Chunk(_) => None,
        })
    }

    /// Notes that the queue may have got messages around this one that are gone.
    fn set_sparse(&mut self, seq: Seq) {
        let after = self.slots.partition_point(|slot| slot.first_seq() <= seq);
        if let Some(Slot::Chunk(chunk)) = after.checked_sub(1).and_then(|at| self.slots.get_mut(at))
        {
            chunk.set_sparse();
        }
    }

    /// Puts a loaded range into the place of the range; ignored if that is gone.
    pub(crate) fn page_in(&mut self, loaded: LoadedRange) {
        let LoadedRange { range, entries, expiries } = loaded;
        let after = self.slots.partition_point(|slot| slot.first_seq() <= range.first);
        let Some(at) = after.checked_sub(1) else { return };
        if !matches!(&self.slots[at], Slot::PagedRange(here) if *here == range) {
            return;
        }
        let chunk = Chunk::whole(entries, expiries);
        self.index_bytes += chunk.heap_bytes();
        self.slots[at] = Slot::Chunk(chunk);
    }

    fn insert_message(&mut self, ready: QueuedMessage) {
        let seq = ready.entry.seq;
        let after = self.slots.partition_point(|slot| slot.first_seq() <= seq);
        if let Some(before) = after.checked_sub(1)
            && let Slot::Chunk(chunk) = &self.slots[before]
        {
            match chunk.search(seq) {
                Ok(at) => return self.replace(before, at, ready),
                Err(at) if at < chunk.len() || chunk.has_room() => {
                    return self.insert_into(before, at, ready);
                }
                Err(_) => {}
            }
        }
        self.count_in(&ready);
        match self.slots.get(after) {
            Some(Slot::Chunk(chunk)) if chunk.has_room() => {
                self.change_chunk(after, |chunk| chunk.insert(0, ready));
            }
            _ => self.add_chunk(after, Chunk::growing_forward(), |chunk| chunk.insert(0, ready)),
        }
    }

    fn insert_into(&mut self, mut slot: usize, mut at: usize, ready: QueuedMessage) {
        self.count_in(&ready);
        let full = matches!(&self.slots[slot], Slot::Chunk(chunk) if !chunk.has_room());
        if full && let Slot::Chunk(chunk) = &self.slots[slot] {
            let half = chunk.len() / 2;
            self.split_chunk(slot, half);
            if at > half {
                slot += 1;
                at -= half;
            }
        }
        self.change_chunk(slot, |chunk| chunk.insert(at, ready));
    }

    /// Moves what a chunk holds from this place on into another one behind it.
    pub(crate) fn split_chunk(&mut self, slot: usize, at: usize) {
        let Slot::Chunk(chunk) = &mut self.slots[slot] else { return };
        let before = chunk.heap_bytes();
        let rest = chunk.split_off(at);
        self.index_bytes = self.index_bytes + chunk.heap_bytes() - before;
        self.index_bytes += rest.heap_bytes() + size_of::<Slot>();
        self.slots.insert(slot + 1, Slot::Chunk(rest));
    }

    fn replace(&mut self, slot: usize, at: usize, ready: QueuedMessage) {
        self.count_in(&ready);
        if let Some(old) = self.change_chunk(slot, |chunk| chunk.replace(at, ready)) {
            self.len -= 1;
            self.body_bytes -= u64::from(old.entry.body_bytes);
        }
    }

    /// Returns the slot of a number and the index within its chunk.
    pub(crate) fn find(&self, seq: Seq) -> Option<(usize, usize)> {
        // Most often asked for is what is at or near the front.
        let after = match self.slots.get(1) {
            Some(second) if second.first_seq() <= seq => {
                self.slots.partition_point(|slot| slot.first_seq() <= seq)
            }
            _ => self.slots.len().min(1),
        };
        let slot = after.checked_sub(1)?;
        let Slot::Chunk(chunk) = &self.slots[slot] else {
            return None;
        };
        Some((slot, chunk.search(seq).ok()?))
    }

    /// Changes a chunk and keeps the sums right; `None` if the slot is a range.
    pub(crate) fn change_chunk<R>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut Chunk) -> R,
    ) -> Option<R> {
        let Some(Slot::Chunk(chunk)) = self.slots.get_mut(at) else {
            return None;
        };
        let before = (chunk.heap_bytes(), chunk.resident_bytes(), chunk.unstored());
        let evictable = chunk.evictable();
        let result = change(chunk);
        self.evictable = self.evictable + chunk.evictable() - evictable;
        self.index_bytes = self.index_bytes + chunk.heap_bytes() - before.0;
        self.resident = self.resident + chunk.resident_bytes() - before.1;
        self.unstored = self.unstored + chunk.unstored() - before.2;
        Some(result)
    }

    pub(crate) fn add_chunk(
        &mut self,
        at: usize,
        mut chunk: Chunk,
        first: impl FnOnce(&mut Chunk),
    ) {
        first(&mut chunk);
        self.index_bytes += chunk.heap_bytes() + size_of::<Slot>();
        self.resident += chunk.resident_bytes();
        self.unstored += chunk.unstored();
        self.evictable += chunk.evictable();
        self.slots.insert(at, Slot::Chunk(chunk));
    }

    pub(crate) fn add_paged_range(&mut self, at: usize, range: PagedRange) {
        self.len += range.count as usize;
        self.body_bytes += range.body_bytes;
        self.index_bytes += size_of::<Slot>();
        self.slots.insert(at, Slot::PagedRange(range));
    }

    pub(crate) fn remove_slot(&mut self, at: usize) {
        if let Some(slot) = self.slots.remove(at) {
            self.index_bytes -= size_of::<Slot>();
            if let Slot::Chunk(chunk) = slot {
                self.index_bytes -= chunk.heap_bytes();
            }
        }
        if self.slots.is_empty() {
            self.slots = VecDeque::new();
        }
    }

    fn count_in(&mut self, ready: &QueuedMessage) {
        self.len += 1;
        self.body_bytes += u64::from(ready.entry.body_bytes);
        if !ready.entry.is_stored() {
            self.spilled.admit(ready.entry.seq);
        } else if ready.body.is_some() {
            self.evicted.admit(ready.entry.seq);
        }
    }

    /// For `pop_front` and `remove`, which do not go through `change_chunk`.
    fn count_out(&mut self, entry: &Entry) {
        self.len -= 1;
        self.body_bytes -= u64::from(entry.body_bytes);
        self.unstored -= usize::from(!entry.is_stored());
    }

    pub(crate) fn count_paged_range_out(&mut self, range: &PagedRange) {
        self.len -= range.count as usize;
        self.body_bytes -= range.body_bytes;
    }
}

/// What a message in memory costs besides its body, for the bound of read-ahead.
const LOAD_OVERHEAD_BYTES: usize = 64;

const _: () = assert!(NEVER.as_millis() == u64::MAX, "the minimum over expiries ignores it");

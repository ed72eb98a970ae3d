//! What recovery does to an index, and what is done when a part of it cannot be read.

use quelea_model::{Seq, Timestamp};

use crate::chunk::Chunk;
use crate::queued_message::Drained;
use crate::slot::Slot;
use crate::{Entry, Location, PagedRange, QueueIndex};

impl QueueIndex {
    /// Adds at the end all messages that the queue got between the first and the last of these. Their numbers have
    /// to be greater than all that are there.
    pub(crate) fn push_run(&mut self, entries: Vec<Entry>, expiries: Vec<Timestamp>) {
        if self.is_empty() && !self.slots.is_empty() {
            self.remove_slot(0);
        }
        self.len += entries.len();
        self.body_bytes += entries.iter().map(|entry| u64::from(entry.body_bytes)).sum::<u64>();
        self.add_chunk(self.slots.len(), Chunk::whole(entries, expiries), |_| {});
    }

    /// Adds a range at the end. Its numbers have to be greater than all that are there.
    pub fn push_back_paged_range(&mut self, range: PagedRange) {
        debug_assert!(self.is_empty() || self.last_seq() < Some(range.first), "out of order");
        if self.is_empty() && !self.slots.is_empty() {
            self.remove_slot(0);
        }
        self.add_paged_range(self.slots.len(), range);
    }

    /// Puts a range to its place by number, if it is not there already. False if any of what is there has a number in it: then
    /// nothing is done.
    pub(crate) fn insert_paged_range(&mut self, range: PagedRange) -> bool {
        if self.last_seq().is_none_or(|last| last < range.first) {
            self.push_back_paged_range(range);
            return true;
        }
        let mut at = self.slots.partition_point(|slot| slot.last_seq() < range.first);
        if self.slots[at].first_seq() <= range.last {
            let chunk = match &self.slots[at] {
                Slot::Chunk(chunk) => chunk,
                // A checkpoint of several slices has a range twice that is set aside between them.
                Slot::PagedRange(there) => return there.first_location() == range.first_location(),
            };
            // Those around it may be in one chunk.
            let before = chunk.entries().partition_point(|entry| entry.seq < range.first);
            if chunk.entries()[before].seq <= range.last {
                return false;
            }
            self.split_chunk(at, before);
            at += 1;
        }
        self.add_paged_range(at, range);
        true
    }

    /// Changes where a message's record lies, if the message is here and not paged out. Returns
    /// the place where it was.
    pub(crate) fn relocate(&mut self, seq: Seq, location: Location) -> Option<Location> {
        let (slot, at) = self.find(seq)?;
        self.change_chunk(slot, |chunk| chunk.relocate(at, location))
    }

    /// Passes the number of entries in each segment to `f`, runs of one segment as one number.
    pub(crate) fn for_each_segment(&self, mut f: impl FnMut(u32, u32)) {
        for slot in &self.slots {
            match slot {
                Slot::PagedRange(range) => f(range.segment, range.count),
                Slot::Chunk(chunk) => {
                    let same = |a: &Entry, b: &Entry| a.location.segment == b.location.segment;
                    for run in chunk.entries().chunk_by(same) {
                        f(run[0].location.segment, run.len() as u32);
                    }
                }
            }
        }
    }

    /// Drops what lies in other segments.
    pub(crate) fn retain_segments(&mut self, keep: impl Fn(u32) -> bool) {
        self.retain_entries(|entry| keep(entry.location.segment), |range| keep(range.segment));
    }

    /// Drops other entries and ranges.
    pub(crate) fn retain_entries(
        &mut self,
        keep: impl Fn(&Entry) -> bool,
        keep_range: impl Fn(&PagedRange) -> bool,
    ) {
        let mut kept = Self::new();
        self.drain(&mut |removed| match removed {
            Drained::Entry(ready) if keep(&ready.entry) => {
                kept.push_back(ready.entry, ready.expires_at, ready.body);
            }
            Drained::PagedRange(range) if keep_range(&range) => kept.push_back_paged_range(range),
            _ => {}
        });
        // Where something went, the log between two entries holds more than the index.
        kept.mark_sparse();
        *self = kept;
    }

    /// Takes the range that begins at `location`, wherever it is.
    pub fn remove_paged_range(&mut self, location: Location) -> Option<PagedRange> {
        let at = self.slots.iter().position(
            |slot| matches!(slot, Slot::PagedRange(range) if range.first_location() == location),
        )?;
        let Slot::PagedRange(range) = self.slots[at] else {
            return None;
        };
        self.count_paged_range_out(&range);
        self.remove_slot(at);
        Some(range)
    }

    /// Notes that the log between any two entries may hold others: nothing that is here now will be
    /// paged out.
    pub fn mark_sparse(&mut self) {
        for slot in &mut self.slots {
            if let Slot::Chunk(chunk) = slot {
                chunk.set_sparse();
            }
        }
    }
}

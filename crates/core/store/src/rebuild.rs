//! What recovery does to an index, and what is done when a part of it cannot be read.

use quelea_model::{Seq, Timestamp};

use crate::chunk::Chunk;
use crate::queued_message::Drained;
use crate::slot::Slot;
use crate::{Entry, Location, NEVER, PagedRange, QueueIndex};

impl QueueIndex {
    /// Adds at the end all messages that the queue got between the first and the last of these. If
    /// they do not follow what is there, they go to their places one by one.
    pub(crate) fn push_run(&mut self, entries: Vec<Entry>, expiries: Vec<Timestamp>) {
        let Some(first) = entries.first().map(|entry| entry.seq) else { return };
        if self.last_seq().is_some_and(|last| last >= first) && !self.is_empty() {
            let expiries = expiries.into_iter().map(Some).chain(std::iter::repeat(None));
            for (entry, expiry) in entries.into_iter().zip(expiries) {
                self.insert(entry, expiry.filter(|expiry| *expiry != NEVER), None);
            }
            return;
        }
        if self.is_empty() && !self.slots.is_empty() {
            self.remove_slot(0);
        }
        self.len += entries.len();
        self.body_bytes += entries.iter().map(|entry| u64::from(entry.body_bytes)).sum::<u64>();
        self.add_chunk(self.slots.len(), Chunk::whole(entries, expiries), |_| {});
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

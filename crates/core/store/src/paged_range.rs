//! A run of index entries that is not in memory: it is rebuilt from the log itself.

use quelea_model::{Seq, Timestamp};

use crate::{Entry, EntryFlags, Location, NEVER};

/// Entries of one queue that lie in order and close together in one segment, so that reading that
/// span restores them: all records of the queue from `first` to `last` with a priority in the
/// range and the same durability are its entries, no more and no less. `count` and `check` prove it after the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedRange {
    /// Smallest number in it.
    pub first: Seq,
    /// Greatest number in it.
    pub last: Seq,
    /// Segment of all its records.
    pub segment: u32,
    /// Offset of the record of `first`.
    pub first_offset: u32,
    /// Offset of the record of `last`.
    pub last_offset: u32,
    /// Number of entries.
    pub count: u32,
    /// Sum of `body_bytes`.
    pub body_bytes: u64,
    /// Earliest expiry in it, or [`NEVER`].
    pub earliest_expiry: Timestamp,
    /// Smallest priority in it.
    pub priority_min: u8,
    /// Greatest priority in it.
    pub priority_max: u8,
    /// Whether its entries survive a restart; all do or none.
    pub durable: bool,
    /// [`PagedRange::fold`] over all numbers.
    pub check: u64,
}

impl PagedRange {
    /// Own bytes times this is the widest span that is still worth reading through,
    const SPAN_FACTOR_MAX: u64 = 8;
    /// unless it is narrower than this: some milliseconds for up to 512 messages, which lets the
    /// backlogs of dozens of queues that grow side by side be paged out.
    const SPAN_BYTES_CHEAP: u64 = 4 * 1024 * 1024;
    /// What a record has besides its body, roughly.
    const RECORD_OVERHEAD: u64 = 64;

    /// Returns the range that stands for these entries; `None` if reading the log would not give
    /// exactly them, or only at too high a price.
    pub(crate) fn of(entries: &[Entry], expiries: &[Timestamp]) -> Option<Self> {
        let (first, last) = (entries.first()?, entries.last()?);
        let mut range = Self {
            first: first.seq,
            last: last.seq,
            segment: first.location.segment,
            first_offset: first.location.offset,
            last_offset: last.location.offset,
            count: entries.len() as u32,
            body_bytes: 0,
            earliest_expiry: expiries.iter().copied().min().unwrap_or(NEVER),
            priority_min: u8::MAX,
            priority_max: 0,
            durable: first.is_durable(),
            check: 0,
        };
        let mut before = None;
        for entry in entries {
            let as_recorded = entry.is_stored()
                && entry.is_durable() == range.durable
                && entry.delivery_count == 0
                && !entry.flags.has(EntryFlags::REDELIVERED)
                && entry.location.segment == range.segment
                && before.is_none_or(|offset| entry.location.offset > offset);
            if !as_recorded {
                return None;
            }
            before = Some(entry.location.offset);
            range.body_bytes += u64::from(entry.body_bytes);
            range.priority_min = range.priority_min.min(entry.priority);
            range.priority_max = range.priority_max.max(entry.priority);
            range.check = Self::fold(range.check, entry.seq);
        }
        let span = u64::from(range.last_offset - range.first_offset);
        let own = range.body_bytes + u64::from(range.count) * Self::RECORD_OVERHEAD;
        let span_max = (own * Self::SPAN_FACTOR_MAX).max(Self::SPAN_BYTES_CHEAP);
        (span <= span_max).then_some(range)
    }

    /// Adds a number to a check over numbers in rising order.
    #[must_use]
    pub const fn fold(check: u64, seq: Seq) -> u64 {
        (check.rotate_left(7) ^ seq.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Returns whether a record of the queue with this number, priority and durability is one of
    /// its entries.
    #[must_use]
    pub fn covers(&self, seq: Seq, priority: u8, durable: bool) -> bool {
        durable == self.durable
            && (self.first..=self.last).contains(&seq)
            && (self.priority_min..=self.priority_max).contains(&priority)
    }

    /// Returns the place of its first record.
    #[must_use]
    pub const fn first_location(&self) -> Location {
        Location { segment: self.segment, offset: self.first_offset }
    }

    /// Returns the place of its last record.
    #[must_use]
    pub const fn last_location(&self) -> Location {
        Location { segment: self.segment, offset: self.last_offset }
    }
}

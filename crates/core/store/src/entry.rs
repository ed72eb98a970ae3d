//! What the index keeps of a message: 24 bytes.

use quelea_model::{Seq, Timestamp};

/// The expiry of a message that does not expire.
pub const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// Where a record lies in the log. Ordered as the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Number of the segment; counts up for ever, whichever file holds it. 0 is no segment.
    pub segment: u32,
    /// Byte offset of the record within its segment.
    pub offset: u32,
}

impl Location {
    /// The place of what is not in the log.
    pub const NOWHERE: Self = Self { segment: 0, offset: 0 };
}

/// Facts about an entry, one bit each. The numbers are part of the checkpoint's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFlags(u8);

impl EntryFlags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Survives a restart.
    pub const DURABLE: Self = Self(1);
    /// Its record is in the log, so that the body may be dropped from memory.
    pub const STORED: Self = Self(2);
    /// Was delivered before.
    pub const REDELIVERED: Self = Self(4);
    /// Has an expiry in the side array.
    pub const HAS_EXPIRY: Self = Self(8);

    /// Returns the flags that the byte of the checkpoint's format holds; unknown bits are kept.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the byte of the checkpoint's format.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags with the bits of `other` set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the flags with the bits of `other` cleared.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// One message in one queue, without its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the order of publication.
    pub seq: Seq,
    /// Where its record lies; meaningless without [`EntryFlags::STORED`].
    pub location: Location,
    /// Bytes of the body.
    pub body_bytes: u32,
    /// Deliveries that came back; what `x-delivery-count` says.
    pub delivery_count: u16,
    /// The priority that was given on append. A queue that has fewer caps it by itself: the record
    /// of a fan-out is shared by queues that cap differently.
    pub priority: u8,
    /// Facts.
    pub flags: EntryFlags,
}

const _: () = assert!(size_of::<Entry>() == 24, "ten million entries are to fit in 240 MB");

impl Entry {
    /// Returns whether it survives a restart.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        self.flags.has(EntryFlags::DURABLE)
    }

    /// Returns whether its record is in the log.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        self.flags.has(EntryFlags::STORED)
    }
}

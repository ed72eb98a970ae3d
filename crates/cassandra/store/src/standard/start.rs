//! Where a read of a queue's head begins.

/// How far before its place a read begins, in µs.
pub(crate) const OVERLAP_US: i64 = 300_000;

/// How far back a read goes once in a while, in µs.
pub(crate) const READ_BACK_US: i64 = 3_000_000;

/// How far back a read goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Not at all: it goes on behind what is left behind.
    On,
    /// A little before the last place.
    Near,
    /// Some seconds.
    Back,
    /// To the low-water mark.
    Full,
}

/// Where a read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) from_us: i64,
    /// The present, as the read has it: a time before anything of it was read.
    pub(crate) now_us: i64,
    pub(crate) reach: Reach,
}

impl Start {
    /// Returns the read's place: what lies before is read once more. A read has to come further
    /// than this, or the next one would begin where it did.
    pub(crate) fn place_us(self) -> i64 {
        self.from_us.saturating_add(match self.reach {
            Reach::Near => OVERLAP_US,
            Reach::Back => READ_BACK_US,
            Reach::On | Reach::Full => 0,
        })
    }
}

//! Identifiers that are written to disk. Their numbers are never used twice in one data directory.

/// A queue's number within its data directory. Persisted; a deleted queue's number stays unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// The place of a message in the node's order of publication. Persisted; all copies of a fan-out
/// share one, and a queue keeps its messages sorted by it, so that a requeue finds the old place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

//! Rows that are left out of what is read of a queue, since they cannot be read: one of them is not to keep the others from being
//! received.

use quelea_cassandra_fifo::SegmentKey;
use uuid::Uuid;

use crate::database::Database;

/// What could be read of a partition. What could not is no message that is gone: it is not to be deleted.
#[derive(Debug)]
pub(crate) struct PartialRead<T> {
    pub(crate) found: T,
    /// Whether there are rows beside that could not be read.
    pub(crate) has_unreadable: bool,
}

/// Those of one read.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    count: u64,
    first: Option<String>,
}

impl LeftOut {
    pub(super) fn add(&mut self, why: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(why);
    }

    /// Counts them, and says that there are some, with what could be read.
    pub(super) fn report<T>(
        self,
        database: &Database,
        generation: Uuid,
        segment: SegmentKey,
        found: T,
    ) -> PartialRead<T> {
        let Some(first) = self.first else { return PartialRead { found, has_unreadable: false } };
        database.count_unreadable_rows(self.count);
        let SegmentKey { epoch, first: from } = segment;
        tracing::warn!(%generation, epoch, from, count = self.count, first, "rows of a FIFO queue cannot be read, and are left out");
        PartialRead { found, has_unreadable: true }
    }
}

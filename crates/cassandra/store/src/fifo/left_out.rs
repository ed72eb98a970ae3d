//! Rows that are left out of what is read of a queue, since they cannot be read: one of them is not to keep the others from being
//! received.

use quelea_cassandra_fifo::SegmentKey;
use uuid::Uuid;

use crate::database::Database;

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

    /// Counts them, and says that there are some.
    pub(super) fn report(self, database: &Database, generation: Uuid, segment: SegmentKey) {
        let Some(first) = self.first else { return };
        database.count_unreadable_rows(self.count);
        let SegmentKey { epoch, first: from } = segment;
        tracing::warn!(%generation, epoch, from, count = self.count, first, "rows of a FIFO queue cannot be read, and are left out");
    }
}

//! What the standard queues ask of the world: the tables of their messages, each request of one partition, and what is known
//! of a queue. `cassandra_tables.rs` asks Cassandra; `simulation/` plays the same code over a model of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use quelea_sqs_protocol::{Consistency, Fault, QueueRef};
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::For;
use crate::database::queue_table::Record;
use crate::entry::{CountedEntry, Entry};
use crate::standard::content::StoredMessage;
use crate::standard::row_write::RowWrite;

/// Rows of one read of the sweep.
pub(crate) const SWEPT_PAGE: usize = 500;

/// What was read of messages; `None`: its row cannot be read.
pub(crate) type FoundMessages = BTreeMap<Uuid, Option<StoredMessage>>;

/// Where messages that are there were put by the last change of their visibility, if there was one.
pub(crate) type FoundLeases = BTreeMap<Uuid, Option<Lease>>;

/// The outcomes of writes, which are on their way.
pub(crate) type Written<'a> = BoxFuture<'a, Vec<Result<(), Fault>>>;

/// An answer that is on its way. [`Fault::Unavailable`]: it did not come; what was to be written may be written all the
/// same, also later.
pub(crate) type Asked<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// Whose rows, and how many replicas answer for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Of {
    pub(crate) generation: Uuid,
    pub(crate) consistency: Consistency,
}

/// The two lists of partitions that a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    /// Those with entries of the index.
    Entries,
    /// Those with messages, for the sweep.
    Messages,
}

/// Where the last change of a message's visibility has put its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) visible_at_us: i64,
    pub(crate) written_at_us: i64,
    pub(crate) bucket: Bucket,
}

/// A message, as the sweep finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SweptMessage {
    pub(crate) bucket: Bucket,
    /// Where the last change of its visibility has put it, and when that was written; 0: nobody has changed it.
    pub(crate) lease_visible_at_us: i64,
    pub(crate) lease_written_at_us: i64,
}

/// A page of messages that the sweep finds, and the last that was read, if there may be more.
pub(crate) type FoundPage = (Vec<(Uuid, SweptMessage)>, Option<Uuid>);

/// Some partitions of a list, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedPage {
    pub(crate) buckets: Vec<Bucket>,
    /// The last that was read, which need not be known here; `None`: that were all.
    pub(crate) next: Option<Bucket>,
}

/// The tables. Every request may be carried out again: all timestamps come from whoever asks.
pub(crate) trait Tables: Send + Sync + 'static {
    /// Returns a queue as it is, or was a moment ago.
    fn record<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>>;

    /// Returns a queue as it is.
    fn record_now<'a>(&'a self, queue: &'a QueueRef) -> Asked<'a, Option<Arc<Record>>>;

    /// What is remembered of a queue does not hold any more.
    fn forget(&self, queue: &QueueRef);

    /// Carries out writes to one partition: all of them or none, unless one of them is refused for good, whatever is written
    /// beside it. Then each is an attempt of its own. An outcome for each.
    fn write(&self, of: Of, writes: Vec<RowWrite>) -> Written<'_>;

    /// Returns those of these messages that are there. One that cannot be read is there all the
    /// same.
    fn messages(&self, of: Of, bucket: Bucket, messages: Vec<Uuid>) -> Asked<'_, FoundMessages>;

    /// Returns the entries of a bucket from a time on, the oldest first: as many, unless there are
    /// no more. Those that cannot be read are left out.
    fn entries(&self, of: Of, bucket: Bucket, from_us: i64, most: usize) -> Asked<'_, Vec<Entry>>;

    /// Returns the same as [`Tables::entries`] without what only a receiver needs, for a count.
    fn counted(
        &self,
        of: Of,
        bucket: Bucket,
        from_us: i64,
        most: usize,
    ) -> Asked<'_, Vec<CountedEntry>>;

    /// Returns where the last change of its visibility has put each of these messages that are
    /// there; `None`: nobody has changed it.
    fn leases(
        &self,
        of: Of,
        bucket: Bucket,
        messages: Vec<Uuid>,
        why: For,
    ) -> Asked<'_, FoundLeases>;

    /// Puts partitions on a list.
    fn list(&self, of: Of, list: List, buckets: Vec<Bucket>, now_us: i64) -> Asked<'_, ()>;

    /// Takes a partition off the list of those with messages.
    fn unlist(&self, of: Of, bucket: Bucket, now_us: i64) -> Asked<'_, ()>;

    /// Takes partitions with entries off their list that begin before that second and were listed before `at_us`.
    fn unlist_before(&self, of: Of, start_s: i64, at_us: i64) -> Asked<'_, ()>;

    /// Returns the listed partitions behind a place, at most so many.
    fn listed(
        &self,
        of: Of,
        list: List,
        after: Bucket,
        most: usize,
        why: For,
    ) -> Asked<'_, ListedPage>;

    /// Returns the low-water mark; 0: there is none.
    fn low_water_mark(&self, of: Of) -> Asked<'_, i64>;

    /// Stores the low-water mark, which only moves forward: its own time is its timestamp.
    fn write_low_water_mark(&self, of: Of, low_us: i64) -> Asked<'_, ()>;

    /// Returns some messages of a partition, behind one of them, for the sweep.
    fn swept_messages(&self, of: Of, bucket: Bucket, after: Uuid) -> Asked<'_, FoundPage>;

    /// Returns some entries of a partition, behind one of them, for the sweep: when they are
    /// visible, and of which message.
    fn swept_entries(
        &self,
        of: Of,
        bucket: Bucket,
        after: (i64, Uuid),
    ) -> Asked<'_, Vec<(i64, Uuid)>>;
}

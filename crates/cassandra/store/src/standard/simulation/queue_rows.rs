//! The rows of queues. Each front-end remembers for a moment what it has read of them, as `database/queue_table.rs` does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quelea_sqs_protocol::QueueRef;
use tokio::time::Instant;
use uuid::Uuid;

use super::chaos::Reread;
use super::process::lock;
use crate::database::queue_table::Record;
use crate::limits::{FACTS_AGE_HEARD_MS_MAX, FACTS_AGE_MS_MAX};
use crate::peers::peer_changes::PeerChanges;

/// For how long a front-end goes on with what it has read.
pub(super) const AGE: Duration = Duration::from_millis(FACTS_AGE_MS_MAX);

/// The same where it hears all the others.
const AGE_HEARD: Duration = Duration::from_millis(FACTS_AGE_HEARD_MS_MAX);

/// The truth: rows change by lightweight transactions, which see each other.
#[derive(Debug, Default)]
pub(super) struct QueueRows(Mutex<BTreeMap<QueueRef, Arc<Record>>>);

impl QueueRows {
    pub(super) fn insert(&self, record: &Arc<Record>) {
        lock(&self.0).insert(record.facts.queue.clone(), record.clone());
    }

    fn get(&self, queue: &QueueRef) -> Option<Arc<Record>> {
        lock(&self.0).get(queue).cloned()
    }

    /// Begins another generation of a queue's messages.
    pub(super) fn purge(&self, queue: &QueueRef) {
        if let Some(record) = lock(&self.0).get_mut(queue) {
            let generation = Uuid::from_u128(fastrand::u128(..));
            *record = Arc::new(Record { generation, ..Record::clone(record) });
        }
    }
}

/// What was read of a queue, and when.
type Read = (Instant, Option<Arc<Record>>);

/// What a front-end knows of them.
pub(super) struct KnownQueues {
    rows: Arc<QueueRows>,
    peer_changes: Arc<PeerChanges>,
    reread: Reread,
    read: Mutex<BTreeMap<QueueRef, Read>>,
}

impl KnownQueues {
    pub(super) fn new(
        rows: Arc<QueueRows>,
        peer_changes: Arc<PeerChanges>,
        reread: Reread,
    ) -> Self {
        Self { rows, peer_changes, reread, read: Mutex::default() }
    }

    /// Returns what it has read of a queue, if that is good still.
    pub(super) fn remembered(&self, queue: &QueueRef) -> Option<Option<Arc<Record>>> {
        let read = lock(&self.read);
        let now = Instant::now();
        let is_good = |(at, _): &&Read| match self.reread {
            Reread::AsHeard => now - self.peer_changes.valid_at(*at, now) < AGE,
            Reread::AsIfHeard => now - *at < AGE_HEARD,
            Reread::Never => true,
        };
        read.get(queue).filter(is_good).map(|(_, record)| record.clone())
    }

    pub(super) fn read(&self, queue: &QueueRef) -> Option<Arc<Record>> {
        let record = self.rows.get(queue);
        lock(&self.read).insert(queue.clone(), (Instant::now(), record.clone()));
        record
    }

    pub(super) fn forget(&self, queue: &QueueRef) {
        lock(&self.read).remove(queue);
    }
}

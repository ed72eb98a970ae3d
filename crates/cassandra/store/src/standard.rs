//! Standard queues, which have no owner: what this front-end has under way of them. Start with `send.rs` and `receive.rs`;
//! all that they ask of Cassandra goes through `tables.rs`.

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod choice;
pub(crate) mod content;
pub(crate) mod counted;
pub(crate) mod counting;
pub(crate) mod dead_letter;
pub(crate) mod delete;
pub(crate) mod directory;
pub(crate) mod fair;
pub(crate) mod gather;
pub(crate) mod head;
pub(crate) mod head_read;
pub(crate) mod heard_buckets;
pub(crate) mod in_flight;
pub(crate) mod indexed_messages;
pub(crate) mod job_kind;
pub(crate) mod jobs;
pub(crate) mod left_behind;
pub(crate) mod move_rate;
pub(crate) mod move_step;
pub(crate) mod order_hint;
pub(crate) mod pace;
pub(crate) mod peek;
pub(crate) mod queue;
pub(crate) mod receipt;
pub(crate) mod receive;
pub(crate) mod relisting;
pub(crate) mod row_write;
pub(crate) mod rows;
pub(crate) mod send;
#[cfg(test)]
mod simulation;
pub(crate) mod start;
pub(crate) mod sweep;
pub(crate) mod sweep_counts;
pub(crate) mod sweeps;
pub(crate) mod tables;
pub(crate) mod taken;
pub(crate) mod unreadable;
pub(crate) mod visibility;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quelea_sqs_protocol::{Consistency, Fault, QueueClass, QueueFacts};
use tokio::runtime::Handle;
use tokio::sync::{RwLock, Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::clock::Clock;
use crate::database::queue_table::Record;
use crate::limits::{READING_BYTES_IN_ALL_MAX, VISIBILITY_CHANGES_MAX, WAITING_BYTES_IN_ALL_MAX};
use crate::peers::peer_socket::PeerSocket;
use crate::peers::{PeerEvent, Peers};
use crate::standard::counted::Counted;
use crate::standard::queue::{Queue, Served};
use crate::standard::receipt::Receipt;
use crate::standard::rows::Rows;
use crate::standard::sweep_counts::SweepCounts;
use crate::standard::tables::{Of, Tables};

/// What all calls of standard queues share.
pub(crate) struct Standard {
    pub(crate) tables: Box<dyn Tables>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) runtime: Handle,
    /// The other front-ends.
    pub(crate) peers: Peers,
    pub(crate) counted: Counted,
    /// Held to read by each read of a queue's head until its messages are answered, or visible again.
    pub(crate) rounds: RwLock<()>,
    pub(crate) served: Served,
    /// Bytes of messages that may still come to wait to be sent.
    pub(crate) room: Arc<Semaphore>,
    /// Bytes of messages of all queues that may still be read, to be received.
    reading: Semaphore,
    /// Changes of visibility that may still begin.
    pub(crate) changes: Arc<Semaphore>,
    /// Messages that the sweep has found.
    pub(crate) restored: AtomicU64,
    /// What became of this front-end's sweeps.
    pub(crate) sweeps: Arc<SweepCounts>,
    pub(crate) settings: StandardSettings,
}

/// What holds for all standard queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandardSettings {
    /// Of queues that have none of their own.
    pub(crate) consistency: Consistency,
    /// Duplicates for each message that `OrderHint=auto` aims at, at most.
    pub(crate) duplicates_max: f64,
    /// Messages of a queue that may be in flight.
    pub(crate) in_flight_max: usize,
    /// Rows that a bucket should hold.
    pub(crate) bucket_rows_max: u32,
}

impl Standard {
    pub(crate) fn new(
        tables: Box<dyn Tables>,
        clock: Arc<Clock>,
        peers: Peers,
        settings: StandardSettings,
    ) -> Self {
        Self {
            tables,
            clock,
            runtime: Handle::current(),
            peers,
            counted: Counted::default(),
            rounds: RwLock::default(),
            served: Served::new(settings.bucket_rows_max),
            room: Arc::new(Semaphore::new(WAITING_BYTES_IN_ALL_MAX)),
            reading: Semaphore::new(READING_BYTES_IN_ALL_MAX),
            changes: Arc::new(Semaphore::new(VISIBILITY_CHANGES_MAX)),
            restored: AtomicU64::new(0),
            sweeps: Arc::default(),
            settings,
        }
    }

    /// Waits until messages of so many bytes may be read, to be received; until what this returns is dropped they count.
    pub(crate) async fn reading(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let bytes = bytes.min(READING_BYTES_IN_ALL_MAX) as u32;
        // It is never closed.
        self.reading.acquire_many(bytes).await.ok()
    }

    /// Returns the queue of these facts, if it still is what it was.
    pub(crate) async fn queue(&self, facts: &QueueFacts) -> Result<Arc<Queue>, Fault> {
        let record = self.tables.record(&facts.queue).await?;
        self.queue_in(facts, record.as_deref())
    }

    fn queue_in(&self, facts: &QueueFacts, record: Option<&Record>) -> Result<Arc<Queue>, Fault> {
        let record = record.filter(|record| record.facts.key == facts.key);
        let generation = record.ok_or(Fault::NoSuchQueue)?.generation;
        Ok(self.served.queue(&self.clock, generation))
    }

    /// Returns a queue as these receipts have it: whoever gave them out may have heard of a purge
    /// of which this front-end has not.
    pub(crate) async fn queue_of(
        &self,
        facts: &QueueFacts,
        mut receipts: impl Iterator<Item = &Receipt>,
    ) -> Result<Arc<Queue>, Fault> {
        let queue = self.queue(facts).await?;
        if receipts.all(|receipt| receipt.generation == queue.generation) {
            return Ok(queue);
        }
        let record = self.tables.record_now(&facts.queue).await?;
        self.queue_in(facts, record.as_deref())
    }

    /// Returns where the rows of that queue are.
    pub(crate) fn rows(&self, facts: &QueueFacts, queue: &Queue) -> Rows<'_> {
        self.rows_of(facts, queue.generation)
    }

    /// Returns where the rows of that generation are.
    pub(crate) fn rows_of(&self, facts: &QueueFacts, generation: Uuid) -> Rows<'_> {
        let consistency = facts.settings.consistency.unwrap_or(self.settings.consistency);
        Rows { tables: &*self.tables, of: Of { generation, consistency } }
    }

    /// Speaks with the other front-ends by that socket from now on. `false`: it does so by another one.
    pub(crate) fn attach(self: &Arc<Self>, socket: Arc<dyn PeerSocket>) -> bool {
        if !self.peers.set_socket(socket.clone()) {
            return false;
        }
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            while let Some(datagram) = socket.receive().await {
                let Some(standard) = weak.upgrade() else { return };
                standard
                    .peers
                    .on_datagram(&datagram, &mut |queue, news| standard.pass_on(queue, news));
                standard.poll_peers();
            }
        });
        true
    }

    /// Takes in what the other front-ends have said by now.
    pub(crate) fn poll_peers(&self) {
        self.peers.poll_events(|generation, news| self.pass_on(generation, news));
    }

    /// Another front-end has said something that a queue has to know.
    pub(crate) fn pass_on(&self, generation: Uuid, news: PeerEvent) {
        let queue = || self.served.find(generation);
        match news {
            PeerEvent::Changed(queue) => {
                self.tables.forget(&queue);
                self.served.changed(&queue);
            }
            PeerEvent::Stored(bucket) => queue().into_iter().for_each(|queue| queue.nudged(bucket)),
            PeerEvent::Listed(buckets) => {
                queue().into_iter().for_each(|queue| queue.heard_of(&buckets));
            }
            PeerEvent::Duplicate => {
                queue().into_iter().for_each(|queue| queue.auto_hint().duplicated())
            }
        }
    }
}

/// Returns a replicated queue's own name in the tables.
pub(crate) fn id_of(facts: &QueueFacts) -> Uuid {
    Uuid::from_u128(facts.key.id_in(QueueClass::Replicated).unwrap_or_default())
}

//! What all calls of a front-end share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quelea_sqs_protocol::{Consistency, Fault, QueueClass, QueueFacts};
use tokio::runtime::Handle;
use tokio::sync::RwLock;
use uuid::Uuid;

use crate::beats::Beats;
use crate::counted::Counted;
use crate::database::Database;
use crate::fifo::Fifo;
use crate::front_end_table::FrontEndTable;
use crate::identity_table::IdentityTable;
use crate::move_table::MoveTable;
use crate::passed::PassedQueues;
use crate::peers::Peers;
use crate::queue::{Queue, Served};
use crate::queue_table::QueueTable;
use crate::rows::Rows;
use crate::sweep_table::SweepTable;
use crate::take_over_table::TakeOverTable;

/// How many nodes are asked for the time at once: each may be any of them.
const COMPARISONS: usize = 3;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) queues: QueueTable,
    pub(crate) move_tasks: MoveTable,
    pub(crate) identity: IdentityTable,
    pub(crate) take_over: TakeOverTable,
    pub(crate) fifo: Fifo,
    pub(crate) counted: Counted,
    pub(crate) runtime: Handle,
    /// Held to read by each look at a queue's head until its messages are answered, or visible again.
    pub(crate) rounds: RwLock<()>,
    pub(crate) served: Served,
    pub(crate) consistency: Consistency,
    pub(crate) cooldown_ms: u64,
    /// Duplicates for each message that `OrderHint=auto` aims at, at most.
    pub(crate) duplicates_max: f64,
    /// Messages of a queue that may be in flight.
    pub(crate) in_flight_max: usize,
    pub(crate) sweep_table: SweepTable,
    /// Messages that the sweep has found.
    pub(crate) restored: AtomicU64,
    pub(crate) passed: PassedQueues,
    pub(crate) front_ends: FrontEndTable,
    pub(crate) beats: Beats,
    /// The other front-ends.
    pub(crate) peers: Peers,
}

impl Shared {
    /// Compares the clock with Cassandra's.
    ///
    /// # Errors
    /// Why not, if no node has said what time it is.
    pub(crate) async fn compare_clocks(&self) -> Result<(), Fault> {
        let mut compared = Ok(());
        for attempt in 0..COMPARISONS {
            match self.database.compare_clocks().await {
                Ok(()) => compared = Ok(()),
                Err(fault) => {
                    tracing::warn!(%fault, "the clock could not be compared with Cassandra's");
                    if attempt == 0 {
                        compared = Err(fault);
                    }
                }
            }
        }
        compared
    }

    /// The queue of these facts, if it still is what it was.
    pub(crate) async fn queue(&self, facts: &QueueFacts) -> Result<Arc<Queue>, Fault> {
        let record = self.queues.record(&self.database, &facts.queue).await?;
        match record {
            Some(record) if record.facts.key == facts.key => {
                Ok(self.served.queue(&self.database, record.generation))
            }
            _ => Err(Fault::NoSuchQueue),
        }
    }

    /// Where the rows of that queue are.
    pub(crate) fn rows(&self, facts: &QueueFacts, queue: &Queue) -> Rows<'_> {
        Rows {
            database: &self.database,
            generation: queue.generation,
            consistency: facts.settings.consistency.unwrap_or(self.consistency),
        }
    }

    /// A queue's own name in the tables.
    pub(crate) fn id(&self, facts: &QueueFacts) -> Uuid {
        Uuid::from_u128(facts.key.id_in(QueueClass::Replicated).unwrap_or_default())
    }
}

//! The session, the clock, and a count of what is asked of Cassandra.

pub(crate) mod cassandra_tables;
pub(crate) mod connect;
pub(crate) mod connect_error;
pub(crate) mod driver;
pub(crate) mod fault;
pub(crate) mod identity_table;
pub(crate) mod keyspace;
pub(crate) mod move_table;
pub(crate) mod preparing;
pub(crate) mod queue_table;
pub(crate) mod revised;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod statements;
pub(crate) mod take_over_table;
pub(crate) mod tls;
pub(crate) mod transaction;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quelea_sqs_protocol::{Consistency, Fault};
use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use crate::clock::Clock;
use crate::database::fault::{RequestFailure, unavailable, unreadable};
use crate::database::statements::AtEach;

/// Cassandra, as this front-end uses it.
pub(crate) struct Database {
    pub(crate) session: Session,
    read_time: AtEach,
    pub(crate) clock: Arc<Clock>,
    requests: Requests,
    unknown_outcomes: AtomicU64,
    unreadable_rows: AtomicU64,
    /// When it was last said that there are some.
    warned_at: Mutex<Option<Instant>>,
}

/// How often it is said.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Requests so far.
#[derive(Debug, Default)]
struct Requests {
    messages: AtomicU64,
    upkeep: AtomicU64,
    peers: AtomicU64,
    sweep: AtomicU64,
    leases: AtomicU64,
}

/// How many requests a front-end has sent to Cassandra, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Messages that were sent, received, changed or deleted.
    pub messages: u64,
    /// Finding out what queues are and where messages are: rows of queues, buckets, marks, counts, clocks.
    pub upkeep: u64,
    /// Front-ends that find each other.
    pub peers: u64,
    /// The sweep, which looks for messages that nothing leads to.
    pub sweep: u64,
    /// Whose FIFO queues are, as far as that takes lightweight transactions: taking over, renewing, letting go, and serial reads.
    pub leases: u64,
}

/// Who a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// A message that is sent, received, changed or deleted.
    Messages,
    /// Rows of queues, buckets, marks, counts, clocks.
    Upkeep,
    /// Heartbeats.
    Peers,
    /// The sweep.
    Sweep,
    /// Lightweight transactions and serial reads about whose a FIFO queue is.
    Leases,
}

impl Database {
    pub(crate) fn new(session: Session, read_time: AtEach) -> Self {
        Self {
            session,
            read_time,
            clock: Arc::new(Clock::of_system()),
            requests: Requests::default(),
            unknown_outcomes: AtomicU64::new(0),
            unreadable_rows: AtomicU64::new(0),
            warned_at: Mutex::default(),
        }
    }

    /// Asks a node for the time.
    pub(crate) async fn compare_clocks(&self) -> Result<(), Fault> {
        let asked_us = self.clock.machine_us();
        self.count(For::Upkeep);
        let statement = self.read_time.at(Consistency::One);
        let answer = driver::execute(&self.session, statement, &()).await;
        let answer = answer.map_err(|error| unavailable(&error))?;
        let node = answer.request_coordinator().node().host_id;
        let rows = answer.into_rows_result().map_err(unreadable)?;
        let (theirs,) = rows.single_row::<(i64,)>().map_err(unreadable)?;
        // A millisecond begins where it is cut off.
        self.clock.compare(node, asked_us, theirs * 1_000 + 500);
        Ok(())
    }

    /// Reads rows of one partition.
    pub(crate) async fn read(
        &self,
        purpose: For,
        statement: &AtEach,
        consistency: Consistency,
        values: impl SerializeRow + Sync,
    ) -> Result<QueryRowsResult, Fault> {
        self.count(purpose);
        driver::select(&self.session, statement.at(consistency), &values).await
    }

    /// Writes rows of one partition by one statement, all or none of them.
    pub(crate) async fn write<V: SerializeRow + Send + Sync + 'static>(
        &self,
        purpose: For,
        statement: &AtEach,
        consistency: Consistency,
        rows: Vec<V>,
    ) -> Result<(), Fault> {
        let statement = statement.at(consistency);
        let owned = |row| (statement, Box::new(row) as driver::OwnedValues);
        self.write_all(purpose, consistency, rows.into_iter().map(owned).collect()).await
    }

    /// Carries out statements that write to one partition, of whatever tables: all or none of them.
    pub(crate) async fn write_all(
        &self,
        purpose: For,
        consistency: Consistency,
        writes: Vec<(&PreparedStatement, driver::OwnedValues)>,
    ) -> Result<(), Fault> {
        self.try_write_all(purpose, consistency, &writes).await.map_err(Into::into)
    }

    /// Carries out the same statements as [`Database::write_all`], and says what failed of it.
    pub(crate) async fn try_write_all(
        &self,
        purpose: For,
        consistency: Consistency,
        writes: &[(&PreparedStatement, driver::OwnedValues)],
    ) -> Result<(), RequestFailure> {
        self.count(purpose);
        if let [(statement, values)] = writes {
            return driver::try_write(&self.session, statement, values.as_ref()).await;
        }
        let mut batch = Batch::new(BatchType::Unlogged);
        for (statement, _) in writes {
            batch.append_statement((*statement).clone());
        }
        batch.set_is_idempotent(true);
        batch.set_consistency(match consistency {
            Consistency::One => scylla::statement::Consistency::One,
            Consistency::LocalQuorum => scylla::statement::Consistency::LocalQuorum,
        });
        let rows = writes.iter().map(|(_, values)| values.as_ref() as driver::Values<'_>);
        let result = driver::execute_batch(&self.session, &batch, rows.collect()).await;
        result.map(drop).map_err(|error| RequestFailure::of(&error))
    }

    pub(crate) fn count(&self, purpose: For) {
        let counter = match purpose {
            For::Messages => &self.requests.messages,
            For::Upkeep => &self.requests.upkeep,
            For::Peers => &self.requests.peers,
            For::Sweep => &self.requests.sweep,
            For::Leases => &self.requests.leases,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Cassandra did not say how a transaction ended.
    pub(crate) fn count_unknown_outcome(&self) {
        self.unknown_outcomes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns of how many transactions Cassandra did not say so far how they ended.
    pub(crate) fn unknown_outcomes(&self) -> u64 {
        self.unknown_outcomes.load(Ordering::Relaxed)
    }

    /// Rows were left out that cannot be read.
    pub(crate) fn count_unreadable_rows(&self, count: u64) {
        self.unreadable_rows.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns whether nobody was warned of unreadable rows in the last minute; the caller of whom that is true
    /// warns.
    pub(crate) fn is_time_to_warn_of_unreadable_rows(&self) -> bool {
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_time {
            *warned_at = Some(Instant::now());
        }
        is_time
    }

    /// Returns how many rows were left out so far.
    pub(crate) fn unreadable_rows(&self) -> u64 {
        self.unreadable_rows.load(Ordering::Relaxed)
    }

    /// Returns how many requests there were so far, by what they were for.
    pub(crate) fn requests(&self) -> RequestCounts {
        let Requests { messages, upkeep, peers, sweep, leases } = &self.requests;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RequestCounts {
            messages: read(messages),
            upkeep: read(upkeep),
            peers: read(peers),
            sweep: read(sweep),
            leases: read(leases),
        }
    }
}

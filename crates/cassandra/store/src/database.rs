//! The session, the statements, the clock, and a count of what they cost.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use quelea_sqs_protocol::{Consistency, Fault};
use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use crate::driver;
use crate::fault::{unavailable, unreadable};
use crate::message_id::MessageIds;
use crate::statements::{AtEach, Statements};
use crate::time_offset::TimeOffset;

/// Cassandra, as this front-end uses it.
pub(crate) struct Database {
    pub(crate) session: Session,
    pub(crate) statements: Statements,
    pub(crate) ids: MessageIds,
    /// When this was made, by the steady clock and by the system's.
    began: Instant,
    began_at_us: i64,
    offset: Mutex<TimeOffset>,
    /// The correction of the clock, and what tests make of it.
    correction_us: AtomicI64,
    wrong_by_us: AtomicI64,
    requests: Requests,
}

/// Requests so far.
#[derive(Debug, Default)]
struct Requests {
    messages: AtomicU64,
    upkeep: AtomicU64,
    peers: AtomicU64,
    sweep: AtomicU64,
}

/// How many requests a front-end has sent to Cassandra, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Messages that were sent, received, changed or deleted.
    pub messages: u64,
    /// Finding out where messages are: buckets, marks, counts, clocks.
    pub upkeep: u64,
    /// Front-ends that find each other.
    pub peers: u64,
    /// The sweep, which looks for messages that nothing leads to.
    pub sweep: u64,
}

/// Who a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// A message that is sent, received, changed or deleted.
    Messages,
    /// Buckets, marks, counts, clocks.
    Upkeep,
    /// Heartbeats.
    Peers,
    /// The sweep.
    Sweep,
}

impl Database {
    pub(crate) fn new(session: Session, statements: Statements) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            session,
            statements,
            ids: MessageIds::default(),
            began: Instant::now(),
            began_at_us: since_1970.as_micros() as i64,
            offset: Mutex::default(),
            correction_us: AtomicI64::new(0),
            wrong_by_us: AtomicI64::new(0),
            requests: Requests::default(),
        }
    }

    /// The present in µs since 1970, as Cassandra's nodes have it.
    pub(crate) fn now_us(&self) -> i64 {
        self.machine_us() + self.correction_us()
    }

    /// The same in ms.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.now_us() / 1_000).max(0).unsigned_abs()
    }

    /// By how much the machine's clock is corrected.
    pub(crate) fn correction_us(&self) -> i64 {
        self.correction_us.load(Ordering::Relaxed)
    }

    fn machine_us(&self) -> i64 {
        // A step of the system's clock changes nothing: until the next comparison nobody would know of it.
        let passed_us = self.began.elapsed().as_micros() as i64;
        let wrong_by_us = self.wrong_by_us.load(Ordering::Relaxed);
        self.began_at_us.saturating_add(passed_us).saturating_add(wrong_by_us)
    }

    /// Has the clock of this front-end be wrong by so much from now on.
    pub(crate) fn set_clock_wrong_by_us(&self, wrong_by_us: i64) {
        self.wrong_by_us.store(wrong_by_us, Ordering::Relaxed);
        // What was measured was measured with another clock.
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) = TimeOffset::default();
    }

    /// Asks a node for the time.
    pub(crate) async fn compare_clocks(&self) -> Result<(), Fault> {
        let asked_us = self.machine_us();
        self.count(For::Upkeep);
        let statement = self.statements.read_time.at(Consistency::One);
        let answer = driver::execute(&self.session, statement, &()).await;
        let answer = answer.map_err(|error| unavailable(&error))?;
        let answered_us = self.machine_us();
        let node = answer.request_coordinator().node().host_id;
        let rows = answer.into_rows_result().map_err(unreadable)?;
        let (theirs,) = rows.single_row::<(i64,)>().map_err(unreadable)?;
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        // A millisecond begins where it is cut off.
        offset.measure(node, asked_us, theirs * 1_000 + 500, answered_us);
        self.correction_us.store(offset.correction_us(), Ordering::Relaxed);
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
        self.count(purpose);
        if let [(statement, values)] = &writes[..] {
            return driver::write(&self.session, statement, values.as_ref()).await;
        }
        let mut batch = Batch::new(BatchType::Unlogged);
        for (statement, _) in &writes {
            batch.append_statement((*statement).clone());
        }
        batch.set_is_idempotent(true);
        batch.set_consistency(match consistency {
            Consistency::One => scylla::statement::Consistency::One,
            Consistency::LocalQuorum => scylla::statement::Consistency::LocalQuorum,
        });
        let rows = writes.iter().map(|(_, values)| values.as_ref() as driver::Values<'_>);
        let result = driver::execute_batch(&self.session, &batch, rows.collect()).await;
        result.map(drop).map_err(|error| unavailable(&error))
    }

    pub(crate) fn count(&self, purpose: For) {
        let counter = match purpose {
            For::Messages => &self.requests.messages,
            For::Upkeep => &self.requests.upkeep,
            For::Peers => &self.requests.peers,
            For::Sweep => &self.requests.sweep,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> RequestCounts {
        let Requests { messages, upkeep, peers, sweep } = &self.requests;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RequestCounts {
            messages: read(messages),
            upkeep: read(upkeep),
            peers: read(peers),
            sweep: read(sweep),
        }
    }
}

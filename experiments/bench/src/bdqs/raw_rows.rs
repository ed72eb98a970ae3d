//! Rows written to Cassandra through the driver that front-ends use, with nothing around them: what a front-end could reach
//! at best.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bdqs::error::BdqsError;
use crate::clock::{now_ns, seconds_between, seconds_to_ns};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session, and the thread's runtime that it needs.
#[derive(Debug)]
pub(crate) struct Driver {
    runtime: Runtime,
    session: Arc<Session>,
}

/// What is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawLoad {
    pub replication: u32,
    /// Rows of a batch, all of one partition.
    pub rows: usize,
    /// Bytes of a row.
    pub size: usize,
    /// Batches under way at once.
    pub batches: usize,
    pub duration_s: f64,
}

impl Driver {
    pub(crate) fn connect(nodes: &[String]) -> Result<Self, BdqsError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
            BdqsError::System { doing: "cannot make a runtime", reason: error.to_string() }
        })?;
        let builder = SessionBuilder::new().known_nodes(nodes).connection_timeout(PATIENCE);
        let session = runtime.block_on(builder.build()).map_err(failed)?;
        Ok(Self { runtime, session: Arc::new(session) })
    }

    /// Writes rows, all with LOCAL_QUORUM. Returns how many were written a second.
    pub(crate) fn rows_per_s(&self, load: RawLoad) -> Result<f64, BdqsError> {
        let keyspace = format!("quelea_bench_raw_{:08x}", fastrand::u32(..));
        let measured = self.runtime.block_on(write(&self.session, &keyspace, load));
        self.drop_keyspace(&keyspace);
        measured
    }

    /// Nothing happens if it is not there.
    pub(crate) fn drop_keyspace(&self, keyspace: &str) {
        let statement = format!("DROP KEYSPACE IF EXISTS {keyspace}");
        if let Err(error) = self.runtime.block_on(self.session.query_unpaged(statement, ())) {
            eprintln!("quelea bench: the keyspace {keyspace} stays: {error}");
        }
    }
}

async fn write(session: &Arc<Session>, keyspace: &str, load: RawLoad) -> Result<f64, BdqsError> {
    let replication = format!(
        "{{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
        load.replication
    );
    let keyspace_cql = format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}");
    let table_cql = format!(
        "CREATE TABLE {keyspace}.raw (partition bigint, row int, body blob, PRIMARY KEY ((partition), row))"
    );
    for cql in [keyspace_cql, table_cql] {
        session.query_unpaged(cql, ()).await.map_err(failed)?;
    }
    session.await_schema_agreement().await.map_err(failed)?;
    let insert = format!("INSERT INTO {keyspace}.raw (partition, row, body) VALUES (?, ?, ?)");
    let mut insert = session.prepare(insert).await.map_err(failed)?;
    insert.set_consistency(Consistency::LocalQuorum);
    let mut batch = Batch::new(BatchType::Unlogged);
    (0..load.rows).for_each(|_| batch.append_statement(insert.clone()));
    batch.set_consistency(Consistency::LocalQuorum);
    batch.set_is_idempotent(true);
    let (batch, body) = (Arc::new(batch), Arc::new(vec![b'x'; load.size]));
    let begun = now_ns();
    let until = begun + seconds_to_ns(load.duration_s);
    let mut writers = JoinSet::new();
    for _ in 0..load.batches {
        let (session, batch, body) = (Arc::clone(session), Arc::clone(&batch), Arc::clone(&body));
        writers.spawn(async move {
            let mut written = 0;
            while now_ns() < until {
                let partition = fastrand::i64(..);
                let rows: Vec<(i64, i32, &[u8])> = (0..batch.statements.len())
                    .map(|row| (partition, row as i32, &body[..]))
                    .collect();
                session.batch(&batch, rows).await.map_err(failed)?;
                written += batch.statements.len() as u64;
            }
            Ok::<u64, BdqsError>(written)
        });
    }
    let mut written = 0;
    while let Some(done) = writers.join_next().await {
        written += done.map_err(failed)??;
    }
    Ok(written as f64 / seconds_between(begun, now_ns()).max(1e-9))
}

fn failed(error: impl std::fmt::Display) -> BdqsError {
    BdqsError::Cassandra(error.to_string())
}

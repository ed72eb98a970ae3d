//! Front-ends over the Cassandra that the environment names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{
    Consistency, Created, Fault, NewMessage, NewQueue, QueueClass, QueueFacts, QueueRef, Queues,
    Receive, Received,
};
use tokio::runtime::{Builder, Runtime};

/// The account of all queues.
pub(crate) const ACCOUNT: &str = "000000000000";

/// Returns how long names and purges rest here: longer where several nodes share the processors.
pub(crate) fn cooldown_ms() -> u64 {
    if nodes().len() > 1 { 2_000 } else { 300 }
}

/// A runtime and a front-end on it.
pub(crate) struct Site {
    pub(crate) runtime: Runtime,
    pub(crate) queues: CassandraQueues,
}

impl Site {
    /// Returns the site that tests share, in a keyspace of this run's own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Site> = OnceLock::new();
        SHARED.get_or_init(|| {
            let runtime =
                Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let queues = runtime.block_on(CassandraQueues::connect(&settings())).unwrap();
            Self { runtime, queues }
        })
    }

    /// Connects another front-end beside it, with the same tables.
    pub(crate) async fn another(&self) -> CassandraQueues {
        CassandraQueues::connect(&settings()).await.unwrap()
    }
}

/// Returns the nodes of the environment, a keyspace of this process's own, and the consistency that
/// is asked for, if any is.
pub(crate) fn settings() -> CassandraSettings {
    let nodes = nodes();
    CassandraSettings {
        replication: nodes.len().min(3),
        nodes,
        keyspace: format!("quelea_{}", std::process::id()),
        user: std::env::var("QUELEA_TEST_CASSANDRA_USER").ok(),
        password_file: std::env::var("QUELEA_TEST_CASSANDRA_PASSWORD_FILE").ok().map(PathBuf::from),
        cooldown_ms: cooldown_ms(),
        consistency: consistency(),
        ..CassandraSettings::default()
    }
}

fn nodes() -> Vec<String> {
    let nodes = std::env::var("QUELEA_TEST_CASSANDRA")
        .expect("QUELEA_TEST_CASSANDRA names a Cassandra, as the suite cassandra does");
    nodes.split(',').map(str::to_owned).collect()
}

fn consistency() -> Consistency {
    let name = std::env::var("QUELEA_TEST_CASSANDRA_CONSISTENCY");
    let Ok(name) = name else { return CassandraSettings::default().consistency };
    let of_name = Consistency::ALL.into_iter().find(|one| one.name() == name);
    of_name.expect("QUELEA_TEST_CASSANDRA_CONSISTENCY is ONE or LOCAL_QUORUM")
}

/// Makes a queue with these attributes.
pub(crate) async fn queue(
    queues: &CassandraQueues,
    name: &str,
    attributes: &[(&str, &str)],
) -> Arc<QueueFacts> {
    let queue = QueueRef { account: ACCOUNT.into(), name: name.into() };
    let attributes: BTreeMap<String, String> =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let new = NewQueue { class: QueueClass::Replicated, attributes, tags: BTreeMap::new() };
    assert_eq!(queues.create(&queue, new).await.unwrap(), Created::New);
    queues.facts(&queue).await.unwrap().unwrap()
}

/// Returns a message with this body.
pub(crate) fn message(body: &str) -> NewMessage {
    NewMessage { body: body.to_owned().into(), sender_id: "sender".into(), ..NewMessage::default() }
}

/// Sends one message.
pub(crate) async fn send(
    queues: &CassandraQueues,
    queue: &Arc<QueueFacts>,
    body: &str,
) -> Result<String, Fault> {
    let outcomes = queues.send(queue, vec![message(body)]).await?;
    outcomes.into_iter().next().unwrap().map(|sent| sent.message_id)
}

/// Receives what is there, or comes within the longest wait.
pub(crate) async fn receive(
    queues: &CassandraQueues,
    queue: &Arc<QueueFacts>,
    hidden_ms: u64,
) -> Vec<Received> {
    let receive =
        Receive { max: 10, visibility_timeout_ms: hidden_ms, wait_ms: 20_000, attempt_id: None };
    queues.receive(queue, receive).await.unwrap()
}

/// Receives what is there now.
pub(crate) async fn receive_now(
    queues: &CassandraQueues,
    queue: &Arc<QueueFacts>,
) -> Vec<Received> {
    let receive = Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 0, attempt_id: None };
    queues.receive(queue, receive).await.unwrap()
}

//! What is left of deleted queues: whoever lists an account's queues reads across it, and Cassandra refuses to read across too
//! much of it (`tombstone_failure_threshold`).

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{Created, Fault, NewQueue, QueueClass, QueueRef, Queues as _};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::unprepared::Statement;

use crate::site::{Site, settings};

const ACCOUNT: &str = "111122223333";
const QUEUES: usize = 300;
const AT_ONCE: usize = 16;

/// Longer than a name rests here.
const POLLS_MAX: usize = 300;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

fn named(name: String) -> QueueRef {
    QueueRef { account: ACCOUNT.into(), name: name.into() }
}

async fn create(queues: &CassandraQueues, queue: &QueueRef) -> Result<Created, Fault> {
    let (attributes, tags) =
        (BTreeMap::from([("DelaySeconds".into(), "7".into())]), BTreeMap::new());
    queues.create(queue, NewQueue { class: QueueClass::Replicated, attributes, tags }).await
}

async fn delete(queues: &CassandraQueues, queue: &QueueRef) {
    let facts = queues.facts_now(queue).await.unwrap().expect("it was made");
    queues.delete_queue(&facts).await.unwrap();
}

async fn session() -> Session {
    let settings = settings();
    let mut builder = SessionBuilder::new()
        .known_nodes(&settings.nodes)
        .tracing_info_fetch_attempts(100.try_into().unwrap())
        .tracing_info_fetch_interval(Duration::from_millis(20));
    if let (Some(user), Some(file)) = (&settings.user, &settings.password_file) {
        builder = builder.user(user, std::fs::read_to_string(file).unwrap().trim());
    }
    let session = builder.build().await.unwrap();
    session.use_keyspace(&settings.keyspace, false).await.unwrap();
    session
}

/// Returns across how many tombstones a list of the account's queues is read, as the node says it.
async fn tombstones(session: &Session) -> usize {
    let query = format!(
        "SELECT name, id, attributes FROM queue WHERE account = '{ACCOUNT}' AND name >= '' LIMIT 500"
    );
    let mut statement = Statement::new(query);
    statement.set_tracing(true);
    let answer = session.query_unpaged(statement, ()).await.unwrap();
    let count = |said: &str| {
        let (before, _) = said.split_once(" tombstone cells")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    // A node writes what it did behind its answer, one event after the other.
    for _ in 0..POLLS_MAX {
        let trace = session.get_tracing_info(&answer.tracing_id().unwrap()).await.unwrap();
        let said = trace.events.iter().filter_map(|event| event.activity.as_deref());
        if let Some(most) = said.filter_map(count).max() {
            return most;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    panic!("the node does not say what it has read");
}

#[test]
fn a_deleted_queue_leaves_one_tombstone() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (queues, session) = (&site.queues, session().await);
        let all = || stream::iter((0..QUEUES).map(|number| named(format!("fleeting-{number}"))));
        all()
            .for_each_concurrent(AT_ONCE, |queue| async move {
                assert_eq!(create(queues, &queue).await.unwrap(), Created::New);
            })
            .await;
        let stays = named("stays".to_owned());
        assert_eq!(create(queues, &stays).await.unwrap(), Created::New);
        assert_eq!(tombstones(&session).await, 0, "queues that are there have none");
        all()
            .for_each_concurrent(AT_ONCE, |queue| async move { delete(queues, &queue).await })
            .await;
        assert_eq!(queues.list(&ACCOUNT.into(), "", None, 1_000).await.unwrap(), ["stays"]);
        // Until their names rest no longer those count for nothing.
        for poll in 0.. {
            let count = tombstones(&session).await;
            assert!(count <= QUEUES, "{count} tombstones of {QUEUES} queues");
            if count == QUEUES {
                break;
            }
            assert!(poll < POLLS_MAX, "{count} tombstones");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // What was deleted and is made anew is there.
        let again = named("fleeting-0".to_owned());
        assert_eq!(create(queues, &again).await.unwrap(), Created::New);
        assert!(tombstones(&session).await <= QUEUES, "it leaves no further one");
        assert_eq!(
            queues.list(&ACCOUNT.into(), "", None, 1_000).await.unwrap(),
            ["fleeting-0", "stays"]
        );
    });
}

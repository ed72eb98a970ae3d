//! Seconds that are too busy for one partition of the index.

use std::collections::BTreeSet;
use std::sync::Arc;

use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{QueueFacts, Queues, ReceiptOutcome};

use crate::migrations::session;
use crate::site::{Site, message, queue, receive, receive_now, settings};

/// The first level that stands for a further shard of a second.
const SHARD: i8 = 4;

/// Returns the settings of front-ends whose partitions take three rows, in a keyspace of their own.
pub(crate) fn narrow_settings(name: &str) -> CassandraSettings {
    let mut settings = CassandraSettings { bucket_rows_max: 3, ..settings() };
    settings.keyspace.push_str(name);
    settings
}

/// Sends so many messages at once.
pub(crate) async fn send_many(queues: &CassandraQueues, facts: &Arc<QueueFacts>, count: usize) {
    let messages = (0..count).map(|number| message(&number.to_string())).collect();
    for outcome in queues.send(facts, messages).await.unwrap() {
        outcome.unwrap();
    }
}

/// Returns the levels of all partitions that are listed.
pub(crate) async fn levels(settings: &CassandraSettings) -> BTreeSet<i8> {
    let query = format!("SELECT level FROM {}.bucket", settings.keyspace);
    let rows = session(settings).await.query_unpaged(query, ()).await.unwrap();
    let rows = rows.into_rows_result().unwrap();
    rows.rows::<(i8,)>().unwrap().map(|row| row.unwrap().0).collect()
}

#[test]
fn a_busy_second_is_spread_over_shards_and_nothing_is_missed() {
    const EACH: usize = 60;
    let settings = narrow_settings("_shards");
    Site::shared().runtime.block_on(async {
        let one = CassandraQueues::connect(&settings).await.unwrap();
        let other = CassandraQueues::connect(&settings).await.unwrap();
        for front_end in [&one, &other, &one] {
            front_end.beat().await.unwrap();
        }
        let facts = queue(&one, "busy", &[]).await;
        tokio::join!(send_many(&one, &facts, EACH), send_many(&other, &facts, EACH));
        assert!(levels(&settings).await.last() >= Some(&SHARD));
        assert_eq!(other.backlog(&facts).await.unwrap().visible, 2 * EACH as u64);

        let mut received = BTreeSet::new();
        for receiver in [&one, &other].into_iter().cycle() {
            let some = receive(receiver, &facts, 60_000).await;
            let deliveries = some.iter().map(|one| one.delivery.clone()).collect();
            received.extend(some.into_iter().map(|one| one.message_id));
            let outcomes = one.delete(&facts, deliveries).await.unwrap();
            assert!(outcomes.iter().all(|outcome| *outcome == ReceiptOutcome::Done));
            if received.len() == 2 * EACH {
                break;
            }
        }
        assert!(receive_now(&one, &facts).await.is_empty());
        assert!(receive_now(&other, &facts).await.is_empty());
    });
}

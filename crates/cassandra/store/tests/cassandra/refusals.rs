//! What Cassandra refuses for good, or cannot be read, of a queue: it is not to keep the rest from being sent and received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{Fault, NewMessage, QueueFacts, Queues as _, Receive};
use scylla::client::session::Session;
use uuid::Uuid;

use crate::fifo::{self, fifo_message, fifo_queue, generation, receive_one, session};
use crate::migrations;
use crate::site::{Site, message, queue, receive, receive_now, send, settings};

/// Far less than a call waits for an owner.
const SOON: Duration = Duration::from_secs(5);

/// More than Cassandra takes at once: half a segment of its commit log.
const TOO_LARGE: usize = 6 * 1024 * 1024;

/// Returns a front-end with tables of its own, and a way to change those.
async fn alone() -> (CassandraQueues, Session) {
    let mut settings = settings();
    settings.keyspace.push_str("_refused");
    let queues = CassandraQueues::connect(&settings).await.unwrap();
    let session = migrations::session(&settings).await;
    session.use_keyspace(&settings.keyspace, false).await.unwrap();
    (queues, session)
}

#[test]
fn a_message_that_cassandra_refuses_fails_alone() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "refused", &[]).await;
        let large = NewMessage { body: vec![b'x'; TOO_LARGE].into(), ..fifo_message("g", "b") };
        let messages = vec![fifo_message("g", "a"), large, fifo_message("g", "c")];
        let began = Instant::now();
        let outcomes = owner.send(&facts, messages).await.unwrap();
        assert!(began.elapsed() < SOON, "it is not repeated");
        let [Ok(_), Err(Fault::Invalid(why)), Ok(last)] = &outcomes[..] else {
            panic!("{outcomes:?}")
        };
        assert!(why.contains("oversized"), "{why}");
        // Its deduplication id is to be had again.
        let again = fifo::send(&owner, &facts, &["b"]).await;
        assert!(again[0].sequence_number > last.sequence_number);
        owner.release().await;
        for body in ["a", "c", "b"] {
            let received = receive_one(&other, &facts).await;
            assert_eq!(received.body, body);
            other.delete(&facts, vec![received.delivery]).await.unwrap();
        }
        assert_eq!(receive_now(&other, &facts).await, []);
    });
}

#[test]
fn a_row_that_cannot_be_read_is_left_out() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "unreadable", &[]).await;
        fifo::send(&owner, &facts, &["a", "b", "c"]).await;
        owner.release().await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let (epoch, segment, number) = message_rows(&session, generation).await[1];
        let of_row = "WHERE generation = ? AND epoch = ? AND segment = ?";
        let broken: [(String, i64); 2] = [
            (format!("DELETE group_id FROM fifo_message {of_row} AND kind = 0 AND number = ?"), number),
            (format!("DELETE deduplication_key FROM fifo_message {of_row} AND kind = 1 AND number = ?"), number),
        ];
        for (statement, number) in broken {
            session.query_unpaged(statement, (generation, epoch, segment, number)).await.unwrap();
        }

        let before = other.unreadable_rows();
        let receive = Receive { max: 10, visibility_timeout_ms: 60_000, wait_ms: 20_000, attempt_id: None };
        let received = other.receive(&facts, receive).await.unwrap();
        assert_eq!(received.iter().map(|one| &one.body[..]).collect::<Vec<_>>(), [b"a", b"c"]);
        assert_eq!(other.unreadable_rows() - before, 2, "the message, and its deduplication id");
    });
}

#[test]
fn a_first_row_that_cannot_be_read_keeps_no_owner_from_following() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "unreadable-first", &[]).await;
        fifo::send(&owner, &facts, &["a", "b"]).await;
        owner.release().await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let row = message_rows(&session, generation).await[0];
        let (epoch, segment, number) = row;
        let broken =
            "UPDATE fifo_message SET attributes = {'a': (null, 0x00)}, origin = ('a', null, 1)
            WHERE generation = ? AND epoch = ? AND segment = ? AND kind = 0 AND number = ?";
        session.query_unpaged(broken, (generation, epoch, segment, number)).await.unwrap();
        let before = other.unreadable_rows();
        assert_eq!(receive_one(&other, &facts).await.body, "b");
        assert!(other.unreadable_rows() > before);
        assert_eq!(message_rows(&session, generation).await[0], row, "it stays where it is");
    });
}

/// Returns partition and number of each message of a FIFO queue that has few.
async fn message_rows(session: &Session, generation: Uuid) -> Vec<(i64, i64, i64)> {
    let query = "SELECT epoch, segment, number FROM fifo_message WHERE generation = ? AND kind = 0 ALLOW FILTERING";
    let rows = session.query_unpaged(query, (generation,)).await.unwrap();
    rows.into_rows_result().unwrap().rows().unwrap().map(Result::unwrap).collect()
}

/// A time to live that is longer than Cassandra has any. No setting leads to it: it stands for what an operator's guardrails refuse.
const REFUSED_RETENTION_MS: u64 = 25 * 365 * 86_400_000;

#[test]
fn what_cassandra_refuses_of_a_standard_queue_fails_alone() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let facts = queue(&site.queues, "refused", &[]).await;
        let mut refused = QueueFacts::clone(&facts);
        refused.settings.retention_ms = REFUSED_RETENTION_MS;
        let refused = Arc::new(refused);
        // They gather behind the first, and are written together.
        let sends = (0..30).map(|number: usize| {
            let facts = if number % 3 == 2 { &refused } else { &facts };
            site.queues.send(facts, vec![message(&number.to_string())])
        });
        let outcomes = futures_util::future::join_all(sends).await;
        for (number, outcome) in outcomes.into_iter().enumerate() {
            match &outcome.unwrap()[..] {
                [Err(Fault::Invalid(why))] if number % 3 == 2 => {
                    assert!(why.contains("ttl is too large"), "{why}");
                }
                [Ok(_)] if number % 3 != 2 => {}
                other => panic!("{number}: {other:?}"),
            }
        }
        let mut bodies = BTreeSet::new();
        while bodies.len() < 20 {
            let received = receive(&site.queues, &facts, 600_000).await;
            assert!(!received.is_empty(), "{bodies:?}");
            for one in &received {
                let number: usize = std::str::from_utf8(&one.body).unwrap().parse().unwrap();
                assert!(number % 3 != 2 && bodies.insert(number), "{number}");
            }
        }
    });
}

#[test]
fn rows_of_a_standard_queue_that_cannot_be_read_are_left_out() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let facts = queue(&site.queues, "unreadable-standard", &[("OrderHint", "1")]).await;
        for number in 0..12 {
            send(&site.queues, &facts, &number.to_string()).await.unwrap();
        }
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let rows = async |table: &str, columns: &str| {
            let query = format!("SELECT {columns} FROM {table} WHERE generation = ? ALLOW FILTERING");
            session.query_unpaged(query, (generation,)).await.unwrap().into_rows_result().unwrap()
        };
        let entries = rows("entry", "start, level, visible_at, message").await;
        type Key = (i64, i8, i64, Uuid);
        let mut entries: Vec<Key> = entries.rows().unwrap().map(Result::unwrap).collect();
        entries.sort_unstable_by_key(|(_, _, visible_at, _)| *visible_at);
        let messages = rows("message", "start, level, message").await;
        let messages: BTreeMap<Uuid, (i64, i8)> = messages
            .rows::<(i64, i8, Uuid)>()
            .unwrap()
            .map(Result::unwrap)
            .map(|(start, level, message)| (message, (start, level)))
            .collect();
        // The oldest two entries, as whoever comes later may write them.
        for (start, level, visible_at, message) in &entries[..2] {
            let broken = "UPDATE entry SET body_level = 99 WHERE generation = ? AND shard = 0 AND start = ? AND level = ? AND visible_at = ? AND message = ?";
            let key = (generation, start, level, visible_at, message);
            session.query_unpaged(broken, key).await.unwrap();
        }
        // And the message of the next one.
        let (_, _, _, message) = entries[2];
        let (start, level) = messages[&message];
        let broken = "UPDATE message SET attributes = {'a': (null, 0x00)} WHERE generation = ? AND shard = 0 AND start = ? AND level = ? AND message = ?";
        session.query_unpaged(broken, (generation, start, level, message)).await.unwrap();

        let before = site.queues.unreadable_rows();
        let mut bodies = BTreeSet::new();
        while bodies.len() < 9 {
            let received = receive(&site.queues, &facts, 600_000).await;
            assert!(!received.is_empty(), "{bodies:?}");
            bodies.extend(received.iter().map(|one| one.body.clone()));
        }
        assert!(site.queues.unreadable_rows() - before >= 3);
        assert_eq!(receive_now(&site.queues, &facts).await, []);
        // They are not gone: what cannot be read is left as it is.
        assert_eq!(rows("message", "message").await.rows_num(), 12);
        assert_eq!(rows("entry", "message").await.rows_num(), 12);
    });
}

#[test]
fn a_queue_that_cannot_be_read_says_so_and_is_not_held() {
    Site::shared().runtime.block_on(async {
        let (queues, session) = alone().await;
        let facts = fifo_queue(&queues, "held", &[]).await;
        fifo::send(&queues, &facts, &["a"]).await;
        queues.release().await;
        let alter = async |change: &str| {
            session.query_unpaged(format!("ALTER TABLE fifo_message {change}"), ()).await.unwrap();
            session.await_schema_agreement().await.unwrap();
        };
        alter("DROP visible_at").await;
        let began = Instant::now();
        let refused = queues
            .receive(
                &facts,
                Receive { max: 1, visibility_timeout_ms: 1, wait_ms: 0, attempt_id: None },
            )
            .await;
        assert!(
            matches!(&refused, Err(Fault::Unavailable(why)) if why.contains("visible_at")),
            "{refused:?}"
        );
        assert!(began.elapsed() < SOON, "nobody waits for what does not pass");
        let query = "SELECT held_until FROM fifo_owner WHERE generation = ?";
        let generation: Uuid = generation(&session, &facts).await;
        let rows = session.query_unpaged(query, (generation,)).await.unwrap();
        assert_eq!(rows.into_rows_result().unwrap().single_row::<(i64,)>().unwrap(), (0,));
        alter("ADD visible_at bigint").await;
        assert_eq!(receive_one(&queues, &facts).await.body, "a");

        alter("DROP sender").await;
        let outcomes = queues.send(&facts, vec![fifo_message("h", "b")]).await.unwrap();
        assert!(
            matches!(&outcomes[..], [Err(Fault::Unavailable(why))] if why.contains("sender")),
            "{outcomes:?}"
        );
        alter("ADD sender text").await;
        fifo::send(&queues, &facts, &["c"]).await;
    });
}

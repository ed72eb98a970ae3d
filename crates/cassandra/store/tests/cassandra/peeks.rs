//! Looks that are no receptions: what they leave as it is, and what they know of FIFO queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{Peeked, PeekedState, QueueFacts, Queues};
use scylla::client::session::Session;
use uuid::Uuid;

use crate::fifo::{fifo_queue, generation, receive_one, send, session};
use crate::site::{Site, queue, receive, receive_now};

const HIDDEN_MS: u64 = 600_000;

/// Longer than a front-end takes to end.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Returns what is stored of a standard queue beside its bodies, with the times at which it was
/// written.
async fn index(session: &Session, generation: Uuid) -> (Vec<(i64, Uuid, i64)>, Vec<i64>, usize) {
    let rows = async |query: &str| {
        let query = format!("{query} WHERE generation = ? ALLOW FILTERING");
        session.query_unpaged(query, (generation,)).await.unwrap().into_rows_result().unwrap()
    };
    let entries = rows("SELECT visible_at, message, WRITETIME(written_at) FROM entry").await;
    let mut entries: Vec<_> = entries.rows().unwrap().map(Result::unwrap).collect();
    entries.sort_unstable();
    let marks = rows("SELECT visible_at FROM low_water_mark").await;
    let marks = marks.rows::<(i64,)>().unwrap().map(|row| row.unwrap().0).collect();
    (entries, marks, rows("SELECT start FROM bucket").await.rows_num())
}

/// Returns the row that says whose a FIFO queue is.
async fn owner(session: &Session, generation: Uuid) -> (i64, Uuid, i64) {
    let query = "SELECT epoch, holder, held_until FROM fifo_owner WHERE generation = ?";
    let rows = session.query_unpaged(query, (generation,)).await.unwrap();
    rows.into_rows_result().unwrap().single_row().unwrap()
}

async fn peek(queues: &CassandraQueues, facts: &Arc<QueueFacts>) -> Peeked {
    queues.peek(facts, 10).await.unwrap()
}

/// Returns body, receptions and state of each message.
fn shown(peeked: &Peeked) -> Vec<(&str, Option<u32>, Option<PeekedState>)> {
    let shown = peeked
        .messages
        .iter()
        .map(|one| (std::str::from_utf8(&one.body).unwrap(), one.receive_count, one.state));
    shown.collect()
}

#[test]
fn a_look_into_a_standard_queue_writes_nothing() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        let facts = queue(&one, "looked-at", &[("OrderHint", "1")]).await;
        for body in ["a", "b", "c"] {
            crate::site::send(&one, &facts, body).await.unwrap();
        }
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let before = index(&session, generation).await;
        assert_eq!(before.0.len(), 3);
        for queues in [&one, &other, &one] {
            let peeked = peek(queues, &facts).await;
            let visible = |body| (body, Some(0), Some(PeekedState::Visible));
            assert_eq!(shown(&peeked), ["a", "b", "c"].map(visible));
            assert!(peeked.is_whole);
        }
        assert_eq!(index(&session, generation).await, before);
        let received = receive(&other, &facts, HIDDEN_MS).await;
        let bodies: Vec<_> =
            received.iter().map(|one| (&one.body[..], one.receive_count)).collect();
        assert_eq!(bodies, [(&b"a"[..], 1), (b"b", 1), (b"c", 1)]);
    });
}

#[test]
fn a_look_ends_at_its_bytes() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let facts = queue(&site.queues, "looked-at-large", &[("OrderHint", "1")]).await;
        let large = "x".repeat(1024 * 1024);
        for _ in 0..9 {
            crate::site::send(&site.queues, &facts, &large).await.unwrap();
        }
        let peeked = peek(&site.queues, &facts).await;
        assert!((7..=8).contains(&peeked.messages.len()), "{}", peeked.messages.len());
        assert!(!peeked.is_whole);
    });
}

#[test]
fn a_look_takes_no_fifo_queue_over_and_knows_what_its_owner_has_said() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (first, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&first, "looked-at", &[]).await;
        send(&first, &facts, &["a", "b"]).await;
        let received = receive_one(&first, &facts).await;
        assert_eq!(received.body, "a");
        let owned = peek(&first, &facts).await;
        let [("a", Some(1), Some(PeekedState::InFlight { until_ms })), b] = shown(&owned)[..]
        else {
            panic!("{owned:?}")
        };
        assert_eq!((b, owned.is_whole), (("b", Some(0), Some(PeekedState::Visible)), true));
        assert!(until_ms > received.first_received_at_ms);
        assert_eq!(peek(&other, &facts).await, owned, "the owner answers for it");
        first.release().await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let before = owner(&session, generation).await;
        for queues in [&first, &other] {
            assert_eq!(
                peek(queues, &facts).await,
                owned,
                "it has let go, and said what is in flight"
            );
        }
        assert_eq!(owner(&session, generation).await, before);
        assert_eq!(receive_now(&other, &facts).await, [], "its group waits");
    });
}

#[test]
fn a_look_does_without_a_fifo_queues_owner() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (first, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&first, "looked-at-alone", &[]).await;
        assert_eq!(peek(&other, &facts).await, Peeked { messages: Vec::new(), is_whole: true });
        send(&first, &facts, &["a", "b"]).await;
        receive_one(&first, &facts).await;
        drop(first);
        // It may answer once more as it ends.
        let began = Instant::now();
        while peek(&other, &facts).await.messages[0].state.is_some() {
            assert!(began.elapsed() < PATIENCE, "the owner that is gone still answers");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let before = owner(&session, generation).await;
        let peeked = peek(&other, &facts).await;
        assert_eq!(shown(&peeked), [("a", None, None), ("b", None, None)]);
        assert!(peeked.is_whole);
        assert_eq!(owner(&session, generation).await, before);
    });
}

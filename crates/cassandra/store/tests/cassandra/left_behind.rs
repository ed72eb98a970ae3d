//! What a purge leaves behind, and how docs/cassandra/running.md has it deleted by hand.

use std::collections::BTreeSet;

use quelea_sqs_protocol::Queues;
use scylla::client::session::Session;
use uuid::Uuid;

use crate::fifo::{generation, session};
use crate::site::{Site, queue, receive_now, send};

/// Returns the generations that have partitions and that no queue has, as the page reads them.
async fn left_behind(session: &Session) -> BTreeSet<Uuid> {
    let listed = session.query_unpaged("SELECT DISTINCT generation, shard FROM bucket", ()).await;
    let listed = listed.unwrap().into_rows_result().unwrap();
    let of_queues = session.query_unpaged("SELECT generation FROM queue", ()).await.unwrap();
    let of_queues = of_queues.into_rows_result().unwrap();
    let of_queues: BTreeSet<Option<Uuid>> =
        of_queues.rows::<(Option<Uuid>,)>().unwrap().map(|row| row.unwrap().0).collect();
    let listed = listed.rows::<(Uuid, i16)>().unwrap().map(|row| row.unwrap().0);
    listed.filter(|generation| !of_queues.contains(&Some(*generation))).collect()
}

async fn rows(session: &Session, generation: Uuid) -> [usize; 2] {
    let mut rows = [0; 2];
    for (table, count) in ["message", "entry"].into_iter().zip(&mut rows) {
        let query = format!("SELECT message FROM {table} WHERE generation = ? ALLOW FILTERING");
        let found = session.query_unpaged(query, (generation,)).await.unwrap();
        *count = found.into_rows_result().unwrap().rows_num();
    }
    rows
}

#[test]
fn what_a_purge_leaves_behind_is_found_and_deleted_by_hand() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let session = session().await;
        let facts = queue(&site.queues, "left-behind", &[]).await;
        let old = generation(&session, &facts).await;
        for body in ["a", "b", "c"] {
            send(&site.queues, &facts, body).await.unwrap();
        }
        assert!(!left_behind(&session).await.contains(&old), "the queue has it");
        site.queues.purge(&facts).await.unwrap();
        send(&site.queues, &facts, "new").await.unwrap();
        let new = generation(&session, &facts).await;
        let left = left_behind(&session).await;
        assert!(left.contains(&old) && !left.contains(&new), "{left:?}");
        assert_eq!(rows(&session, old).await, [3, 3], "it takes its room");
        for (shard, table) in [(1_i16, "message"), (0, "entry")] {
            let listed = "SELECT start, level FROM bucket WHERE generation = ? AND shard = ?";
            let listed = session.query_unpaged(listed, (old, shard)).await.unwrap();
            let listed = listed.into_rows_result().unwrap();
            for bucket in listed.rows::<(i64, i8)>().unwrap() {
                let (start, level) = bucket.unwrap();
                let delete = format!(
                    "DELETE FROM {table} WHERE generation = ? AND shard = 0 AND start = ? AND level = ?"
                );
                session.query_unpaged(delete, (old, start, level)).await.unwrap();
            }
        }
        assert_eq!((rows(&session, old).await, rows(&session, new).await), ([0, 0], [1, 1]));
        assert_eq!(receive_now(&site.queues, &facts).await.len(), 1);
    });
}

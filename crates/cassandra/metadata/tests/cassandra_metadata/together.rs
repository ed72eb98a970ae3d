//! Several directories' stores over one table.

use std::sync::Arc;
use std::time::Duration;

use quelea_cassandra_metadata::CassandraMetadata;
use quelea_cassandra_store::CassandraSettings;
use quelea_elastic_directory::meta::{
    Change, Compare, MetaError, MetaStore, Op, Revision, Txn, TxnOutcome,
};

use crate::store;

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the nodes of the environment, and a keyspace of this process's own.
fn settings() -> CassandraSettings {
    let nodes = std::env::var("QUELEA_TEST_CASSANDRA")
        .expect("QUELEA_TEST_CASSANDRA names a Cassandra, as the suite elastic_cassandra does");
    let nodes: Vec<String> = nodes.split(',').map(str::to_owned).collect();
    CassandraSettings {
        replication: nodes.len().min(3),
        nodes,
        keyspace: format!("metadata_{}", std::process::id()),
        ..CassandraSettings::default()
    }
}

async fn connected() -> CassandraMetadata {
    CassandraMetadata::connect(&settings()).await.unwrap()
}

fn put(key: &str, value: &str) -> Op {
    Op::Put { key: key.to_owned(), value: value.to_owned().into(), lease: None }
}

#[tokio::test]
async fn cassandra_is_a_store() {
    store::check(Arc::new(connected().await), "quelea-store-test/").await;
}

/// A counter that several stores count up by comparing what they read: none of the counts is lost, and who watches sees all.
#[tokio::test]
async fn transactions_of_several_stores_come_one_after_the_other() {
    const STORES: usize = 3;
    const COUNTS: u64 = 20;
    const KEY: &str = "quelea-count-test/counter";
    let watcher = connected().await;
    let from = watcher.list("quelea-count-test/").await.unwrap().revision;
    let mut watch = watcher.watch("quelea-count-test/", from).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..STORES {
        let store = connected().await;
        tasks.spawn(async move {
            let mut done = 0;
            while done < COUNTS {
                let found = store.get(KEY).await.unwrap();
                let modified = found.as_ref().map_or(Revision(0), |entry| entry.modified);
                let count: u64 = found
                    .map_or(0, |entry| std::str::from_utf8(&entry.value).unwrap().parse().unwrap());
                let compares = vec![Compare::Modified(KEY.to_owned(), modified)];
                let changes = vec![put(KEY, &(count + 1).to_string())];
                if let TxnOutcome::Done(_) = store.txn(Txn { compares, changes }).await.unwrap() {
                    done += 1;
                }
            }
        });
    }
    let all = STORES as u64 * COUNTS;
    let mut seen = Vec::new();
    while seen.len() < all as usize {
        let changes = tokio::time::timeout(PATIENCE, watch.next()).await.expect("changes").unwrap();
        for change in changes {
            let Change::Put(entry) = change else { panic!("nothing goes: {change:?}") };
            seen.push(std::str::from_utf8(&entry.value).unwrap().parse::<u64>().unwrap());
        }
    }
    assert_eq!(seen, (1..=all).collect::<Vec<_>>());
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// More entries than one request reads, and than one transaction changes, all of a lease that nobody keeps alive: another
/// store ends it.
#[tokio::test]
async fn a_lease_that_is_not_kept_ends_with_all_that_it_holds() {
    const ENTRIES: usize = 1_100;
    const ROOT: &str = "quelea-lease-test/";
    let holder = connected().await;
    let kept = holder.lease(PATIENCE).await.unwrap();
    let lease = holder.lease(Duration::from_secs(5)).await.unwrap();
    let key = |number: usize| format!("{ROOT}{number:04}");
    for first in (0..ENTRIES).step_by(100) {
        holder.keep_alive(lease).await.unwrap();
        let put = |number| Op::Put { key: key(number), value: "held".into(), lease: Some(lease) };
        let changes = (first..first + 100).map(put).collect();
        let txn = Txn { compares: Vec::new(), changes };
        assert!(matches!(holder.txn(txn).await.unwrap(), TxnOutcome::Done(_)));
    }
    let stays = Op::Put { key: format!("{ROOT}kept"), value: "held".into(), lease: Some(kept) };
    holder.txn(Txn { compares: Vec::new(), changes: vec![stays] }).await.unwrap();
    let listing = holder.list(ROOT).await.unwrap();
    assert_eq!(listing.entries.len(), ENTRIES + 1);
    let watcher = connected().await;
    let mut watch = watcher.watch(ROOT, listing.revision).await.unwrap();
    drop(holder);
    let mut gone = 0;
    while gone < ENTRIES {
        let changes = tokio::time::timeout(PATIENCE, watch.next()).await.expect("changes").unwrap();
        assert!(changes.iter().all(|change| matches!(change, Change::Gone { .. })), "{changes:?}");
        gone += changes.len();
    }
    let left = watcher.list(ROOT).await.unwrap().entries;
    assert_eq!(left.len(), 1, "this lease's time is not over: {left:?}");
    // Its holder may have slept: it learns of it, and can hold nothing by it any more.
    assert_eq!(watcher.keep_alive(lease).await, Err(MetaError::LeaseEnded(lease)));
    let late = Op::Put { key: key(0), value: "late".into(), lease: Some(lease) };
    let refused = watcher.txn(Txn { compares: Vec::new(), changes: vec![late] }).await;
    assert_eq!(refused, Err(MetaError::LeaseEnded(lease)));
    watcher.revoke(kept).await.unwrap();
    assert_eq!(watcher.list(ROOT).await.unwrap().entries, []);
}

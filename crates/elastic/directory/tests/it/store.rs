//! What every metadata store has to do.

use std::sync::Arc;
use std::time::Duration;

use quelea_elastic_directory::meta::{
    Change, Compare, LeaseId, MetaStore, Op, Revision, Txn, TxnOutcome,
};

const TTL: Duration = Duration::from_secs(60);

fn put(key: &str, value: &'static str, lease: Option<LeaseId>) -> Op {
    Op::Put { key: key.to_owned(), value: value.into(), lease }
}

async fn commit(store: &dyn MetaStore, compares: Vec<Compare>, changes: Vec<Op>) -> TxnOutcome {
    store.txn(Txn { compares, changes }).await.unwrap()
}

fn done(outcome: TxnOutcome) -> Revision {
    match outcome {
        TxnOutcome::Done(revision) => revision,
        TxnOutcome::Refused => panic!("the transaction was refused"),
    }
}

fn created(key: &str, revision: Revision) -> Compare {
    Compare::Created(key.to_owned(), revision)
}

/// Runs all of it below `root`, where nothing is.
pub(crate) async fn check(store: Arc<dyn MetaStore>, root: &str) {
    a_key_has_revisions(store.as_ref(), &format!("{root}a/")).await;
    a_claim_is_won_once_and_fences(store.as_ref(), &format!("{root}b/")).await;
    a_watch_reports_all_in_order(store.as_ref(), &format!("{root}c/")).await;
    a_listing_of_many_records_comes_whole(store.as_ref(), &format!("{root}d/")).await;
}

async fn a_key_has_revisions(store: &dyn MetaStore, root: &str) {
    let key = format!("{root}key");
    assert_eq!(store.get(&key).await.unwrap(), None);
    let first = done(commit(store, Vec::new(), vec![put(&key, "1", None)]).await);
    let second = done(commit(store, Vec::new(), vec![put(&key, "2", None)]).await);
    assert!(second > first);
    let entry = store.get(&key).await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (first, second));
    assert_eq!(&entry.value[..], b"2");
    let stale = vec![Compare::Modified(key.clone(), first)];
    assert_eq!(commit(store, stale, vec![put(&key, "3", None)]).await, TxnOutcome::Refused);
    let both = vec![put(&format!("{root}other"), "x", None), Op::Delete { key: key.clone() }];
    done(commit(store, vec![Compare::Modified(key.clone(), second)], both).await);
    let listing = store.list(root).await.unwrap();
    let keys: Vec<_> = listing.entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, [format!("{root}other")]);
    assert!(listing.revision > second);
    let again =
        done(commit(store, vec![created(&key, Revision(0))], vec![put(&key, "4", None)]).await);
    assert_eq!(store.get(&key).await.unwrap().unwrap().created, again);
}

async fn a_claim_is_won_once_and_fences(store: &dyn MetaStore, root: &str) {
    let (shard, record) = (format!("{root}shard"), format!("{root}record"));
    let (one, other) = (store.lease(TTL).await.unwrap(), store.lease(TTL).await.unwrap());
    assert_ne!(one, other);
    let vacant = || vec![created(&shard, Revision(0))];
    let fence = done(commit(store, vacant(), vec![put(&shard, "one", Some(one))]).await);
    let late = commit(store, vacant(), vec![put(&shard, "other", Some(other))]).await;
    assert_eq!(late, TxnOutcome::Refused);
    store.keep_alive(one).await.unwrap();
    done(commit(store, vec![created(&shard, fence)], vec![put(&record, "by one", None)]).await);
    store.revoke(one).await.unwrap();
    assert_eq!(store.get(&shard).await.unwrap(), None, "it went with its lease");
    assert!(store.get(&record).await.unwrap().is_some(), "this had none");
    let next = done(commit(store, vacant(), vec![put(&shard, "other", Some(other))]).await);
    assert!(next > fence);
    let fenced =
        commit(store, vec![created(&shard, fence)], vec![put(&record, "late", None)]).await;
    assert_eq!(fenced, TxnOutcome::Refused);
    assert_eq!(&store.get(&record).await.unwrap().unwrap().value[..], b"by one");
    store.revoke(other).await.unwrap();
}

async fn a_watch_reports_all_in_order(store: &dyn MetaStore, root: &str) {
    let (key, outside) = (format!("{root}in/key"), format!("{root}out"));
    let from = store.list(root).await.unwrap().revision;
    // What happens between the listing and the watch is reported as well.
    done(commit(store, Vec::new(), vec![put(&key, "1", None)]).await);
    let mut watch = store.watch(&format!("{root}in/"), from).await.unwrap();
    done(commit(store, Vec::new(), vec![put(&outside, "x", None)]).await);
    done(commit(store, Vec::new(), vec![put(&key, "2", None)]).await);
    done(commit(store, Vec::new(), vec![Op::Delete { key: key.clone() }]).await);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let changes = tokio::time::timeout(TTL, watch.next()).await.expect("changes").unwrap();
        seen.extend(changes.into_iter().map(|change| match change {
            Change::Put(entry) => (entry.key, String::from_utf8(entry.value.to_vec()).unwrap()),
            Change::Gone { key, .. } => (key, "gone".to_owned()),
        }));
    }
    let expected = ["1", "2", "gone"].map(|value| (key.clone(), value.to_owned()));
    assert_eq!(seen, expected);
}

/// Of more bytes than clients of gRPC take in one answer if nobody says more, which is 4 MiB.
async fn a_listing_of_many_records_comes_whole(store: &dyn MetaStore, root: &str) {
    const RECORDS: usize = 10;
    const BYTES: usize = 500_000;
    for number in 0..RECORDS {
        let (key, value) = (format!("{root}{number}"), vec![b'r'; BYTES]);
        done(
            commit(store, Vec::new(), vec![Op::Put { key, value: value.into(), lease: None }])
                .await,
        );
    }
    let listing = store.list(root).await.unwrap();
    let bytes: usize = listing.entries.iter().map(|entry| entry.value.len()).sum();
    assert_eq!((listing.entries.len(), bytes), (RECORDS, RECORDS * BYTES));
}

use std::sync::Arc;
use std::time::Duration;

use quelea_elastic_directory::meta::embedded::Embedded;
use quelea_elastic_directory::meta::{MetaError, MetaStore as _, Op, Revision, Txn};

use crate::scratch::Scratch;
use crate::store;

fn put(key: &str, lease: Option<quelea_elastic_directory::meta::LeaseId>) -> Txn {
    let op = Op::Put { key: key.to_owned(), value: "v".into(), lease };
    Txn { compares: Vec::new(), changes: vec![op] }
}

#[tokio::test]
async fn it_does_what_a_store_has_to() {
    let scratch = Scratch::new();
    let embedded = Embedded::open(&scratch.path().join("m.redb")).unwrap();
    store::check(Arc::new(embedded), "root/").await;
}

#[tokio::test]
async fn records_stay_over_a_restart_and_leased_keys_do_not() {
    let scratch = Scratch::new();
    let path = scratch.path().join("m.redb");
    let first = Embedded::open(&path).unwrap();
    let lease = first.lease(Duration::from_secs(5)).await.unwrap();
    first.txn(put("record", None)).await.unwrap();
    first.txn(put("owner", Some(lease))).await.unwrap();
    let before = first.list("").await.unwrap();
    assert_eq!(before.entries.len(), 2);
    drop(first);
    let second = Embedded::open(&path).unwrap();
    let after = second.list("").await.unwrap();
    assert_eq!(after.entries, before.entries[1..]);
    assert!(after.revision > before.revision, "fences grow over a restart");
}

#[tokio::test]
async fn a_file_in_use_or_no_store_is_refused_by_its_path() {
    let scratch = Scratch::new();
    let path = scratch.path().join("m.redb");
    let _open = Embedded::open(&path).unwrap();
    let twice = Embedded::open(&path).err().unwrap().to_string();
    assert!(twice.contains("m.redb"), "{twice}");
    let other = scratch.path().join("other");
    std::fs::write(&other, "this is no database of anybody").unwrap();
    assert!(Embedded::open(&other).err().unwrap().to_string().contains("other"));
}

#[tokio::test]
async fn a_watch_that_comes_too_late_has_to_list_again() {
    let scratch = Scratch::new();
    let store = Embedded::open(&scratch.path().join("m.redb")).unwrap();
    store.txn(put("a", None)).await.unwrap();
    drop(store);
    let store = Embedded::open(&scratch.path().join("m.redb")).unwrap();
    let mut watch = store.watch("", Revision(0)).await.unwrap();
    assert!(matches!(watch.next().await, Err(MetaError::Compacted(_))));
}

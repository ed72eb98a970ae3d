//! Lists of queues.

use std::sync::Arc;

use quelea_sqs_protocol::{QueueFacts, Queues};

use crate::suite::{Suite, redrive_policy};

pub(crate) async fn names_are_listed_by_prefix_in_pages<Q: Queues>(suite: &Suite<Q>) {
    let prefix = suite.name();
    // By their bytes: digits, capitals, the underscore, small letters.
    let mut names = ["b", "a", "Z", "_", "0", "aa"].map(|end| format!("{prefix}{end}"));
    for name in &names {
        suite.create(name, &[]).await;
    }
    suite.create(&format!("x{prefix}"), &[]).await;
    names.sort_unstable();
    for size in [1, 2, 5, 6, 7, 1001] {
        let pages = pages(size, async |after| {
            suite.store.list(&suite.account, &prefix, after.as_deref(), size).await.unwrap()
        });
        assert_eq!(pages.await, names, "pages of {size}");
    }
    let none = suite.store.list(&suite.account, &format!("{prefix}none"), None, 10).await;
    assert_eq!(none, Ok(Vec::new()));
    let whole = suite.store.list(&suite.account, &names[0], None, 10).await.unwrap();
    assert_eq!(whole, [names[0].clone()], "a whole name is a prefix, too");
}

pub(crate) async fn names_of_another_account_are_not_listed<Q: Queues>(suite: &Suite<Q>) {
    let facts = suite.queue(&[]).await;
    let other: Arc<str> = "999999999999".into();
    let listed = suite.store.list(&other, "", None, 10).await.unwrap();
    assert!(!listed.iter().any(|name| **name == *facts.queue.name), "{listed:?}");
    let mut foreign = facts.queue.clone();
    foreign.account = other;
    assert_eq!(suite.facts(&foreign).await, None);
}

pub(crate) async fn sources_of_a_dead_letter_queue_are_listed_in_pages<Q: Queues>(
    suite: &Suite<Q>,
) {
    let dead = suite.queue(&[]).await;
    let other = suite.queue(&[]).await;
    let mut sources = Vec::new();
    for _ in 0..3 {
        sources.push(suite.queue(&[("RedrivePolicy", &redrive_policy(&dead.queue, 3))]).await);
    }
    suite.queue(&[("RedrivePolicy", &redrive_policy(&other.queue, 3))]).await;
    let names = |sources: &[Arc<QueueFacts>]| {
        let mut names: Vec<_> = sources.iter().map(|one| one.queue.name.to_string()).collect();
        names.sort_unstable();
        names
    };
    let listed = async |size| {
        pages(size, async |after| {
            let after = after.as_deref();
            suite.store.dead_letter_sources(&dead, after, size).await.unwrap()
        })
        .await
    };
    for size in [1, 2, 3, 1001] {
        assert_eq!(listed(size).await, names(&sources), "pages of {size}");
    }
    // One that has another dead-letter queue now, and one that is gone.
    let (moved, gone) = (sources.remove(0), sources.remove(0));
    let attributes = crate::suite::map(&[("RedrivePolicy", &redrive_policy(&other.queue, 3))]);
    suite.store.put_attributes(&moved, attributes).await.unwrap();
    suite.store.delete_queue(&gone).await.unwrap();
    assert_eq!(listed(10).await, names(&sources));
}

/// Returns all that comes in pages of that size.
async fn pages(size: usize, page: impl AsyncFn(Option<String>) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let found = page(all.last().cloned()).await;
        assert!(found.len() <= size);
        let is_last = found.len() < size;
        all.extend(found);
        if is_last {
            return all;
        }
    }
}

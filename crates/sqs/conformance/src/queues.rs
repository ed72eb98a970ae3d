//! Queues come and go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quelea_sqs_protocol::{Created, Fault, QueueClass, QueueFacts, QueueKey, Queues};

use crate::suite::{HIDDEN_MS, Suite, TRIES, at_once, map, message};

pub(crate) async fn a_queue_is_made_once_and_found_by_its_name<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue_ref(&suite.name());
    assert_eq!(suite.facts(&queue).await, None);
    let new = suite.new_queue(&[("DelaySeconds", "5")]);
    assert_eq!(suite.store.create(&queue, new.clone()).await, Ok(Created::New));
    let facts = suite.facts(&queue).await.unwrap();
    assert_eq!((facts.key.class(), &facts.queue), (suite.class, &queue));
    // What is wished differs, and nothing changes: whether that is refused is the service's to say.
    let other = suite.new_queue(&[("DelaySeconds", "6")]);
    assert_eq!(suite.store.create(&queue, other).await, Ok(Created::Exists(Arc::clone(&facts))));
    assert_eq!(suite.facts(&queue).await, Some(facts));
}

pub(crate) async fn of_two_that_make_a_queue_at_once_one_is_new<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue_ref(&suite.name());
    let new = |seconds| suite.new_queue(&[("DelaySeconds", seconds)]);
    let (first, second) =
        tokio::join!(suite.store.create(&queue, new("5")), suite.store.create(&queue, new("6")));
    let facts = suite.facts(&queue).await.unwrap();
    let made = &facts.attributes["DelaySeconds"];
    for (seconds, created) in [("5", first), ("6", second)] {
        match created.unwrap() {
            Created::New => assert_eq!(seconds, made, "the queue is that of whoever made it"),
            Created::Exists(seen) => {
                assert_ne!(seconds, made);
                assert_eq!(seen.key, facts.key);
            }
            Created::DeletedRecently => panic!("it was never deleted"),
        }
    }
}

pub(crate) async fn a_deleted_queue_is_gone_and_its_name_rests<Q: Queues>(suite: &Suite<Q>) {
    // A store that is busy may take longer than the name rests.
    for _ in 0..TRIES {
        let facts = suite.queue(&[]).await;
        let began = Instant::now();
        suite.store.delete_queue(&facts).await.unwrap();
        let found = suite.facts(&facts.queue).await;
        assert_eq!(found, None, "it is gone at once where it was deleted");
        let again = suite.store.create(&facts.queue, suite.new_queue(&[])).await;
        if began.elapsed() < Duration::from_millis(suite.cooldown_ms) {
            assert_eq!(again, Ok(Created::DeletedRecently));
            made_anew(suite, &facts).await;
            return;
        }
    }
    panic!("the store is too slow to show that a name rests");
}

pub(crate) async fn a_queue_that_is_made_anew_is_another_one<Q: Queues>(suite: &Suite<Q>) {
    let old = suite.queue(&[("DelaySeconds", "0")]).await;
    suite.send_bodies(&old, &["old"]).await;
    suite.store.delete_queue(&old).await.unwrap();
    let new = made_anew(suite, &old).await;
    assert_ne!(new.key, old.key);
    assert_eq!(new.attributes, map(&[]));
    suite.expect_nothing(&new).await;
    // What is done with the facts of the old one does not reach the new one.
    if let Ok(sent) = suite.store.send(&old, vec![message("late")]).await {
        assert!(suite.capabilities().facts_age_ms_max > 0, "{sent:?}");
    }
    let _ = suite.store.delete_queue(&old).await;
    assert_eq!(suite.facts(&new.queue).await, Some(Arc::clone(&new)));
    suite.expect_nothing(&new).await;
}

pub(crate) async fn calls_of_a_queue_that_is_gone_say_so<Q: Queues>(suite: &Suite<Q>) {
    let facts = suite.queue(&[]).await;
    suite.store.delete_queue(&facts).await.unwrap();
    calls_find_no_queue(suite, &facts).await;
}

pub(crate) async fn a_key_of_another_class_is_no_queue<Q: Queues>(suite: &Suite<Q>) {
    let facts = suite.queue(&[]).await;
    let other = QueueClass::ALL.into_iter().find(|class| *class != suite.class).unwrap();
    let id = facts.key.id_in(suite.class).unwrap();
    let foreign = Arc::new(QueueFacts { key: QueueKey::new(other, id), ..(*facts).clone() });
    calls_find_no_queue(suite, &foreign).await;
    assert_eq!(suite.store.delete_queue(&foreign).await, Err(Fault::NoSuchQueue));
    assert_eq!(suite.facts(&facts.queue).await, Some(facts));
}

async fn calls_find_no_queue<Q: Queues>(suite: &Suite<Q>, facts: &Arc<QueueFacts>) {
    let store = &suite.store;
    let gone = Fault::NoSuchQueue;
    assert_eq!(store.send(facts, vec![message("x")]).await, Err(gone.clone()));
    assert_eq!(store.receive(facts, at_once(1, HIDDEN_MS)).await, Err(gone.clone()));
    assert_eq!(store.backlog(facts).await, Err(gone.clone()));
    assert_eq!(store.purge(facts).await, Err(gone.clone()));
    assert_eq!(store.put_attributes(facts, map(&[("DelaySeconds", "1")])).await, Err(gone.clone()));
    assert_eq!(store.put_tags(facts, map(&[("a", "b")])).await, Err(gone));
}

/// Makes a queue of that name again as soon as it may be made.
async fn made_anew<Q: Queues>(suite: &Suite<Q>, old: &QueueFacts) -> Arc<QueueFacts> {
    let create = async || suite.store.create(&old.queue, suite.new_queue(&[])).await.unwrap();
    suite.until("the name to be free", create, |created| *created == Created::New).await;
    suite.facts(&old.queue).await.unwrap()
}

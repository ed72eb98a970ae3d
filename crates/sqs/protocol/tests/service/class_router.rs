//! Two stores behind one service: a name is one queue in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quelea_sqs_protocol::{ClassRouter, Created, NameLock, NewQueue, QueueClass, QueueRef, Queues};

use crate::harness::{map, ready};
use crate::memory::Memory;

const ACCOUNT: &str = "000000000000";

fn queue(name: &str) -> QueueRef {
    QueueRef { account: ACCOUNT.into(), name: name.into() }
}

fn new(class: QueueClass) -> NewQueue {
    NewQueue { class, attributes: map(&[]), tags: map(&[]) }
}

/// Returns the router, and its two stores.
fn stores() -> (ClassRouter<Memory, Memory>, Memory, Memory) {
    let (ordered, replicated) = (Memory::default(), Memory::default());
    ordered.lose(QueueClass::Replicated);
    replicated.lose(QueueClass::Ordered);
    (ClassRouter::new(ordered.clone(), replicated.clone()), ordered, replicated)
}

#[test]
fn a_name_that_one_store_has_is_not_made_in_the_other() {
    let (router, ..) = stores();
    for (name, first, second) in [
        ("a", QueueClass::Ordered, QueueClass::Replicated),
        ("b", QueueClass::Replicated, QueueClass::Ordered),
    ] {
        assert_eq!(ready(router.create(&queue(name), new(first))), Ok(Created::New));
        let made = ready(router.facts(&queue(name))).unwrap().unwrap();
        assert_eq!(made.key.class(), first);
        let again = ready(router.create(&queue(name), new(second)));
        assert_eq!(again, Ok(Created::Exists(made)));
    }
}

#[test]
fn each_queue_is_in_the_store_of_its_class() {
    let (router, ordered, replicated) = stores();
    ready(router.create(&queue("o"), new(QueueClass::Ordered))).unwrap();
    ready(router.create(&queue("r"), new(QueueClass::Replicated))).unwrap();
    let has = |store: &Memory, name| ready(store.facts(&queue(name))).unwrap().is_some();
    assert!(has(&ordered, "o") && !has(&ordered, "r"));
    assert!(has(&replicated, "r") && !has(&replicated, "o"));
}

#[test]
fn a_list_holds_the_names_of_both_stores_in_order() {
    let (router, ..) = stores();
    for (name, class) in [
        ("a", QueueClass::Replicated),
        ("b", QueueClass::Ordered),
        ("c", QueueClass::Replicated),
        ("d", QueueClass::Ordered),
    ] {
        ready(router.create(&queue(name), new(class))).unwrap();
    }
    let account = Arc::from(ACCOUNT);
    let list = |after, max| ready(router.list(&account, "", after, max)).unwrap();
    assert_eq!(list(None, 10), ["a", "b", "c", "d"]);
    assert_eq!(list(None, 3), ["a", "b", "c"]);
    assert_eq!(list(Some("c"), 3), ["d"]);
}

#[test]
fn of_two_that_are_made_at_once_the_one_made_elsewhere_stays() {
    for (here, there) in [
        (QueueClass::Ordered, QueueClass::Replicated),
        (QueueClass::Replicated, QueueClass::Ordered),
    ] {
        let (router, ordered, replicated) = stores();
        let (first, second) = match here {
            QueueClass::Ordered => (ordered, replicated),
            QueueClass::Replicated => (replicated, ordered),
        };
        let elsewhere = second.clone();
        first.when_created(move || {
            ready(elsewhere.create(&queue("q"), new(there))).unwrap();
        });
        let created = ready(router.create(&queue("q"), new(here))).unwrap();
        let made = ready(second.facts(&queue("q"))).unwrap().unwrap();
        assert_eq!(created, Created::Exists(made));
        assert_eq!(ready(first.facts(&queue("q"))), Ok(None));
    }
}

/// Counts who holds a name.
#[derive(Clone, Default)]
struct Holders(Arc<AtomicUsize>);

struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl NameLock for Holders {
    type Held = Held;

    async fn hold(&self, _queue: &QueueRef) -> Held {
        self.0.fetch_add(1, Ordering::SeqCst);
        Held(Arc::clone(&self.0))
    }
}

#[test]
fn a_name_is_held_while_a_queue_of_it_is_made() {
    let (_, ordered, replicated) = stores();
    let holders = Holders::default();
    let router = ClassRouter::holding(ordered.clone(), replicated, holders.clone());
    let (seen, count) = (Arc::<AtomicUsize>::default(), Arc::clone(&holders.0));
    let noted = Arc::clone(&seen);
    ordered.when_created(move || noted.store(count.load(Ordering::SeqCst), Ordering::SeqCst));
    ready(router.create(&queue("q"), new(QueueClass::Ordered))).unwrap();
    assert_eq!((seen.load(Ordering::SeqCst), holders.0.load(Ordering::SeqCst)), (1, 0));
}

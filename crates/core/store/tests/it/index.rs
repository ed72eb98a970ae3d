//! The queue index against a sorted map.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use quelea_model::{Message, Seq, Timestamp};
use quelea_store::{Drained, Entry, EntryFlags, Front, Location, QueueIndex, QueuedMessage};

use crate::state::message;

#[derive(Clone, Debug)]
enum Operation {
    PushBack {
        count: usize,
        skip: u64,
        body: bool,
        expires: bool,
    },
    PopFront {
        count: usize,
    },
    /// Puts popped ones back, in this order of their age.
    Requeue {
        count: usize,
        newest_first: bool,
    },
    Remove {
        at: usize,
    },
    Insert {
        seq: u64,
    },
    Evict {
        bytes: usize,
    },
    Drain,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (1..900_usize, 1..3_u64, any::<bool>(), any::<bool>())
            .prop_map(|(count, skip, body, expires)| Operation::PushBack { count, skip, body, expires }),
        5 => (1..700_usize).prop_map(|count| Operation::PopFront { count }),
        4 => (1..600_usize, any::<bool>())
            .prop_map(|(count, newest_first)| Operation::Requeue { count, newest_first }),
        5 => (0..2_000_usize).prop_map(|at| Operation::Remove { at }),
        3 => (1..4_000_u64).prop_map(|seq| Operation::Insert { seq }),
        2 => (1..100_000_usize).prop_map(|bytes| Operation::Evict { bytes }),
        1 => Just(Operation::Drain),
    ]
}

type Model = BTreeMap<Seq, (u32, Option<Timestamp>)>;

fn ready(seq: Seq, body: bool, expires: bool) -> QueuedMessage {
    let body_bytes = (seq.0 % 50) as u32;
    let entry = Entry {
        seq,
        location: Location { segment: 1, offset: seq.0 as u32 },
        body_bytes,
        flags: if seq.0.is_multiple_of(3) { EntryFlags::NONE } else { EntryFlags::STORED },
        ..Entry::default()
    };
    let expires_at = expires.then(|| Timestamp::from_millis(seq.0));
    let body: Option<Arc<Message>> = body.then(|| message(seq, body_bytes));
    QueuedMessage { entry, expires_at, body }
}

fn put(index: &mut QueueIndex, model: &mut Model, ready: QueuedMessage, insert: bool) {
    model.insert(ready.entry.seq, (ready.entry.body_bytes, ready.expires_at));
    if insert {
        index.insert(ready.entry, ready.expires_at, ready.body);
    } else {
        index.push_back(ready.entry, ready.expires_at, ready.body);
    }
}

fn assert_same(index: &QueueIndex, model: &Model) {
    assert_eq!(index.len(), model.len());
    assert_eq!(index.body_bytes(), model.values().map(|(bytes, _)| u64::from(*bytes)).sum::<u64>());
    let unstored = model.keys().filter(|seq| seq.0.is_multiple_of(3)).count();
    assert_eq!(index.unstored_len(), unstored);
    let entries =
        index.entries().map(|(entry, expires_at)| (entry.seq, (entry.body_bytes, expires_at)));
    assert!(entries.eq(model.iter().map(|(seq, held)| (*seq, *held))), "other entries");
    assert_eq!(index.last_seq().filter(|_| !index.is_empty()), model.keys().last().copied());
    match index.front() {
        Front::Empty => assert!(model.is_empty()),
        Front::Entry { entry, .. } => assert_eq!(Some(&entry.seq), model.keys().next()),
        Front::Paged(_) => panic!("nothing was paged out"),
    }
    let resident: usize = model
        .keys()
        .filter_map(|seq| index.get(*seq)?.body)
        .map(|body| body.resident_bytes())
        .sum();
    assert_eq!(index.resident_bytes(), resident);
}

fn check(model: &mut Model, ready: &QueuedMessage) {
    let (body_bytes, expires_at) = model.remove(&ready.entry.seq).expect("it was in the index");
    assert_eq!(ready.entry.body_bytes, body_bytes);
    assert_eq!(ready.expires_at, expires_at);
    if let Some(body) = &ready.body {
        assert_eq!(body.body(), message(ready.entry.seq, body_bytes).body());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_a_sorted_map(operations in prop::collection::vec(operation(), 1..25)) {
        let mut index = QueueIndex::new();
        let mut model = Model::new();
        let mut popped: Vec<QueuedMessage> = Vec::new();
        let mut next = 1;
        for operation in operations {
            match operation {
                Operation::PushBack { count, skip, body, expires } => {
                    for _ in 0..count {
                        next += skip;
                        put(&mut index, &mut model, ready(Seq(next), body, expires), false);
                    }
                }
                Operation::PopFront { count } => {
                    for _ in 0..count {
                        let first = model.keys().next().copied();
                        let Some(ready) = index.pop_front() else { break };
                        prop_assert_eq!(Some(ready.entry.seq), first);
                        check(&mut model, &ready);
                        popped.push(ready);
                    }
                }
                Operation::Requeue { count, newest_first } => {
                    let mut back = popped.split_off(popped.len().saturating_sub(count));
                    if newest_first {
                        back.reverse();
                    }
                    for ready in back {
                        put(&mut index, &mut model, ready, true);
                    }
                }
                Operation::Remove { at } => {
                    if let Some(seq) = model.keys().nth(at).copied() {
                        let ready = index.remove(seq).expect("it is there");
                        check(&mut model, &ready);
                        prop_assert!(index.remove(seq).is_none());
                    }
                }
                Operation::Insert { seq } => {
                    popped.retain(|ready| ready.entry.seq != Seq(seq));
                    put(&mut index, &mut model, ready(Seq(seq), true, seq % 2 == 0), true);
                    next = next.max(seq);
                }
                Operation::Evict { bytes } => {
                    let before = index.resident_bytes();
                    prop_assert_eq!(index.evict(bytes), before - index.resident_bytes());
                }
                Operation::Drain => {
                    index.drain(&mut |removed| match removed {
                        Drained::Entry(ready) => check(&mut model, &ready),
                        Drained::PagedRange(_) => panic!("nothing was paged out"),
                    });
                    prop_assert_eq!(index.index_bytes(), 0);
                }
            }
            assert_same(&index, &model);
        }
    }
}

#[test]
fn ten_million_entries_take_little_more_than_24_bytes_each() {
    let mut index = QueueIndex::new();
    for seq in 1..=100_000 {
        index.push_back(ready(Seq(seq), false, false).entry, None, None);
    }
    let bytes = index.index_bytes();
    assert!(bytes < 100_000 * 25, "{bytes}");
}

#[test]
fn an_idle_queue_takes_little() {
    let mut index = QueueIndex::new();
    assert_eq!(index.index_bytes(), 0);
    index.push_back(ready(Seq(1), false, false).entry, None, None);
    assert!(index.index_bytes() < 300, "{}", index.index_bytes());
}

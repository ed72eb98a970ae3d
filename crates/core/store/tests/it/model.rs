//! Random operations with crashes and restarts, and the log against the store in memory.

use proptest::prelude::*;
use quelea_model::{QueueId, Timestamp};
use quelea_store::fake_disk::Survival;
use quelea_store::{Durability, LogStore, Store};

use crate::harness::{StoreHarness, tiny};
use crate::state::State;

#[derive(Clone, Debug)]
enum Operation {
    Publish { queues: Vec<u32>, body_bytes: u32, durable: bool, expires_at: Option<u64> },
    Deliver { queue: u32, count: usize },
    AckOne { at: usize },
    RequeueOne { at: usize },
    Hide { at: usize, visible_at: u64, receive_count: u16 },
    Send { queue: u32, body_bytes: u32, visible_at: u64, key: u64 },
    Purge { queue: u32 },
    DeleteQueue { queue: u32 },
    PutTopology { key: u8, value: u8 },
    DeleteTopology { key: u8 },
    Transaction { queue: u32, publishes: usize, body_bytes: u32 },
    Ticket { durability: Durability },
    Steps { count: usize },
    Wait { ms: u64 },
    BeginCheckpoint,
    Slice { max: usize },
    Kill,
    Crash { survival: Survival, seed: u64 },
    CrashInAJob { survival: Survival, seed: u64 },
}

fn durability() -> impl Strategy<Value = Durability> {
    prop_oneof![Just(Durability::Os), Just(Durability::Fsync)]
}

fn survival() -> impl Strategy<Value = Survival> {
    prop_oneof![
        Just(Survival::All),
        Just(Survival::Nothing),
        Just(Survival::Prefix),
        Just(Survival::Suffix),
        Just(Survival::Random),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let queue = 1..4_u32;
    let size = prop_oneof![6 => 0..300_u32, 3 => 300..1_500_u32, 1 => 15_000..18_000_u32];
    let queues = prop_oneof![
        Just(vec![1]),
        Just(vec![2]),
        Just(vec![3]),
        Just(vec![1, 2]),
        Just(vec![3, 1, 2])
    ];
    prop_oneof![
        12 => (queues, size.clone(), prop::bool::weighted(0.9), prop::option::weighted(0.2, 1..99_u64))
            .prop_map(|(queues, body_bytes, durable, expires_at)| {
                Operation::Publish { queues, body_bytes, durable, expires_at }
            }),
        8 => (queue.clone(), 1..6_usize).prop_map(|(queue, count)| Operation::Deliver { queue, count }),
        12 => (0..9_usize).prop_map(|at| Operation::AckOne { at }),
        3 => (0..9_usize).prop_map(|at| Operation::RequeueOne { at }),
        6 => (0..9_usize, 0..99_u64, 1..9_u16).prop_map(|(at, visible_at, receive_count)| {
            Operation::Hide { at, visible_at, receive_count }
        }),
        4 => (queue.clone(), size.clone(), 0..99_u64, 0..5_u64)
            .prop_map(|(queue, body_bytes, visible_at, key)| {
                Operation::Send { queue, body_bytes, visible_at, key }
            }),
        1 => queue.clone().prop_map(|queue| Operation::Purge { queue }),
        1 => queue.clone().prop_map(|queue| Operation::DeleteQueue { queue }),
        1 => (0..5_u8, any::<u8>()).prop_map(|(key, value)| Operation::PutTopology { key, value }),
        1 => (0..5_u8).prop_map(|key| Operation::DeleteTopology { key }),
        2 => (queue, 0..6_usize, size)
            .prop_map(|(queue, publishes, body_bytes)| Operation::Transaction { queue, publishes, body_bytes }),
        6 => durability().prop_map(|durability| Operation::Ticket { durability }),
        10 => (1..8_usize).prop_map(|count| Operation::Steps { count }),
        3 => (1..400_u64).prop_map(|ms| Operation::Wait { ms }),
        1 => Just(Operation::BeginCheckpoint),
        4 => (1..40_usize).prop_map(|max| Operation::Slice { max }),
        1 => Just(Operation::Kill),
        1 => (survival(), any::<u64>()).prop_map(|(survival, seed)| Operation::Crash { survival, seed }),
        1 => (survival(), any::<u64>()).prop_map(|(survival, seed)| Operation::CrashInAJob { survival, seed }),
    ]
}

fn apply<S: Store>(harness: &mut StoreHarness<S>, operation: &Operation) {
    let key = |key: u8| format!("key {key}");
    match operation {
        Operation::Publish { queues, body_bytes, durable, expires_at } => {
            let expiries: Vec<Timestamp> =
                expires_at.iter().map(|ms| Timestamp::from_millis(*ms)).collect();
            harness.publish_with(queues, *body_bytes, *durable, &expiries, 0);
        }
        Operation::Deliver { queue, count } => {
            for _ in 0..*count {
                harness.deliver(*queue);
            }
        }
        Operation::AckOne { at } => {
            if let Some((queue, seq)) = harness.unacked.keys().nth(*at).copied() {
                harness.ack(queue.0, seq);
            }
        }
        Operation::RequeueOne { at } => {
            if let Some((queue, seq)) = harness.unacked.keys().nth(*at).copied() {
                harness.requeue(queue.0, seq);
            }
        }
        Operation::Hide { at, visible_at, receive_count } => {
            if let Some((queue, seq)) = harness.unacked.keys().nth(*at).copied() {
                harness.hide(queue.0, seq, *visible_at, *receive_count);
            }
        }
        Operation::Send { queue, body_bytes, visible_at, key } => {
            harness.send(*queue, *body_bytes, *visible_at, *key);
        }
        Operation::Purge { queue } => harness.purge(*queue),
        Operation::DeleteQueue { queue } => harness.delete_queue(*queue),
        Operation::PutTopology { key: k, value } => {
            harness.put_topology(&key(*k), &"x".repeat(usize::from(*value)));
        }
        Operation::DeleteTopology { key: k } => harness.delete_topology(&key(*k)),
        Operation::Transaction { queue, publishes, body_bytes } => {
            harness.transaction(*queue, *publishes, *body_bytes);
        }
        Operation::Ticket { durability } => {
            harness.ticket(*durability);
        }
        Operation::Steps { count } => {
            for _ in 0..*count {
                harness.step();
            }
        }
        Operation::Wait { ms } => {
            harness.now = harness.now.plus_ms(*ms);
            harness.step();
        }
        Operation::BeginCheckpoint => harness.begin_checkpoint(),
        Operation::Slice { max } => harness.checkpoint_slice(*max),
        Operation::Kill | Operation::Crash { .. } | Operation::CrashInAJob { .. } => {}
    }
}

/// Returns how many live (queue, message) pairs the harness knows of.
fn pairs(harness: &StoreHarness<LogStore>) -> u64 {
    (harness.ready.values().map(|index| index.len()).sum::<usize>() + harness.unacked.len()) as u64
}

proptest! {
    // PROPTEST_CASES sets the number of cases.
    #[test]
    fn whatever_happens_a_crash_leaves_a_moment_that_was(
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        let mut harness = StoreHarness::new(tiny());
        for operation in &operations {
            match operation {
                Operation::Kill => harness = harness.kill(),
                Operation::Crash { survival, seed } => harness = harness.crash(*survival, *seed),
                Operation::CrashInAJob { survival, seed } => {
                    let _ = harness.run_unfinished();
                    harness = harness.crash(*survival, *seed);
                }
                operation => apply(&mut harness, operation),
            }
            prop_assert_eq!(harness.store.stats().live, pairs(&harness));
        }
        harness.settle_pass();
        harness.load_everything();
        let after = harness.restart();
        prop_assert_eq!(after.store.stats().live, pairs(&after));
    }

    #[test]
    fn the_log_and_the_store_in_memory_hold_the_same(
        operations in prop::collection::vec(operation(), 1..100),
    ) {
        let mut log = StoreHarness::new(tiny());
        let mut memory = StoreHarness::in_memory();
        for operation in &operations {
            apply(&mut log, operation);
            apply(&mut memory, operation);
        }
        log.settle_pass();
        let log = log.restart();
        let mut state = State::default();
        let recovered = memory.store.recover();
        state.note(&recovered);
        state.topology = recovered.topology;
        for (queue, index) in &recovered.queues {
            for (entry, expires_at) in index.entries() {
                state.put(QueueId(queue.0), entry, expires_at);
            }
        }
        prop_assert_eq!(&log.state, &state);
        prop_assert!(recovered.next_seq <= log.next_seq);
    }
}

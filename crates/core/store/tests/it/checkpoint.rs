//! When a checkpoint is due, what it saves, and that nobody waits for it.

use quelea_store::fake_disk::Survival;
use quelea_store::{Durability, Lane, Store};

use crate::harness::{StoreHarness, small};

#[test]
fn a_checkpoint_is_wanted_once_the_log_has_grown_enough() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 100);
    harness.settle();
    assert!(!harness.store.wants_checkpoint());
    for _ in 0..200 {
        harness.publish(&[1], 80);
    }
    harness.settle();
    assert!(harness.store.wants_checkpoint());
    harness.checkpoint();
    assert!(!harness.store.wants_checkpoint());
    // A checkpoint of 3,000 messages is 72 KB, so the next one waits for 144 KB.
    for _ in 0..3_000 {
        harness.publish_fast(&[1], 0);
    }
    harness.settle();
    harness.checkpoint();
    let bytes = harness.store.stats().checkpoint_bytes;
    assert!(bytes > 70_000, "{bytes}");
    while !harness.store.wants_checkpoint() {
        harness.publish_fast(&[1], 100);
        harness.settle();
    }
    assert!(harness.store.stats().replay_bytes > 2 * bytes);
}

#[test]
fn a_recovery_replays_only_what_came_after_the_checkpoint() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..200 {
        harness.publish(&[1], 200);
    }
    harness.settle();
    harness.checkpoint();
    harness.publish(&[1], 200);
    harness.sync();
    let after = harness.crash_unhistoric();
    assert!(after.store.stats().replay_bytes < 1_000, "{:?}", after.store.stats());
    assert_eq!(after.ready.values().map(|index| index.len()).sum::<usize>(), 201);
}

#[test]
fn confirms_do_not_wait_for_a_checkpoint_under_way() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..500 {
        harness.publish_fast(&[1], 100);
    }
    harness.settle();
    harness.begin_checkpoint();
    while harness.is_passing() {
        harness.checkpoint_slice(100);
        harness.pump();
    }
    // Its background job does not come back; batches are written all the same.
    harness.publish_fast(&[1], 10);
    harness.store.begin_checkpoint();
    let mut held = Vec::new();
    for _ in 0..20 {
        harness.publish_fast(&[1], 10);
        let ticket = harness.ticket(Durability::Fsync);
        while let Some(done) = harness.run_unfinished() {
            if done.lane() == Lane::Background {
                held.push(done);
            } else {
                harness.complete(done);
            }
        }
        assert!(harness.is_reached(ticket));
    }
    assert!(held.len() <= 1, "one background job at a time");
}

#[test]
fn the_chunks_of_a_checkpoint_do_not_pile_up_in_memory() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..5_000 {
        harness.publish_fast(&[1], 0);
    }
    harness.settle();
    harness.store.begin_checkpoint();
    let queue = quelea_model::QueueId(1);
    let mut given = 0;
    while harness.store.checkpoint_ready() {
        // The same entries again and again: harmless, and a lot.
        let mut index = harness.ready.remove(&queue).expect("the queue");
        let mut cursor = quelea_store::CheckpointCursor::default();
        index.checkpoint(queue, &mut cursor, usize::MAX, &mut harness.store);
        harness.ready.insert(queue, index);
        given += 5_000 * 24;
        assert!(given < 10_000_000, "it never asked to pause");
    }
    harness.pump();
    assert!(harness.store.checkpoint_ready());
    harness.store.finish_checkpoint();
    harness.settle();
    let after = harness.crash_unhistoric();
    assert_eq!(after.ready[&queue].len(), 5_000);
}

#[test]
fn a_clean_stop_leaves_nothing_to_replay() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..300 {
        harness.publish_fast(&[1, 2], 100);
    }
    for _ in 0..50 {
        harness.consume_fast(1);
    }
    harness.checkpoint();
    assert!(harness.store.is_idle());
    let after = harness.crash_unhistoric();
    assert!(after.store.stats().replay_bytes < 200, "{:?}", after.store.stats());
    assert_eq!(after.store.stats().live, 550);
}

#[test]
fn a_checkpoint_is_named_only_after_its_log_is_synced() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..20 {
        harness.publish(&[1], 100);
    }
    harness.sync();
    harness.settle();
    harness.begin_checkpoint();
    // Goes into the checkpoint, and into a batch whose write does not come back.
    harness.publish(&[1], 100);
    while harness.is_passing() {
        harness.checkpoint_slice(100);
    }
    let write = harness.store.poll_job(harness.now).expect("the batch");
    assert_eq!(write.lane(), Lane::Write);
    harness.pump();
    assert_eq!(harness.store.stats().checkpoints, 0);
    harness.crash(Survival::Nothing, 0);
    harness.crash(Survival::All, 0);
    let done = write.run(&harness.disk);
    harness.complete(done);
    harness.pump();
    assert_eq!(harness.store.stats().checkpoints, 1);
    harness.crash(Survival::Nothing, 0);
}

#[test]
fn topology_that_changes_while_a_checkpoint_takes_it_is_recovered_as_it_is() {
    for between in 0..9 {
        let mut harness = StoreHarness::new(small());
        harness.publish(&[1], 100);
        for n in 0..40 {
            harness.put_topology(&format!("item {n:02}"), "old");
        }
        harness.sync();
        harness.settle();
        harness.begin_checkpoint();
        harness.pump();
        let mut slices = 0;
        while !harness.store.checkpoint_topology(4) {
            if slices == between {
                // Some that were taken, and some that were not.
                for n in [0, 1, 20, 38, 39] {
                    harness.delete_topology(&format!("item {n:02}"));
                }
                for n in [1, 2, 21, 37, 39, 50] {
                    harness.put_topology(&format!("item {n:02}"), "new");
                }
                harness.put_topology("a first one", "new");
            }
            slices += 1;
        }
        assert!((9..=12).contains(&slices), "{slices} slices of four items");
        harness.settle_pass();
        harness.sync();
        harness.settle();
        assert_eq!(harness.store.stats().checkpoints, 1);
        let after = harness.crash(Survival::All, 0);
        assert_eq!(after.state.topology, harness.state.topology, "changed after {between} slices");
    }
}

#[test]
fn room_is_kept_for_ids_that_are_noted_during_a_pass() {
    let mut harness = StoreHarness::new(small());
    harness.begin_checkpoint();
    assert!(harness.store.checkpoint_gathering());
    for key in 0..600 {
        harness.send(1, 10, 0, key);
        harness.sync();
    }
    // 600 ids fill more than two segments.
    assert!(harness.store.stats().segments_spare >= 3, "{:?}", harness.store.stats());
    harness.settle_pass();
    assert_eq!(harness.restart().state.deduplications.len(), 600);
}

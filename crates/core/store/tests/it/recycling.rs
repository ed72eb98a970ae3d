//! Segments that are freed, recycled, copied from.

use std::io::ErrorKind;

use quelea_store::fake_disk::{Call, Survival};
use quelea_store::{Durability, Store};

use crate::harness::{StoreHarness, small, tiny};

#[test]
fn a_queue_that_is_consumed_needs_no_new_files() {
    let mut harness = StoreHarness::new(small());
    for round in 0..400 {
        for _ in 0..5 {
            harness.publish(&[1], 1_000);
        }
        harness.consume(1, 5);
        harness.ticket(Durability::Fsync);
        harness.pump();
        harness.now = harness.now.plus_ms(300);
        harness.pump();
        if round == 30 {
            assert!(harness.store.stats().segments_recycled > 3);
        }
    }
    let stats = harness.store.stats();
    assert!(stats.segments <= 3 && stats.segments_spare <= 4, "{stats:?}");
    let files = quelea_store::Disk::list(&harness.disk).unwrap().len();
    assert!(files <= 8, "{files} files");
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn records_of_a_files_former_life_are_never_taken_for_valid() {
    let mut harness = StoreHarness::new(tiny());
    for seed in 0..150 {
        // Records of the same length at the same places, life after life.
        harness.publish(&[1], 500);
        harness.consume(1, 1);
        harness.ticket(Durability::Fsync);
        harness.pump();
        harness.now = harness.now.plus_ms(300);
        harness.pump();
        if seed % 3 == 0 {
            harness.publish(&[1], 500);
            let _ = harness.run_unfinished();
            harness = harness.crash(Survival::Random, seed);
        }
    }
}

#[test]
fn topology_in_an_old_segment_keeps_it_until_a_checkpoint_has_it() {
    let mut harness = StoreHarness::new(tiny());
    harness.put_topology("a", "1");
    for _ in 0..30 {
        harness.publish(&[1], 500);
        harness.consume(1, 1);
        harness.settle();
    }
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
    let segments = harness.store.stats().segments;
    assert!(segments > 5);
    harness.checkpoint();
    harness.settle();
    assert!(harness.store.stats().segments <= 2, "{:?}", harness.store.stats());
    assert_eq!(harness.restart().state.topology.len(), 1);
}

#[test]
fn an_empty_segment_in_the_middle_is_freed_by_a_checkpoint() {
    let mut harness = StoreHarness::new(tiny());
    harness.publish(&[2], 100);
    for _ in 0..40 {
        harness.publish(&[1], 500);
        harness.consume(1, 1);
    }
    harness.settle();
    assert!(harness.store.stats().segments > 4, "the first one is needed, and so are later ones");
    harness.checkpoint();
    harness.settle();
    let stats = harness.store.stats();
    assert!(stats.segments <= 2, "{stats:?}");
    let mut after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state, harness.state);
    after.load_everything();
    after.publish(&[1], 100);
    after.settle();
    after.restart();
}

#[test]
fn stuck_messages_are_copied_forward_and_nothing_is_lost() {
    let mut harness = StoreHarness::new(small());
    // One in twenty stays, in two queues.
    for at in 0..600 {
        if at % 20 == 0 {
            harness.publish(&[2, 3], 700);
        } else {
            harness.publish(&[1], 700);
            harness.consume(1, 1);
        }
    }
    harness.settle();
    let before = harness.store.stats();
    let mut passes = 0;
    while harness.store.stats().segments > 6 {
        harness.checkpoint();
        harness.settle();
        passes += 1;
        assert!(passes < 50, "{:?}", harness.store.stats());
    }
    let after = harness.store.stats();
    assert!(after.copied_bytes > 0);
    assert!(after.copied_bytes < 60 * 1_000, "a fan-out is copied once: {after:?}");
    assert_eq!(after.live, before.live);
    harness.load_everything();
    let mut restarted = harness.restart();
    restarted.load_everything();
    assert_eq!(restarted.store.stats().live, before.live);
    // The copies behave like any other message.
    restarted.consume(2, 100);
    restarted.consume(3, 100);
    restarted.settle();
    assert_eq!(restarted.store.stats().live, 0);
}

#[test]
fn delivered_messages_are_copied_forward_too() {
    let mut harness = StoreHarness::new(small());
    for at in 0..300 {
        harness.publish(&[1], 700);
        if at % 25 == 0 {
            harness.deliver(1);
        } else {
            harness.consume(1, 1);
        }
    }
    harness.settle();
    for _ in 0..6 {
        harness.checkpoint();
    }
    assert!(harness.store.stats().copied_bytes > 0);
    harness.load_everything();
    let unacked: Vec<_> = harness.unacked.keys().copied().collect();
    for (queue, seq) in unacked {
        harness.requeue(queue.0, seq);
    }
    harness.load_everything();
    assert_eq!(harness.restart().state.messages.len(), 12);
}

#[test]
fn a_message_that_goes_back_during_a_pass_is_not_lost() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..100 {
        harness.publish(&[1], 300);
    }
    let delivered: Vec<_> = (0..50).filter_map(|_| harness.deliver(1)).collect();
    harness.settle();
    harness.begin_checkpoint();
    for seq in delivered {
        harness.pump();
        harness.checkpoint_slice(1);
        // Behind the pass, which has left the ready ones of this place.
        harness.requeue(1, seq);
    }
    while harness.is_passing() {
        harness.pump();
        harness.checkpoint_slice(10);
    }
    harness.settle();
    assert_eq!(harness.store.stats().checkpoints, 1);
    assert_eq!(harness.restart().state.messages.len(), 100);
}

#[test]
fn spilled_transient_messages_take_space_only_while_they_live() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..100 {
        harness.publish_with(&[1], 1_000, false, &[], 0);
    }
    harness.settle();
    assert!(harness.store.stats().segments > 5);
    harness.load_everything();
    let after = harness.crash(Survival::All, 0);
    assert!(after.state.messages.is_empty());
    harness.consume(1, 100);
    harness.publish(&[1], 1_000);
    harness.settle();
    assert!(harness.store.stats().segments <= 2, "{:?}", harness.store.stats());
}

/// The copy only moves what the original made: a replay without a checkpoint needs both.
#[test]
fn an_original_stays_until_a_checkpoint_knows_its_copy() {
    for failed in [false, true] {
        let mut harness = StoreHarness::new(tiny());
        harness.publish(&[2], 100);
        for _ in 0..30 {
            harness.publish(&[1], 500);
            harness.consume(1, 1);
        }
        harness.settle();
        harness.begin_checkpoint();
        harness.pump();
        while harness.is_passing() {
            harness.pump();
            harness.checkpoint_slice(100);
        }
        assert!(harness.store.stats().copied_bytes > 0);
        if failed {
            harness.disk.fail(Call::Rename, 0, 1, ErrorKind::Other);
            harness.settle();
            assert_eq!(harness.store.stats().checkpoints_failed, 1);
        } else {
            harness.sync();
        }
        for _ in 0..20 {
            harness = harness.crash(Survival::Nothing, 0);
            harness.publish(&[1], 500);
            harness.consume(1, 1);
            harness.settle();
        }
        harness.load_everything();
        assert_eq!(harness.state.messages.len(), 1);
    }
}

/// A fan-out is copied for one queue while its message in the other one is delivered and goes back.
#[test]
fn a_requeue_during_a_pass_does_not_undo_a_copy() {
    let mut harness = StoreHarness::new(tiny());
    let seq = harness.publish(&[1, 2], 100);
    for _ in 0..50 {
        harness.publish(&[3], 200);
        harness.consume(3, 1);
    }
    harness.deliver(2);
    harness.settle();
    harness.begin_checkpoint();
    harness.pump();
    harness.checkpoint_slice(100);
    assert!(harness.store.stats().copied_bytes > 0, "the first queue's entry was moved");
    harness.requeue(2, seq);
    harness.settle_pass();
    assert_eq!(harness.store.stats().checkpoints, 1);
    for _ in 0..20 {
        harness.publish(&[3], 500);
        harness.consume(3, 1);
        harness.settle();
        harness = harness.crash(Survival::Nothing, 0);
    }
    harness.load_everything();
    assert_eq!(harness.state.messages.len(), 2);
}

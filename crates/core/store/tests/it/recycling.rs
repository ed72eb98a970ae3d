//! Segments that are freed, recycled, copied from.

use std::io::ErrorKind;

use quelea_store::fake_disk::{Call, Survival};
use quelea_store::{Durability, Store};

use crate::world::{World, small, tiny};

#[test]
fn a_queue_that_is_consumed_needs_no_new_files() {
    let mut world = World::new(small());
    for round in 0..400 {
        for _ in 0..5 {
            world.publish(&[1], 1_000);
        }
        world.consume(1, 5);
        world.ticket(Durability::Fsync);
        world.pump();
        world.now = world.now.plus_ms(300);
        world.pump();
        if round == 30 {
            assert!(world.store.stats().segments_recycled > 3);
        }
    }
    let stats = world.store.stats();
    assert!(stats.segments <= 3 && stats.segments_spare <= 4, "{stats:?}");
    let files = quelea_store::Disk::list(&world.disk).unwrap().len();
    assert!(files <= 8, "{files} files");
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn records_of_a_files_former_life_are_never_taken_for_valid() {
    let mut world = World::new(tiny());
    for seed in 0..150 {
        // Records of the same length at the same places, life after life.
        world.publish(&[1], 500);
        world.consume(1, 1);
        world.ticket(Durability::Fsync);
        world.pump();
        world.now = world.now.plus_ms(300);
        world.pump();
        if seed % 3 == 0 {
            world.publish(&[1], 500);
            let _ = world.run_unfinished();
            world = world.crash(Survival::Random, seed);
        }
    }
}

#[test]
fn topology_in_an_old_segment_keeps_it_until_a_checkpoint_has_it() {
    let mut world = World::new(tiny());
    world.put_topology("a", "1");
    for _ in 0..30 {
        world.publish(&[1], 500);
        world.consume(1, 1);
        world.settle();
    }
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
    let segments = world.store.stats().segments;
    assert!(segments > 5);
    world.checkpoint();
    world.settle();
    assert!(world.store.stats().segments <= 2, "{:?}", world.store.stats());
    assert_eq!(world.restart().state.topology.len(), 1);
}

#[test]
fn an_empty_segment_in_the_middle_is_freed_by_a_checkpoint() {
    let mut world = World::new(tiny());
    world.publish(&[2], 100);
    for _ in 0..40 {
        world.publish(&[1], 500);
        world.consume(1, 1);
    }
    world.settle();
    assert!(world.store.stats().segments > 4, "the first one is needed, and so are later ones");
    world.checkpoint();
    world.settle();
    let stats = world.store.stats();
    assert!(stats.segments <= 2, "{stats:?}");
    let mut after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state, world.state);
    after.load_everything();
    after.publish(&[1], 100);
    after.settle();
    after.restart();
}

#[test]
fn stuck_messages_are_copied_forward_and_nothing_is_lost() {
    let mut world = World::new(small());
    // One in twenty stays, in two queues.
    for at in 0..600 {
        if at % 20 == 0 {
            world.publish(&[2, 3], 700);
        } else {
            world.publish(&[1], 700);
            world.consume(1, 1);
        }
    }
    world.settle();
    let before = world.store.stats();
    let mut passes = 0;
    while world.store.stats().segments > 6 {
        world.checkpoint();
        world.settle();
        passes += 1;
        assert!(passes < 50, "{:?}", world.store.stats());
    }
    let after = world.store.stats();
    assert!(after.copied_bytes > 0);
    assert!(after.copied_bytes < 60 * 1_000, "a fan-out is copied once: {after:?}");
    assert_eq!(after.live, before.live);
    world.load_everything();
    let mut restarted = world.restart();
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
    let mut world = World::new(small());
    for at in 0..300 {
        world.publish(&[1], 700);
        if at % 25 == 0 {
            world.deliver(1);
        } else {
            world.consume(1, 1);
        }
    }
    world.settle();
    for _ in 0..6 {
        world.checkpoint();
    }
    assert!(world.store.stats().copied_bytes > 0);
    world.load_everything();
    let unacked: Vec<_> = world.unacked.keys().copied().collect();
    for (queue, seq) in unacked {
        world.requeue(queue.0, seq);
    }
    world.load_everything();
    assert_eq!(world.restart().state.messages.len(), 12);
}

#[test]
fn a_message_that_goes_back_during_a_pass_is_not_lost() {
    let mut world = World::new(small());
    for _ in 0..100 {
        world.publish(&[1], 300);
    }
    let delivered: Vec<_> = (0..50).filter_map(|_| world.deliver(1)).collect();
    world.settle();
    world.begin_checkpoint();
    for seq in delivered {
        world.pump();
        world.checkpoint_slice(1);
        // Behind the pass, which has left the ready ones of this place.
        world.requeue(1, seq);
    }
    while world.is_passing() {
        world.pump();
        world.checkpoint_slice(10);
    }
    world.settle();
    assert_eq!(world.store.stats().checkpoints, 1);
    assert_eq!(world.restart().state.messages.len(), 100);
}

#[test]
fn spilled_transient_messages_take_space_only_while_they_live() {
    let mut world = World::new(small());
    for _ in 0..100 {
        world.publish_with(&[1], 1_000, false, &[], 0);
    }
    world.settle();
    assert!(world.store.stats().segments > 5);
    world.load_everything();
    let after = world.crash(Survival::All, 0);
    assert!(after.state.messages.is_empty());
    world.consume(1, 100);
    world.publish(&[1], 1_000);
    world.settle();
    assert!(world.store.stats().segments <= 2, "{:?}", world.store.stats());
}

/// The copy only moves what the original made: a replay without a checkpoint needs both.
#[test]
fn an_original_stays_until_a_checkpoint_knows_its_copy() {
    for failed in [false, true] {
        let mut world = World::new(tiny());
        world.publish(&[2], 100);
        for _ in 0..30 {
            world.publish(&[1], 500);
            world.consume(1, 1);
        }
        world.settle();
        world.begin_checkpoint();
        world.pump();
        while world.is_passing() {
            world.pump();
            world.checkpoint_slice(100);
        }
        assert!(world.store.stats().copied_bytes > 0);
        if failed {
            world.disk.fail(Call::Rename, 0, 1, ErrorKind::Other);
            world.settle();
            assert_eq!(world.store.stats().checkpoints_failed, 1);
        } else {
            world.sync();
        }
        for _ in 0..20 {
            world = world.crash(Survival::Nothing, 0);
            world.publish(&[1], 500);
            world.consume(1, 1);
            world.settle();
        }
        world.load_everything();
        assert_eq!(world.state.messages.len(), 1);
    }
}

/// A fan-out is copied for one queue while its message in the other one is delivered and goes back.
#[test]
fn a_requeue_during_a_pass_does_not_undo_a_copy() {
    let mut world = World::new(tiny());
    let seq = world.publish(&[1, 2], 100);
    for _ in 0..50 {
        world.publish(&[3], 200);
        world.consume(3, 1);
    }
    world.deliver(2);
    world.settle();
    world.begin_checkpoint();
    world.pump();
    world.checkpoint_slice(100);
    assert!(world.store.stats().copied_bytes > 0, "the first queue's entry was moved");
    world.requeue(2, seq);
    world.settle_pass();
    assert_eq!(world.store.stats().checkpoints, 1);
    for _ in 0..20 {
        world.publish(&[3], 500);
        world.consume(3, 1);
        world.settle();
        world = world.crash(Survival::Nothing, 0);
    }
    world.load_everything();
    assert_eq!(world.state.messages.len(), 2);
}

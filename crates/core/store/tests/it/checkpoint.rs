//! When a checkpoint is due, what it saves, and that nobody waits for it.

use quelea_store::fake_disk::Survival;
use quelea_store::{Durability, Lane, Store};

use crate::world::{World, small};

#[test]
fn a_checkpoint_is_wanted_once_the_log_has_grown_enough() {
    let mut world = World::new(small());
    world.publish(&[1], 100);
    world.settle();
    assert!(!world.store.wants_checkpoint());
    for _ in 0..200 {
        world.publish(&[1], 80);
    }
    world.settle();
    assert!(world.store.wants_checkpoint());
    world.checkpoint();
    assert!(!world.store.wants_checkpoint());
    // A checkpoint of 3,000 messages is 72 KB, so the next one waits for 144 KB.
    for _ in 0..3_000 {
        world.publish_fast(&[1], 0);
    }
    world.settle();
    world.checkpoint();
    let bytes = world.store.stats().checkpoint_bytes;
    assert!(bytes > 70_000, "{bytes}");
    while !world.store.wants_checkpoint() {
        world.publish_fast(&[1], 100);
        world.settle();
    }
    assert!(world.store.stats().replay_bytes > 2 * bytes);
}

#[test]
fn a_recovery_replays_only_what_came_after_the_checkpoint() {
    let mut world = World::new(small());
    for _ in 0..200 {
        world.publish(&[1], 200);
    }
    world.settle();
    world.checkpoint();
    world.publish(&[1], 200);
    world.sync();
    let after = world.crash_unhistoric();
    assert!(after.store.stats().replay_bytes < 1_000, "{:?}", after.store.stats());
    assert_eq!(after.ready.values().map(|index| index.len()).sum::<usize>(), 201);
}

#[test]
fn confirms_do_not_wait_for_a_checkpoint_under_way() {
    let mut world = World::new(small());
    for _ in 0..500 {
        world.publish_fast(&[1], 100);
    }
    world.settle();
    world.begin_checkpoint();
    while world.is_passing() {
        world.checkpoint_slice(100);
        world.pump();
    }
    // Its background job does not come back; batches are written all the same.
    world.publish_fast(&[1], 10);
    world.store.begin_checkpoint();
    let mut held = Vec::new();
    for _ in 0..20 {
        world.publish_fast(&[1], 10);
        let ticket = world.ticket(Durability::Fsync);
        while let Some(done) = world.run_unfinished() {
            if done.lane() == Lane::Background {
                held.push(done);
            } else {
                world.complete(done);
            }
        }
        assert!(world.is_reached(ticket));
    }
    assert!(held.len() <= 1, "one background job at a time");
}

#[test]
fn the_chunks_of_a_checkpoint_do_not_pile_up_in_memory() {
    let mut world = World::new(small());
    for _ in 0..5_000 {
        world.publish_fast(&[1], 0);
    }
    world.settle();
    world.store.begin_checkpoint();
    let queue = quelea_model::QueueId(1);
    let mut given = 0;
    while world.store.checkpoint_ready() {
        // The same entries again and again: harmless, and a lot.
        let mut index = world.ready.remove(&queue).expect("the queue");
        let mut cursor = quelea_store::CheckpointCursor::default();
        index.checkpoint(queue, &mut cursor, usize::MAX, &mut world.store);
        world.ready.insert(queue, index);
        given += 5_000 * 24;
        assert!(given < 10_000_000, "it never asked to pause");
    }
    world.pump();
    assert!(world.store.checkpoint_ready());
    world.store.finish_checkpoint();
    world.settle();
    let after = world.crash_unhistoric();
    assert_eq!(after.ready[&queue].len(), 5_000);
}

#[test]
fn a_clean_stop_leaves_nothing_to_replay() {
    let mut world = World::new(small());
    for _ in 0..300 {
        world.publish_fast(&[1, 2], 100);
    }
    for _ in 0..50 {
        world.consume_fast(1);
    }
    world.checkpoint();
    assert!(world.store.is_idle());
    let after = world.crash_unhistoric();
    assert!(after.store.stats().replay_bytes < 200, "{:?}", after.store.stats());
    assert_eq!(after.store.stats().live, 550);
}

#[test]
fn a_checkpoint_is_named_only_after_its_log_is_synced() {
    let mut world = World::new(small());
    for _ in 0..20 {
        world.publish(&[1], 100);
    }
    world.sync();
    world.settle();
    world.begin_checkpoint();
    // Goes into the checkpoint, and into a batch whose write does not come back.
    world.publish(&[1], 100);
    while world.is_passing() {
        world.checkpoint_slice(100);
    }
    let write = world.store.poll_job(world.now).expect("the batch");
    assert_eq!(write.lane(), Lane::Write);
    world.pump();
    assert_eq!(world.store.stats().checkpoints, 0);
    world.crash(Survival::Nothing, 0);
    world.crash(Survival::All, 0);
    let done = write.run(&world.disk);
    world.complete(done);
    world.pump();
    assert_eq!(world.store.stats().checkpoints, 1);
    world.crash(Survival::Nothing, 0);
}

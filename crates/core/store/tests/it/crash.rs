//! Crashes at every sync of scripted workloads, and what a recovery makes of the images.

use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{Durability, LogStore, Store};

use crate::world::{World, small, tiny};

const SURVIVALS: [Survival; 5] =
    [Survival::All, Survival::Nothing, Survival::Prefix, Survival::Suffix, Survival::Random];

/// Runs jobs one by one; after each, crashes at every sync in it and checks every image.
fn crash_at_every_sync(world: &mut World<LogStore>, seeds: u64) -> usize {
    let mut images = 0;
    world.disk.set_recording(true);
    while let Some(done) = world.run_unfinished() {
        let mut points = world.disk.take_recorded();
        points.push(world.disk.clone());
        images += check_points(world, &points, seeds);
        world.complete(done);
    }
    world.disk.set_recording(false);
    images
}

fn check_points(world: &World<LogStore>, points: &[FakeDisk], seeds: u64) -> usize {
    let mut images = 0;
    for point in points {
        for survival in SURVIVALS {
            let needs_seeds = !matches!(survival, Survival::All | Survival::Nothing);
            for seed in 0..if needs_seeds { seeds } else { 1 } {
                let after = world.open_image(point.crash(survival, seed), survival);
                images += 1;
                if seed == 0 {
                    // What was recovered is durable: a second crash loses nothing.
                    let again = after.crash(Survival::Nothing, 0);
                    assert_eq!(again.state, after.state);
                }
            }
        }
    }
    images
}

fn some_work(world: &mut World<LogStore>, round: u32) {
    world.put_topology(&format!("queue/{}", round % 3), &format!("round {round}"));
    for size in [0, 40, 300, 1_100] {
        world.publish(&[1], size);
        world.publish(&[1, 2, 3], size / 2);
    }
    world.ticket(Durability::Fsync);
    world.send(2, 60, u64::from(round), u64::from(round % 3));
    let first = world.deliver(1);
    if let Some(seq) = world.deliver(2) {
        world.hide(2, seq, 50, 1);
        world.ticket(Durability::Fsync);
        world.hide(2, seq, 60, 2);
    }
    world.consume(2, 2);
    world.ticket(Durability::Os);
    if let Some(seq) = first {
        world.requeue(1, seq);
    }
    if round % 4 == 3 {
        world.purge(3);
        world.delete_topology("queue/1");
    }
    if round % 5 == 4 {
        world.deliver(1);
        world.transaction(1, 3, 700);
    }
    world.consume(1, 5);
    world.ticket(Durability::Fsync);
}

#[test]
fn every_image_between_two_syncs_is_explained() {
    let mut world = World::new(tiny());
    let mut images = 0;
    for round in 0..8 {
        some_work(&mut world, round);
        images += crash_at_every_sync(&mut world, 3);
    }
    assert!(images > 300, "{images}");
}

#[test]
fn every_image_of_a_checkpoint_is_explained() {
    let mut world = World::new(tiny());
    for round in 0..12 {
        some_work(&mut world, round);
        world.sync();
    }
    world.begin_checkpoint();
    for round in 12..15 {
        crash_at_every_sync(&mut world, 2);
        world.checkpoint_slice(3);
        some_work(&mut world, round);
    }
    while world.store.checkpoint_under_way() {
        world.checkpoint_slice(50);
        crash_at_every_sync(&mut world, 2);
    }
    assert_eq!(world.store.stats().checkpoints, 1);
    some_work(&mut world, 15);
    crash_at_every_sync(&mut world, 2);
}

#[test]
fn crash_after_crash_after_crash() {
    let mut world = World::new(small());
    for seed in 0..60 {
        some_work(&mut world, seed as u32);
        for _ in 0..seed % 7 {
            world.step();
        }
        let _ = world.run_unfinished();
        world = world.crash(SURVIVALS[seed as usize % 5], seed);
        if seed % 9 == 8 {
            world.checkpoint();
        }
    }
    world.load_everything();
}

/// A tail that was dropped must not come back when what is written over it is as long.
#[test]
fn what_a_crash_dropped_stays_dropped() {
    for seed in 0..200 {
        let mut world = World::new(small());
        world.publish(&[1], 100);
        world.sync();
        for round in 0..4 {
            // Batches of the same lengths each time; several are written without a sync.
            for _ in 0..4 {
                world.publish(&[1], 600);
                world.ticket(Durability::Os);
                while world.store.pending_bytes() > 0 && world.step() {}
            }
            world = world.crash(Survival::Random, seed * 10 + round);
        }
        world.load_everything();
    }
}

/// Appends these as one batch and has it written, not synced.
fn write_batch(world: &mut World<LogStore>, sizes: &[u32]) {
    for size in sizes {
        world.publish(&[1], *size);
    }
    let ticket = world.ticket(Durability::Os);
    while !world.is_reached(ticket) {
        assert!(world.step());
    }
}

/// One batch that is exactly as long as the mark of the opening and two batches of before: what
/// follows those lies right behind it, whole, with a commit that fits.
#[test]
fn a_batch_that_a_crash_dropped_never_follows_a_new_one() {
    let mut hits = 0;
    for seed in 0..300 {
        let mut world = World::new(small());
        world.publish(&[1], 100);
        world.sync();
        for _ in 0..4 {
            write_batch(&mut world, &[700]);
        }
        let mut world = world.crash(Survival::Random, seed);
        if world.state.messages.len() > 1 {
            continue;
        }
        hits += 1;
        write_batch(&mut world, &[700, 700]);
        let world = world.crash(Survival::All, seed);
        assert_eq!(world.state.messages.len(), 3);
    }
    assert!(hits > 20, "{hits} crashes dropped the first batch");
}

/// Whole records of two attempts lie in the same sectors; a torn write mixes them.
#[test]
fn a_batch_that_mixes_two_attempts_is_not_valid() {
    // A record is 60 bytes longer than its body. The first batch ends at byte 704; the second
    // record of the next one begins with a sector and fills two.
    const FIRST: u32 = 1_536 - 704 - 60;
    const OTHERS: u32 = 1_024 - 60;
    const MARK: u32 = 32;
    let mut dropped = 0;
    for seed in 0..12 {
        let mut world = World::new(small());
        world.publish(&[1], 100);
        world.sync();
        write_batch(&mut world, &[FIRST, OTHERS, OTHERS]);
        let mut world = world.crash(Survival::Prefix, seed);
        if world.state.messages.len() > 1 {
            continue;
        }
        dropped += 1;
        write_batch(&mut world, &[FIRST - MARK, OTHERS, OTHERS]);
        for seed in 0..400 {
            world.crash(Survival::Random, seed);
        }
    }
    assert!(dropped > 3, "{dropped} crashes dropped the first attempt");
}

#[test]
fn what_a_killed_process_left_is_durable_once_it_was_recovered() {
    for published in 1..40 {
        let mut world = World::new(tiny());
        world.put_topology("a", "b");
        for _ in 0..published {
            write_batch(&mut world, &[200]);
        }
        let recovered = world.kill();
        assert_eq!(recovered.state, world.state);
        // The machine stops before anything else is written.
        recovered.crash(Survival::Nothing, 0);
        recovered.crash(Survival::Random, published);
    }
}

#[test]
fn a_killed_processs_checkpoint_is_durable_before_it_frees_segments() {
    let mut world = World::new(tiny());
    world.publish(&[2], 100);
    for _ in 0..40 {
        world.publish(&[1], 200);
        world.consume(1, 1);
    }
    world.settle();
    world.checkpoint_without_sync_of_its_name();
    let mut recovered = world.kill();
    for _ in 0..30 {
        recovered.publish(&[1], 200);
        recovered.consume(1, 1);
        recovered.settle();
        recovered.crash(Survival::Nothing, 0);
    }
}

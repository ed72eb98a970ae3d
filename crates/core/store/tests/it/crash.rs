//! Crashes at every sync of scripted workloads, and what a recovery makes of the images.

use quelea_model::QueueId;
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{Durability, LogStore, Options, Store};

use crate::harness::{StoreHarness, small, tiny};

const SURVIVALS: [Survival; 5] =
    [Survival::All, Survival::Nothing, Survival::Prefix, Survival::Suffix, Survival::Random];

/// Runs jobs one by one; after each, crashes at every sync in it and checks every image.
fn crash_at_every_sync(harness: &mut StoreHarness<LogStore>, seeds: u64) -> usize {
    let mut images = 0;
    harness.disk.set_recording(true);
    while let Some(done) = harness.run_unfinished() {
        let mut points = harness.disk.take_recorded();
        points.push(harness.disk.clone());
        images += check_points(harness, &points, seeds);
        harness.complete(done);
    }
    harness.disk.set_recording(false);
    images
}

fn check_points(harness: &StoreHarness<LogStore>, points: &[FakeDisk], seeds: u64) -> usize {
    let mut images = 0;
    for point in points {
        for survival in SURVIVALS {
            let needs_seeds = !matches!(survival, Survival::All | Survival::Nothing);
            for seed in 0..if needs_seeds { seeds } else { 1 } {
                let after = harness.open_image(point.crash(survival, seed), survival);
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

fn some_work(harness: &mut StoreHarness<LogStore>, round: u32) {
    harness.put_topology(&format!("queue/{}", round % 3), &format!("round {round}"));
    for size in [0, 40, 300, 1_100] {
        harness.publish(&[1], size);
        harness.publish(&[1, 2, 3], size / 2);
    }
    harness.ticket(Durability::Fsync);
    harness.send(2, 60, u64::from(round), u64::from(round % 3));
    let first = harness.deliver(1);
    if let Some(seq) = harness.deliver(2) {
        harness.hide(2, seq, 50, 1);
        harness.ticket(Durability::Fsync);
        harness.hide(2, seq, 60, 2);
    }
    harness.consume(2, 2);
    harness.ticket(Durability::Os);
    if let Some(seq) = first {
        harness.requeue(1, seq);
    }
    if round % 4 == 3 {
        harness.purge(3);
        harness.delete_topology("queue/1");
    }
    if round % 5 == 4 {
        harness.deliver(1);
        harness.transaction(1, 3, 700);
    }
    harness.consume(1, 5);
    harness.ticket(Durability::Fsync);
}

#[test]
fn every_image_between_two_syncs_is_explained() {
    let mut harness = StoreHarness::new(tiny());
    let mut images = 0;
    for round in 0..8 {
        some_work(&mut harness, round);
        images += crash_at_every_sync(&mut harness, 3);
    }
    assert!(images > 300, "{images}");
}

#[test]
fn every_image_of_a_checkpoint_is_explained() {
    let mut harness = StoreHarness::new(tiny());
    for round in 0..12 {
        some_work(&mut harness, round);
        harness.sync();
    }
    harness.begin_checkpoint();
    for round in 12..15 {
        crash_at_every_sync(&mut harness, 2);
        harness.checkpoint_slice(3);
        some_work(&mut harness, round);
    }
    while harness.store.checkpoint_under_way() {
        harness.checkpoint_slice(50);
        crash_at_every_sync(&mut harness, 2);
    }
    assert_eq!(harness.store.stats().checkpoints, 1);
    some_work(&mut harness, 15);
    crash_at_every_sync(&mut harness, 2);
}

#[test]
fn crash_after_crash_after_crash() {
    let mut harness = StoreHarness::new(small());
    for seed in 0..60 {
        some_work(&mut harness, seed as u32);
        for _ in 0..seed % 7 {
            harness.step();
        }
        let _ = harness.run_unfinished();
        harness = harness.crash(SURVIVALS[seed as usize % 5], seed);
        if seed % 9 == 8 {
            harness.checkpoint();
        }
    }
    harness.load_everything();
}

/// A tail that was dropped must not come back when what is written over it is as long.
#[test]
fn what_a_crash_dropped_stays_dropped() {
    for seed in 0..200 {
        let mut harness = StoreHarness::new(small());
        harness.publish(&[1], 100);
        harness.sync();
        for round in 0..4 {
            // Batches of the same lengths each time; several are written without a sync.
            for _ in 0..4 {
                harness.publish(&[1], 600);
                harness.ticket(Durability::Os);
                while harness.store.pending_bytes() > 0 && harness.step() {}
            }
            harness = harness.crash(Survival::Random, seed * 10 + round);
        }
        harness.load_everything();
    }
}

/// Appends these as one batch and has it written, not synced.
fn write_batch(harness: &mut StoreHarness<LogStore>, sizes: &[u32]) {
    for size in sizes {
        harness.publish(&[1], *size);
    }
    let ticket = harness.ticket(Durability::Os);
    while !harness.is_reached(ticket) {
        assert!(harness.step());
    }
}

/// One batch that is exactly as long as the mark of the opening and two batches of before: what
/// follows those lies right behind it, whole, with a commit that fits.
#[test]
fn a_batch_that_a_crash_dropped_never_follows_a_new_one() {
    let mut hits = 0;
    for seed in 0..300 {
        let mut harness = StoreHarness::new(small());
        harness.publish(&[1], 100);
        harness.sync();
        for _ in 0..4 {
            write_batch(&mut harness, &[700]);
        }
        let mut harness = harness.crash(Survival::Random, seed);
        if harness.state.messages.len() > 1 {
            continue;
        }
        hits += 1;
        write_batch(&mut harness, &[700, 700]);
        let harness = harness.crash(Survival::All, seed);
        assert_eq!(harness.state.messages.len(), 3);
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
        let mut harness = StoreHarness::new(small());
        harness.publish(&[1], 100);
        harness.sync();
        write_batch(&mut harness, &[FIRST, OTHERS, OTHERS]);
        let mut harness = harness.crash(Survival::Prefix, seed);
        if harness.state.messages.len() > 1 {
            continue;
        }
        dropped += 1;
        write_batch(&mut harness, &[FIRST - MARK, OTHERS, OTHERS]);
        for seed in 0..400 {
            harness.crash(Survival::Random, seed);
        }
    }
    assert!(dropped > 3, "{dropped} crashes dropped the first attempt");
}

#[test]
fn what_a_killed_process_left_is_durable_once_it_was_recovered() {
    for published in 1..40 {
        let mut harness = StoreHarness::new(tiny());
        harness.put_topology("a", "b");
        for _ in 0..published {
            write_batch(&mut harness, &[200]);
        }
        let recovered = harness.kill();
        assert_eq!(recovered.state, harness.state);
        // The machine stops before anything else is written.
        recovered.crash(Survival::Nothing, 0);
        recovered.crash(Survival::Random, published);
    }
}

#[test]
fn a_killed_processs_checkpoint_is_durable_before_it_frees_segments() {
    let mut harness = StoreHarness::new(tiny());
    harness.publish(&[2], 100);
    for _ in 0..40 {
        harness.publish(&[1], 200);
        harness.consume(1, 1);
    }
    harness.settle();
    harness.checkpoint_without_sync_of_its_name();
    let mut recovered = harness.kill();
    for _ in 0..30 {
        recovered.publish(&[1], 200);
        recovered.consume(1, 1);
        recovered.settle();
        recovered.crash(Survival::Nothing, 0);
    }
}

#[test]
fn numbers_of_messages_that_a_crash_took_are_not_given_again() {
    // One segment: the end of one is synced.
    let mut harness = StoreHarness::new(Options::default());
    harness.publish(&[1], 40);
    harness.sync();
    for _ in 0..2 {
        let given = (0..1_000).map(|_| harness.publish(&[1], 4)).last();
        let ticket = harness.ticket(Durability::Os);
        harness.pump();
        assert!(harness.is_reached(ticket), "who got them has heard of them");
        harness = harness.crash(Survival::Nothing, 0);
        assert_eq!(harness.index(QueueId(1)).len(), 1);
        assert!(Some(harness.next_seq) > given);
    }
}

//! A disk that fails or is full.

use std::io::ErrorKind;

use quelea_store::fake_disk::{Call, FakeDisk, Survival};
use quelea_store::{Durability, LogStore, OpenError, Options, Store, StoreState};

use crate::harness::{StoreHarness, small, tiny};

#[test]
fn a_failed_sync_is_final_and_nothing_is_confirmed_after_it() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 100);
    harness.sync();
    let before = harness.state.clone();
    harness.disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
    harness.publish(&[1], 100);
    let ticket = harness.ticket(Durability::Fsync);
    harness.pump();
    assert!(matches!(harness.store.state(), StoreState::Failed { .. }));
    let syncs = harness.disk.syncs();
    for _ in 0..5 {
        harness.publish(&[1], 100);
        harness.consume(1, 1);
        let later = harness.ticket(Durability::Fsync);
        harness.now = harness.now.plus_ms(10_000);
        harness.pump();
        assert!(!harness.is_reached(ticket) && !harness.is_reached(later));
        let os = harness.ticket(Durability::Os);
        assert!(!harness.is_reached(os));
    }
    assert_eq!(harness.disk.syncs(), syncs, "a failed sync is not tried again");
    assert!(harness.store.is_idle(), "nothing to wait for at a stop");
    assert!(harness.store.pending_bytes() < 10_000, "nothing piles up");
    let after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state, before);
}

#[test]
fn a_failed_lazy_sync_is_final_too() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 100);
    harness.sync();
    harness.disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
    harness.consume(1, 1);
    harness.settle();
    assert!(matches!(harness.store.state(), StoreState::Failed { .. }));
}

#[test]
fn a_failed_write_is_final() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 100);
    harness.sync();
    harness.settle();
    harness.disk.fail(Call::Write, 0, 1, ErrorKind::Other);
    harness.publish(&[1], 100);
    let ticket = harness.ticket(Durability::Fsync);
    harness.pump();
    assert!(matches!(harness.store.state(), StoreState::Failed { .. }));
    assert!(!harness.is_reached(ticket));
}

/// Returns a disk with room for so many segments of 16 KiB and a little more.
fn disk_for(segments: u64) -> FakeDisk {
    let disk = FakeDisk::new();
    disk.set_capacity(Some(segments * 16 * 1024 + 8_000));
    disk
}

#[test]
fn a_full_disk_holds_publishers_back_and_resumes_when_messages_are_consumed() {
    let mut harness = StoreHarness::on(disk_for(6), small());
    let mut published = 0;
    while harness.is_healthy() {
        harness.publish(&[1], 1_000);
        harness.ticket(Durability::Fsync);
        harness.pump();
        published += 1;
        assert!(published < 1_000, "the disk never got full");
    }
    let StoreState::Full { reason } = harness.store.state().clone() else {
        panic!("{:?}", harness.store.state());
    };
    assert!(reason.contains("segment-"), "{reason}");
    // It was seen while a whole segment was still free: all that was promised is kept.
    harness.sync();
    assert_eq!(harness.crash(Survival::Nothing, 1).state, harness.state);
    // Consumers go on, and their acknowledgements are written.
    harness.consume(1, published / 2);
    harness.settle();
    assert!(harness.is_healthy(), "{:?}", harness.store.state());
    harness.publish(&[1], 1_000);
    harness.sync();
    assert_eq!(harness.crash(Survival::Nothing, 1).state, harness.state);
}

/// Publishes in bursts as large as a broker takes them, the disk always behind, until the disk is full.
/// Returns how many were promised.
fn fill_in_bursts(harness: &mut StoreHarness<LogStore>, bytes: &[u32]) -> usize {
    let (mut published, mut promised) = (0, 0);
    let mut tickets = Vec::new();
    while harness.is_healthy() {
        while harness.is_healthy() {
            let bytes = bytes[published % bytes.len()];
            if !harness.accepts(64 * 1024) || !harness.store.has_room(bytes as usize) {
                break;
            }
            harness.publish(&[1], bytes);
            published += 1;
            tickets.push((harness.ticket(Durability::Fsync), published));
            assert!(published < 2_000, "the disk never got full");
        }
        harness.step();
        if !harness.step() {
            harness.now = harness.now.plus_ms(1);
        }
    }
    harness.pump();
    for (ticket, published) in tickets {
        if harness.is_reached(ticket) {
            promised = published;
        }
    }
    promised
}

#[test]
fn acknowledgements_free_a_full_disk_whatever_was_published_before_them() {
    acknowledgements_free_a_full_disk(&[1_000]);
}

#[test]
fn acknowledgements_free_a_full_disk_though_messages_are_longer_than_the_room_kept() {
    // Now and then one comes when there is little more than that.
    for period in 3..24 {
        let mut bytes = vec![1_000; period];
        bytes.push(9_000);
        acknowledgements_free_a_full_disk(&bytes);
    }
}

fn acknowledgements_free_a_full_disk(bytes: &[u32]) {
    // Where the disk gets full within a burst decides what stands in front of the acknowledgements.
    for room in 0..16 {
        let disk = FakeDisk::new();
        disk.set_capacity(Some(6 * 16 * 1024 + room * 1_024));
        let mut harness = StoreHarness::on(disk, small());
        harness.put_topology("queue", "1");
        harness.settle();
        harness.checkpoint();
        let promised = fill_in_bursts(&mut harness, bytes);
        let promised_bytes: u32 = (0..promised).map(|n| bytes[n % bytes.len()]).sum();
        assert!(promised_bytes > 30_000, "{promised} messages were promised");
        harness.consume(1, promised);
        let acked = harness.ticket(Durability::Fsync);
        for _ in 0..10 {
            harness.pump();
            if harness.store.wants_checkpoint() {
                // What nothing but a checkpoint frees: the first segment holds topology.
                harness.checkpoint();
            }
            harness.now = harness.now.plus_ms(1_000);
        }
        harness.pump();
        let state = harness.store.state();
        assert!(harness.is_reached(acked), "room for {room} KiB more: {state:?}");
        assert!(harness.is_healthy(), "room for {room} KiB more: {state:?}");
        assert!(harness.accepts(64 * 1024));
        harness.publish(&[1], 1_000);
        harness.sync();
        assert_eq!(harness.crash(Survival::Nothing, 1).state, harness.state);
    }
}

#[test]
fn a_full_disk_is_tried_again_every_second() {
    let mut harness = StoreHarness::on(disk_for(3), small());
    for _ in 0..200 {
        harness.publish(&[1], 1_000);
    }
    let ticket = harness.ticket(Durability::Fsync);
    harness.pump();
    assert!(matches!(harness.store.state(), StoreState::Full { .. }));
    assert!(!harness.is_reached(ticket));
    let deadline = harness.store.deadline().expect("it tries again");
    assert_eq!(deadline.since_ms(harness.now), 1_000);
    harness.now = deadline;
    harness.pump();
    assert!(matches!(harness.store.state(), StoreState::Full { .. }));
    harness.disk.set_capacity(None);
    harness.now = harness.store.deadline().expect("it tries again");
    harness.pump();
    assert!(harness.is_reached(ticket), "{:?}", harness.store.state());
    assert!(harness.is_healthy());
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn deduplication_ids_that_count_no_more_make_a_full_disk_healthy() {
    let mut harness = StoreHarness::on(disk_for(6), small());
    let mut sent = 0;
    while harness.is_healthy() {
        harness.send(1, 10, 0, sent);
        harness.sync();
        sent += 1;
        assert!(sent < 2_000, "the disk never got full");
    }
    let end = harness.now.plus_ms(7 * 60_000);
    while !harness.is_healthy() {
        harness.now = harness.store.deadline().expect("it tries again");
        assert!(harness.now < end, "{:?}", harness.store.state());
        harness.pump();
    }
}

#[test]
fn a_spare_segment_that_does_not_fit_gives_its_space_back() {
    let disk = FakeDisk::new();
    let mut harness = StoreHarness::on(disk, small());
    harness.publish(&[1], 10);
    harness.settle();
    let used = |harness: &StoreHarness<_>| -> usize {
        let names = quelea_store::Disk::list(&harness.disk).unwrap();
        names.iter().map(|name| harness.disk.content(name).unwrap().len()).sum()
    };
    // The next spare is begun, and the disk is full half-way.
    harness.disk.fail(Call::Write, 2, 1, ErrorKind::StorageFull);
    let before = used(&harness);
    for _ in 0..12 {
        harness.publish(&[1], 1_000);
    }
    harness.ticket(Durability::Fsync);
    harness.pump();
    assert!(used(&harness) <= before);
}

#[test]
fn a_batch_that_the_disk_has_no_room_for_is_written_later() {
    // As on a file system that needs room even to overwrite.
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 10);
    harness.settle();
    harness.disk.fail(Call::Write, 0, 2, ErrorKind::StorageFull);
    harness.publish(&[1], 10);
    let ticket = harness.ticket(Durability::Fsync);
    harness.pump();
    assert!(matches!(harness.store.state(), StoreState::Full { .. }));
    harness.publish(&[1], 10);
    for _ in 0..2 {
        harness.now = harness.now.plus_ms(1_000);
        harness.pump();
    }
    assert!(harness.is_reached(ticket) && harness.is_healthy());
    harness.sync();
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn a_disk_without_room_for_a_checkpoint_keeps_the_old_one() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..30 {
        harness.publish(&[1], 1_000);
    }
    harness.settle();
    harness.checkpoint();
    assert_eq!(harness.store.stats().checkpoints, 1);
    for call in [Call::Create, Call::Rename, Call::SyncDir] {
        let failed = harness.store.stats().checkpoints_failed;
        harness.publish(&[1], 1_000);
        harness.settle();
        harness.disk.fail(call, 0, 1, ErrorKind::StorageFull);
        harness.checkpoint();
        assert_eq!(harness.store.stats().checkpoints_failed, failed + 1, "{call:?}");
        assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
        assert_eq!(harness.crash(Survival::All, 0).state, harness.state);
    }
    harness.checkpoint();
    assert_eq!(harness.store.stats().checkpoints, 2);
    let names = quelea_store::Disk::list(&harness.disk).unwrap();
    let checkpoints: Vec<_> = names.iter().filter(|name| name.starts_with("checkpoint")).collect();
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
    assert_eq!(harness.restart().history.len(), 1);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for segment_bytes in [0, 512, 5_000, 1 << 31 | 1] {
        let options = Options { segment_bytes, ..tiny() };
        let error = LogStore::open(&FakeDisk::new(), options, quelea_model::Timestamp::ZERO);
        assert!(matches!(error, Err(OpenError::Options { .. })));
    }
}

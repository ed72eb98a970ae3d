//! A disk that fails or is full.

use std::io::ErrorKind;

use quelea_store::fake_disk::{Call, FakeDisk, Survival};
use quelea_store::{Durability, OpenError, Options, Store, StoreState};

use crate::world::{World, small, tiny};

#[test]
fn a_failed_sync_is_final_and_nothing_is_confirmed_after_it() {
    let mut world = World::new(small());
    world.publish(&[1], 100);
    world.sync();
    let before = world.state.clone();
    world.disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
    world.publish(&[1], 100);
    let ticket = world.ticket(Durability::Fsync);
    world.pump();
    assert!(matches!(world.store.state(), StoreState::Failed { .. }));
    let syncs = world.disk.syncs();
    for _ in 0..5 {
        world.publish(&[1], 100);
        world.consume(1, 1);
        let later = world.ticket(Durability::Fsync);
        world.now = world.now.plus_ms(10_000);
        world.pump();
        assert!(!world.is_reached(ticket) && !world.is_reached(later));
        let os = world.ticket(Durability::Os);
        assert!(!world.is_reached(os));
    }
    assert_eq!(world.disk.syncs(), syncs, "a failed sync is not tried again");
    assert!(world.store.is_idle(), "nothing to wait for at a stop");
    assert!(world.store.pending_bytes() < 10_000, "nothing piles up");
    let after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state, before);
}

#[test]
fn a_failed_lazy_sync_is_final_too() {
    let mut world = World::new(small());
    world.publish(&[1], 100);
    world.sync();
    world.disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
    world.consume(1, 1);
    world.settle();
    assert!(matches!(world.store.state(), StoreState::Failed { .. }));
}

#[test]
fn a_failed_write_is_final() {
    let mut world = World::new(small());
    world.publish(&[1], 100);
    world.sync();
    world.settle();
    world.disk.fail(Call::Write, 0, 1, ErrorKind::Other);
    world.publish(&[1], 100);
    let ticket = world.ticket(Durability::Fsync);
    world.pump();
    assert!(matches!(world.store.state(), StoreState::Failed { .. }));
    assert!(!world.is_reached(ticket));
}

/// Room for so many segments of 16 KiB and a little more.
fn disk_for(segments: u64) -> FakeDisk {
    let disk = FakeDisk::new();
    disk.set_capacity(Some(segments * 16 * 1024 + 8_000));
    disk
}

#[test]
fn a_full_disk_holds_publishers_back_and_resumes_when_messages_are_consumed() {
    let mut world = World::on(disk_for(6), small());
    let mut published = 0;
    while world.is_healthy() {
        world.publish(&[1], 1_000);
        world.ticket(Durability::Fsync);
        world.pump();
        published += 1;
        assert!(published < 1_000, "the disk never got full");
    }
    let StoreState::Full { reason } = world.store.state().clone() else {
        panic!("{:?}", world.store.state());
    };
    assert!(reason.contains("segment-"), "{reason}");
    // It was seen while a whole segment was still free: all that was promised is kept.
    world.sync();
    assert_eq!(world.crash(Survival::Nothing, 1).state, world.state);
    // Consumers go on, and their acknowledgements are written.
    world.consume(1, published / 2);
    world.settle();
    assert!(world.is_healthy(), "{:?}", world.store.state());
    world.publish(&[1], 1_000);
    world.sync();
    assert_eq!(world.crash(Survival::Nothing, 1).state, world.state);
}

#[test]
fn a_full_disk_is_tried_again_every_second() {
    let mut world = World::on(disk_for(3), small());
    for _ in 0..200 {
        world.publish(&[1], 1_000);
    }
    let ticket = world.ticket(Durability::Fsync);
    world.pump();
    assert!(matches!(world.store.state(), StoreState::Full { .. }));
    assert!(!world.is_reached(ticket));
    let deadline = world.store.deadline().expect("it tries again");
    assert_eq!(deadline.since_ms(world.now), 1_000);
    world.now = deadline;
    world.pump();
    assert!(matches!(world.store.state(), StoreState::Full { .. }));
    world.disk.set_capacity(None);
    world.now = world.store.deadline().expect("it tries again");
    world.pump();
    assert!(world.is_reached(ticket), "{:?}", world.store.state());
    assert!(world.is_healthy());
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn a_spare_segment_that_does_not_fit_gives_its_space_back() {
    let disk = FakeDisk::new();
    let mut world = World::on(disk, small());
    world.publish(&[1], 10);
    world.settle();
    let used = |world: &World<_>| -> usize {
        let names = quelea_store::Disk::list(&world.disk).unwrap();
        names.iter().map(|name| world.disk.content(name).unwrap().len()).sum()
    };
    // The next spare is begun, and the disk is full half-way.
    world.disk.fail(Call::Write, 2, 1, ErrorKind::StorageFull);
    let before = used(&world);
    for _ in 0..12 {
        world.publish(&[1], 1_000);
    }
    world.ticket(Durability::Fsync);
    world.pump();
    assert!(used(&world) <= before);
}

#[test]
fn a_batch_that_the_disk_has_no_room_for_is_written_later() {
    // As on a file system that needs room even to overwrite.
    let mut world = World::new(small());
    world.publish(&[1], 10);
    world.settle();
    world.disk.fail(Call::Write, 0, 2, ErrorKind::StorageFull);
    world.publish(&[1], 10);
    let ticket = world.ticket(Durability::Fsync);
    world.pump();
    assert!(matches!(world.store.state(), StoreState::Full { .. }));
    world.publish(&[1], 10);
    for _ in 0..2 {
        world.now = world.now.plus_ms(1_000);
        world.pump();
    }
    assert!(world.is_reached(ticket) && world.is_healthy());
    world.sync();
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn a_disk_without_room_for_a_checkpoint_keeps_the_old_one() {
    let mut world = World::new(small());
    for _ in 0..30 {
        world.publish(&[1], 1_000);
    }
    world.settle();
    world.checkpoint();
    assert_eq!(world.store.stats().checkpoints, 1);
    for call in [Call::Create, Call::Rename, Call::SyncDir] {
        let failed = world.store.stats().checkpoints_failed;
        world.publish(&[1], 1_000);
        world.settle();
        world.disk.fail(call, 0, 1, ErrorKind::StorageFull);
        world.checkpoint();
        assert_eq!(world.store.stats().checkpoints_failed, failed + 1, "{call:?}");
        assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
        assert_eq!(world.crash(Survival::All, 0).state, world.state);
    }
    world.checkpoint();
    assert_eq!(world.store.stats().checkpoints, 2);
    let names = quelea_store::Disk::list(&world.disk).unwrap();
    let checkpoints: Vec<_> = names.iter().filter(|name| name.starts_with("checkpoint")).collect();
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
    assert_eq!(world.restart().history.len(), 1);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for segment_bytes in [0, 512, 5_000, 1 << 31 | 1] {
        let options = Options { segment_bytes, ..tiny() };
        let error =
            quelea_store::LogStore::open(&FakeDisk::new(), options, quelea_model::Timestamp::ZERO);
        assert!(matches!(error, Err(OpenError::Options { .. })));
    }
}

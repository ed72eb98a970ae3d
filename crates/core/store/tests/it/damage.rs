//! Damage that no crash explains is reported with its place, never skipped.

use quelea_model::QueueId;
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{Disk, LoadWhat, LogStore, OpenError, Store};

use crate::world::{World, item, small, tiny};

/// A log of several segments, synced.
fn some_log() -> World<LogStore> {
    let mut world = World::new(tiny());
    world.put_topology("queue", "1");
    for _ in 0..30 {
        world.publish(&[1], 400);
    }
    world.settle();
    world
}

fn flip(disk: &FakeDisk, name: &str, offset: usize) {
    let mut content = disk.content(name).expect("the file is there");
    content[offset] ^= 0x10;
    disk.set_content(name, content);
}

fn open(world: &World<LogStore>) -> OpenError {
    match world.try_crash(Survival::All, 0) {
        Err(error) => error,
        Ok(_) => panic!("it opened"),
    }
}

#[test]
fn a_flipped_bit_in_an_older_segment_is_found_at_its_record() {
    // Header, first record, somewhere later, the end.
    for offset in [20, 515, 600, 2_000, 3_500] {
        let world = some_log();
        flip(&world.disk, "segment-00000001", offset);
        let error = open(&world);
        let OpenError::Damaged { file, offset: found, .. } = &error else { panic!("{error}") };
        assert_eq!(file, "segment-00000001");
        let close = (*found as usize) <= offset && offset - (*found as usize) < 600;
        assert!(close, "damage at {offset} was reported at {found}");
        assert!(error.to_string().contains("segment-00000001 is damaged at byte"), "{error}");
    }
}

#[test]
fn damage_in_the_last_segment_ends_the_log_without_a_later_checkpoint() {
    let mut world = World::new(small());
    for _ in 0..5 {
        world.publish(&[1], 400);
        world.sync();
    }
    flip(&world.disk, "segment-00000001", 1_500);
    let after = world.try_crash(Survival::All, 0).expect("a torn end is no damage");
    assert!(after.state.messages.len() < 5);
    // The next one knows how far the log went when it was made.
    let mut world = World::new(small());
    world.publish(&[1], 400);
    world.begin_checkpoint();
    for _ in 0..5 {
        world.publish(&[1], 400);
        world.sync();
    }
    world.settle_pass();
    assert_eq!(world.store.stats().checkpoints, 1);
    flip(&world.disk, "segment-00000001", 1_500);
    assert!(matches!(open(&world), OpenError::Damaged { .. }));
}

#[test]
fn a_missing_segment_is_named() {
    let world = some_log();
    world.disk.remove("segment-00000002").expect("it is there");
    let error = open(&world);
    assert!(matches!(error, OpenError::Missing { segment: 2, .. }), "{error}");
    // The same when only a checkpoint needs it.
    let mut world = some_log();
    world.checkpoint();
    world.disk.remove("segment-00000002").expect("it is there");
    let error = open(&world);
    assert!(matches!(error, OpenError::Missing { segment: 2, .. }), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_reported_wherever_the_damage_is() {
    let mut world = some_log();
    world.checkpoint();
    let names = world.disk.list().expect("a list");
    let name = names.iter().find(|name| name.starts_with("checkpoint")).expect("a checkpoint");
    let content = world.disk.content(name).expect("its content");
    for offset in (0..content.len()).step_by(7) {
        let mut damaged = content.clone();
        damaged[offset] ^= 1;
        world.disk.set_content(name, damaged);
        let error = open(&world);
        let named = match &error {
            OpenError::Damaged { file, .. } | OpenError::Version { file, .. } => file == name,
            _ => false,
        };
        assert!(named, "byte {offset}: {error}");
    }
    for len in [0, 10, 64, content.len() - 1] {
        world.disk.set_content(name, content[..len].to_vec());
        assert!(matches!(open(&world), OpenError::Damaged { .. }));
    }
}

#[test]
fn a_newer_format_is_refused_by_its_version() {
    let world = some_log();
    let mut content = world.disk.content("segment-00000001").expect("the file is there");
    content[8] = 9;
    world.disk.set_content("segment-00000001", content);
    let error = open(&world);
    assert!(matches!(error, OpenError::Version { version: 9, known: 1, .. }), "{error}");
}

#[test]
fn a_file_of_another_log_is_refused() {
    let world = some_log();
    let mut options = tiny();
    options.nonce += 77;
    let mut other = World::new(options);
    for _ in 0..30 {
        other.publish(&[1], 400);
    }
    other.settle();
    let foreign = other.disk.content("segment-00000003").expect("the file is there");
    world.disk.set_content("segment-00000003", foreign);
    assert!(matches!(open(&world), OpenError::Damaged { offset: 16, .. }));
    // And one segment twice.
    let world = some_log();
    let first = world.disk.content("segment-00000001").expect("the file is there");
    world.disk.set_content("segment-00000099", first);
    assert!(matches!(open(&world), OpenError::Damaged { offset: 12, .. }));
}

#[test]
fn strangers_files_are_left_alone() {
    let world = some_log();
    world.disk.set_content("lost+found", Vec::new());
    world.disk.set_content("segment-1", b"not ours".to_vec());
    let after = world.crash(Survival::All, 0);
    assert_eq!(after.disk.content("segment-1"), Some(b"not ours".to_vec()));
}

#[test]
fn a_body_that_cannot_be_read_is_reported_with_its_place() {
    let mut world = World::new(small());
    for _ in 0..10 {
        world.publish(&[1], 400);
    }
    world.settle();
    flip(&world.disk, "segment-00000001", 1_500);
    let items = world.ready[&QueueId(1)].entries().map(|(entry, _)| item(entry)).collect();
    let loaded = world.load(QueueId(1), LoadWhat::Items(items));
    assert_eq!(loaded.messages.len(), 9);
    let [error] = &loaded.errors[..] else { panic!("{:?}", loaded.errors) };
    assert!(error.seq.is_some() && error.location.offset <= 1_500);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot read a message at byte {} of segment-00000001: the checksum is wrong",
            error.location.offset
        )
    );
}

//! Damage that no crash explains is reported with its place, never skipped.

use std::io::ErrorKind;

use quelea_model::QueueId;
use quelea_store::fake_disk::{Call, FakeDisk, Survival};
use quelea_store::{Disk, LoadFault, LoadWhat, LogStore, Missed, OpenError, Store};

use crate::harness::{StoreHarness, item, small, tiny};

/// A log of several segments, synced.
fn some_log() -> StoreHarness<LogStore> {
    let mut harness = StoreHarness::new(tiny());
    harness.put_topology("queue", "1");
    for _ in 0..30 {
        harness.publish(&[1], 400);
    }
    harness.settle();
    harness
}

fn flip(disk: &FakeDisk, name: &str, offset: usize) {
    let mut content = disk.content(name).expect("the file is there");
    content[offset] ^= 0x10;
    disk.set_content(name, content);
}

fn open(harness: &StoreHarness<LogStore>) -> OpenError {
    match harness.try_crash(Survival::All, 0) {
        Err(error) => error,
        Ok(_) => panic!("it opened"),
    }
}

#[test]
fn a_flipped_bit_in_an_older_segment_is_found_at_its_record() {
    // Header, first record, somewhere later, the end.
    for offset in [20, 515, 600, 2_000, 3_500] {
        let harness = some_log();
        flip(&harness.disk, "segment-00000001", offset);
        let error = open(&harness);
        let OpenError::Damaged { file, offset: found, .. } = &error else { panic!("{error}") };
        assert_eq!(file, "segment-00000001");
        let close = (*found as usize) <= offset && offset - (*found as usize) < 600;
        assert!(close, "damage at {offset} was reported at {found}");
        assert!(error.to_string().contains("segment-00000001 is damaged at byte"), "{error}");
    }
}

#[test]
fn damage_in_the_last_segment_ends_the_log_without_a_later_checkpoint() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..5 {
        harness.publish(&[1], 400);
        harness.sync();
    }
    flip(&harness.disk, "segment-00000001", 1_500);
    let after = harness.try_crash(Survival::All, 0).expect("a torn end is no damage");
    assert!(after.state.messages.len() < 5);
    // The next one knows how far the log went when it was made.
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 400);
    harness.begin_checkpoint();
    for _ in 0..5 {
        harness.publish(&[1], 400);
        harness.sync();
    }
    harness.settle_pass();
    assert_eq!(harness.store.stats().checkpoints, 1);
    flip(&harness.disk, "segment-00000001", 1_500);
    assert!(matches!(open(&harness), OpenError::Damaged { .. }));
}

#[test]
fn a_missing_segment_is_named() {
    let harness = some_log();
    harness.disk.remove("segment-00000002").expect("it is there");
    let error = open(&harness);
    assert!(matches!(error, OpenError::Missing { segment: 2, .. }), "{error}");
    // The same when only a checkpoint needs it.
    let mut harness = some_log();
    harness.checkpoint();
    harness.disk.remove("segment-00000002").expect("it is there");
    let error = open(&harness);
    assert!(matches!(error, OpenError::Missing { segment: 2, .. }), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_reported_wherever_the_damage_is() {
    let mut harness = some_log();
    harness.checkpoint();
    let names = harness.disk.list().expect("a list");
    let name = names.iter().find(|name| name.starts_with("checkpoint")).expect("a checkpoint");
    let content = harness.disk.content(name).expect("its content");
    for offset in (0..content.len()).step_by(7) {
        let mut damaged = content.clone();
        damaged[offset] ^= 1;
        harness.disk.set_content(name, damaged);
        let error = open(&harness);
        let named = match &error {
            OpenError::Damaged { file, .. } | OpenError::Version { file, .. } => file == name,
            _ => false,
        };
        assert!(named, "byte {offset}: {error}");
    }
    for len in [0, 10, 64, content.len() - 1] {
        harness.disk.set_content(name, content[..len].to_vec());
        assert!(matches!(open(&harness), OpenError::Damaged { .. }));
    }
}

#[test]
fn a_newer_format_is_refused_by_its_version() {
    let harness = some_log();
    let mut content = harness.disk.content("segment-00000001").expect("the file is there");
    content[8] = 9;
    harness.disk.set_content("segment-00000001", content);
    let error = open(&harness);
    assert!(matches!(error, OpenError::Version { version: 9, known: 1, .. }), "{error}");
}

#[test]
fn a_file_of_another_log_is_refused() {
    let harness = some_log();
    let mut options = tiny();
    options.nonce += 77;
    let mut other = StoreHarness::new(options);
    for _ in 0..30 {
        other.publish(&[1], 400);
    }
    other.settle();
    let foreign = other.disk.content("segment-00000003").expect("the file is there");
    harness.disk.set_content("segment-00000003", foreign);
    assert!(matches!(open(&harness), OpenError::Damaged { offset: 16, .. }));
    // And one segment twice.
    let harness = some_log();
    let first = harness.disk.content("segment-00000001").expect("the file is there");
    harness.disk.set_content("segment-00000099", first);
    assert!(matches!(open(&harness), OpenError::Damaged { offset: 12, .. }));
}

#[test]
fn strangers_files_are_left_alone() {
    let harness = some_log();
    harness.disk.set_content("lost+found", Vec::new());
    harness.disk.set_content("segment-1", b"not ours".to_vec());
    let after = harness.crash(Survival::All, 0);
    assert_eq!(after.disk.content("segment-1"), Some(b"not ours".to_vec()));
}

#[test]
fn a_body_that_cannot_be_read_is_reported_with_its_place() {
    let mut harness = StoreHarness::new(small());
    for _ in 0..10 {
        harness.publish(&[1], 400);
    }
    harness.settle();
    flip(&harness.disk, "segment-00000001", 1_500);
    let items = harness.ready[&QueueId(1)].entries().map(|(entry, _)| item(entry)).collect();
    let loaded = harness.load(QueueId(1), LoadWhat::Items(items));
    assert_eq!(loaded.messages.len(), 9);
    let [error] = &loaded.errors[..] else { panic!("{:?}", loaded.errors) };
    let Missed::Message(seq) = error.missed else { panic!("{error}") };
    assert!(error.location.offset <= 1_500);
    assert_eq!(error.fault, LoadFault::Damage);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot read message {} at byte {} of segment-00000001: the checksum is wrong",
            seq.0, error.location.offset
        )
    );
}

/// Ten messages in the first segment, all on the disk.
fn ten_messages() -> (StoreHarness<LogStore>, LoadWhat) {
    let mut harness = StoreHarness::new(small());
    for _ in 0..10 {
        harness.publish(&[1], 400);
    }
    harness.settle();
    let items = harness.ready[&QueueId(1)].entries().map(|(entry, _)| item(entry)).collect();
    (harness, LoadWhat::Items(items))
}

#[test]
fn what_the_disk_refuses_for_a_while_is_read_again() {
    let (mut harness, items) = ten_messages();
    harness.disk.fail(Call::Read, 0, 3, ErrorKind::Other);
    let before = harness.now;
    let loaded = harness.load(QueueId(1), items);
    assert_eq!((loaded.messages.len(), loaded.errors.len()), (10, 0));
    assert_eq!(harness.store.stats().reads_retried, 1);
    assert_eq!(harness.now.since_ms(before), 100);
    // It holds up nobody who wants to stop, and the segments are free again.
    assert!(harness.store.is_idle());
    harness.consume(1, 10);
    harness.settle();
    assert_eq!(harness.store.stats().live, 0);
}

#[test]
fn what_the_disk_refuses_for_good_is_no_damage() {
    let (mut harness, items) = ten_messages();
    harness.disk.fail(Call::Read, 0, u64::MAX, ErrorKind::Other);
    let before = harness.now;
    let loaded = harness.load(QueueId(1), items);
    assert_eq!((loaded.messages.len(), loaded.errors.len()), (0, 10));
    assert!(loaded.errors.iter().all(|error| error.fault == LoadFault::Io));
    assert_eq!(harness.now.since_ms(before), 100 + 400 + 1_600 + 6_400 + 25_600);
}

//! Damage that no crash explains is reported with its place, never skipped.

use std::io::ErrorKind;

use quelea_model::{QueueId, Seq};
use quelea_store::fake_disk::{Call, FakeDisk, Survival};
use quelea_store::{
    CheckpointCursor, Damage, Disk, DroppedTail, Durability, LoadFault, LoadWhat, LogStore,
    LostMessages, Missed, OpenError, Options, PagedRange, Store,
};

use crate::harness::{StoreHarness, item, small, tiny};

/// Returns a log of several segments, synced.
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

/// Returns a log with one batch after the other, each synced.
fn synced_batches(count: usize) -> StoreHarness<LogStore> {
    let mut harness = StoreHarness::new(small());
    for _ in 0..count {
        harness.publish(&[1], 400);
        harness.sync();
    }
    harness
}

fn dropped(harness: &StoreHarness<LogStore>) -> Option<DroppedTail> {
    let disk = harness.disk.crash(Survival::All, 0);
    LogStore::open(&disk, small(), harness.now).expect("it opens").1.report.dropped_tail
}

#[test]
fn damage_before_what_a_later_commit_knows_synced_is_no_torn_end() {
    // Wherever it lies in the first four batches; only of the fifth nobody says so.
    let end = 512 + 4 * 500;
    for offset in (512..end).step_by(9) {
        let harness = synced_batches(5);
        flip(&harness.disk, "segment-00000001", offset);
        let error = open(&harness);
        assert!(matches!(error, OpenError::Damaged { .. }), "byte {offset}: {error}");
    }
    let harness = synced_batches(5);
    flip(&harness.disk, "segment-00000001", end + 200);
    let after = harness.try_crash(Survival::All, 0).expect("a torn end is no damage");
    assert_eq!(after.state.messages.len(), 4);
    assert_eq!(dropped(&harness).map(|tail| tail.records), Some(1));
}

#[test]
fn a_log_that_was_idle_for_a_second_has_no_torn_end() {
    let mut harness = synced_batches(5);
    harness.settle();
    let due = harness.store.deadline().expect("it says what is on the disk");
    assert_eq!(due.since_ms(harness.now), 1_000);
    harness.now = due;
    harness.settle();
    assert_eq!(harness.store.deadline(), None, "it says so once");
    let end = 512 + 5 * 500;
    for offset in (512..end).step_by(9) {
        let content = harness.disk.content("segment-00000001").expect("the file is there");
        flip(&harness.disk, "segment-00000001", offset);
        let error = open(&harness);
        assert!(matches!(error, OpenError::Damaged { .. }), "byte {offset}: {error}");
        harness.disk.set_content("segment-00000001", content);
    }
    // A lost range is damage as flipped bits are, also if it takes along all that says so at the end.
    let whole = harness.disk.content("segment-00000001").expect("the file is there");
    for lost in [1_024..1_536, 2_560..4_096, 512..4_096] {
        let mut content = whole.clone();
        content[lost.clone()].fill(0);
        harness.disk.set_content("segment-00000001", content);
        let error = open(&harness);
        assert!(matches!(error, OpenError::Damaged { .. }), "{lost:?}: {error}");
    }
}

#[test]
fn a_start_notes_what_was_on_the_disk_before_it() {
    // Never idle for a second before the stop, and after it without a message.
    let after = synced_batches(5).try_crash(Survival::All, 0).expect("that is no damage");
    let mut content = after.disk.content("segment-00000001").expect("the file is there");
    content[2_600..].fill(0);
    after.disk.set_content("segment-00000001", content);
    assert!(matches!(open(&after), OpenError::Damaged { .. }));
}

#[test]
fn a_segment_that_is_lost_but_for_its_note_is_accepted_once() {
    let mut harness = some_log();
    harness.become_quiet();
    let names = harness.disk.list().expect("a list");
    let number = |name: &String| {
        let content = harness.disk.content(name).expect("the file is there");
        u32::from_le_bytes(content[12..16].try_into().expect("four bytes"))
    };
    let last = names.iter().max_by_key(|name| number(name)).expect("a segment");
    assert!(number(last) > 1, "several segments");
    let mut content = harness.disk.content(last).expect("the file is there");
    content[512..].fill(0);
    harness.disk.set_content(last, content);
    assert!(matches!(open(&harness), OpenError::Damaged { .. }));
    let mut accepting = harness;
    accepting.options.accept_damage = true;
    let mut after = accepting.try_crash(Survival::All, 0).expect("it is accepted");
    let kept = after.state.messages.len();
    after.options.accept_damage = false;
    after.publish(&[1], 400);
    after.sync();
    // It dies before it has a checkpoint.
    let again = after.try_crash(Survival::Nothing, 0).expect("what was accepted is not missed");
    assert_eq!(again.state.messages.len(), kept + 1);
}

#[test]
fn a_segment_without_its_header_is_damaged_and_one_in_the_making_is_removed() {
    for len in [0, 63, 64, 512, 2_000] {
        let harness = synced_batches(5);
        harness.disk.set_content("segment-00000009", vec![0; len]);
        let OpenError::Damaged { file, .. } = open(&harness) else { panic!("{len}") };
        assert_eq!(file, "segment-00000009", "{len}");

        // An earlier program gave files their names before: its logs have no header that says otherwise.
        let harness = synced_batches(5);
        for name in harness.disk.list().expect("a list") {
            let mut content = harness.disk.content(&name).expect("the file is there");
            content[56..60].fill(0);
            let checksum = crc32c::crc32c(&content[..60]);
            content[60..64].copy_from_slice(&checksum.to_le_bytes());
            harness.disk.set_content(&name, content);
        }
        harness.disk.set_content("segment-00000009", vec![0; len]);
        let after = harness.try_crash(Survival::All, 0).expect("that is no damage");
        assert_eq!(after.state.messages.len(), 5, "{len}");
        assert_eq!(after.disk.content("segment-00000009"), None, "{len}");

        let harness = synced_batches(5);
        let mut content = harness.disk.content("segment-00000001").expect("the file is there");
        content.truncate(len);
        content.iter_mut().take(512).for_each(|byte| *byte = 0);
        harness.disk.set_content("segment-00000001", content.clone());
        let OpenError::Damaged { file, offset, problem } = open(&harness) else { panic!("{len}") };
        assert_eq!((file.as_str(), offset), ("segment-00000001", 0), "{len}");
        assert_eq!(problem, "its header is gone", "{len}");

        let harness = synced_batches(5);
        harness.disk.set_content("segment-00000009.tmp", content);
        let after = harness.try_crash(Survival::All, 0).expect("that is no damage");
        assert_eq!(after.state.messages.len(), 5, "{len}");
        assert_eq!(after.disk.content("segment-00000009.tmp"), None, "{len}");
    }
}

#[test]
fn what_is_cut_off_behind_the_last_sync_is_counted() {
    let mut harness = synced_batches(2);
    for _ in 0..4 {
        harness.publish(&[1], 400);
        harness.publish(&[1], 400);
        let ticket = harness.ticket(Durability::Os);
        while !harness.is_reached(ticket) {
            assert!(harness.step());
        }
    }
    assert_eq!(dropped(&harness), None);
    flip(&harness.disk, "segment-00000001", 512 + 2 * 500 + 100);
    let tail = dropped(&harness).expect("eight messages are cut off");
    // The one that is damaged cannot be counted by itself, but the commit of its batch can.
    assert_eq!((tail.records, tail.file.as_str()), (8, "segment-00000001"));
    let after =
        harness.try_crash(Survival::All, 0).expect("nobody promised that it is on the disk");
    assert_eq!(after.state.messages.len(), 2);
}

#[test]
fn a_checkpoint_knows_how_far_the_log_was_on_the_disk() {
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
fn a_segment_that_is_shorter_than_the_checkpoint_says_is_found_at_the_start() {
    let mut harness = some_log();
    harness.publish(&[2], 400);
    harness.settle();
    harness.checkpoint();
    harness.settle();
    harness.disk.cut("segment-00000002", 2_000);
    let error = open(&harness);
    let OpenError::Lost { damage, topology } = &error else { panic!("{error}") };
    let [Damage { file, offset, lost, .. }] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!((file.as_str(), *offset), ("segment-00000002", 2_000));
    let &[LostMessages { queue: Some(QueueId(1)), messages: Some(count), first, last }] = &lost[..]
    else {
        panic!("{lost:?}")
    };
    assert_eq!(count, last.0 - first.0 + 1);
    assert!(count > 1 && topology.len() == 1);
    let text = format!(
        "segment-00000002 is damaged at byte 2000: the file ends here instead of at byte 3777; \
         lost: {count} of queue 1, numbers from {} to {}",
        first.0, last.0
    );
    assert_eq!(error.to_string(), text);
    // Whoever accepts it gets the rest, and the same account of what is lost.
    harness.options.accept_damage = true;
    let mut after = harness.try_crash(Survival::All, 0).expect("it was accepted");
    assert_eq!(after.state.messages.len() as u64, 31 - count);
    after.settle();
    assert!(after.store.wants_checkpoint(), "so that it is behind us");
    after.checkpoint();
    after.options.accept_damage = false;
    let after = after.restart();
    assert_eq!(after.state.messages.len() as u64, 31 - count);
}

#[test]
fn accepted_damage_in_the_log_is_left_behind_by_the_next_checkpoint() {
    let mut harness = synced_batches(5);
    flip(&harness.disk, "segment-00000001", 1_300);
    harness.options.accept_damage = true;
    let after = harness.try_crash(Survival::All, 0).expect("it was accepted");
    assert_eq!(after.state.messages.len(), 4);
    go_on(after, 5);
}

#[test]
fn a_message_that_is_skipped_is_named_with_its_queue_and_number() {
    let mut harness = synced_batches(5);
    // In the third one's body.
    flip(&harness.disk, "segment-00000001", 512 + 2 * 500 + 300);
    harness.options.accept_damage = true;
    let (_, recovered) =
        LogStore::open(&harness.disk, harness.options, harness.now).expect("it was accepted");
    let [damage] = &recovered.damage[..] else { panic!("{:?}", recovered.damage) };
    let third = |queue, messages| LostMessages { queue, messages, first: Seq(3), last: Seq(3) };
    // What it says of itself may be damaged too: the gap in the numbers is named in any case.
    assert_eq!(damage.lost, [third(Some(QueueId(1)), Some(1)), third(None, None)], "{damage}");
    assert!(damage.to_string().contains("; lost: 1 of queue 1, number 3;"), "{damage}");
}

#[test]
fn a_missing_segment_takes_only_its_own_messages_along() {
    let mut harness = some_log();
    harness.disk.remove("segment-00000003").expect("it is there");
    let error = open(&harness);
    assert!(matches!(error, OpenError::Missing { segment: 3, .. }), "{error}");
    assert!(error.can_be_accepted());
    harness.options.accept_damage = true;
    let (_, recovered) =
        LogStore::open(&harness.disk, harness.options, harness.now).expect("it was accepted");
    let there: Vec<u64> = recovered.queues[&QueueId(1)].entries().map(|(e, _)| e.seq.0).collect();
    let [damage] = &recovered.damage[..] else { panic!("{:?}", recovered.damage) };
    let [LostMessages { queue: None, messages: None, first, last }] = damage.lost[..] else {
        panic!("{damage}")
    };
    // The header of the segment behind says only which numbers had been taken when it was begun.
    let lost: Vec<u64> = (1..=30).filter(|seq| !there.contains(seq)).collect();
    assert!(lost.len() >= 7 && there.len() >= 20, "{lost:?}");
    assert_eq!((first.0, last.0), (lost[0], lost[lost.len() - 1] + 1), "{damage}");
}

#[test]
fn a_log_whose_last_segments_are_gone_is_accepted_once() {
    let mut harness = synced_batches(5);
    harness.checkpoint();
    harness.disk.remove("segment-00000001").expect("it is there");
    let error = open(&harness);
    assert!(error.can_be_accepted(), "{error}");
    harness.options.accept_damage = true;
    let after = harness.try_crash(Survival::All, 0).expect("it was accepted");
    assert!(after.state.messages.is_empty());
    go_on(after, 1);
}

/// The next checkpoint leaves accepted damage behind: from then on so many messages are there without leave.
fn go_on(mut after: StoreHarness<LogStore>, messages: usize) {
    after.publish(&[1], 400);
    after.checkpoint();
    after.options.accept_damage = false;
    let after = after.restart();
    assert_eq!(after.state.messages.len(), messages);
    let again = after.crash(Survival::All, 0);
    assert_eq!(again.state.messages.len(), messages);
}

#[test]
fn a_last_segment_that_lost_its_end_is_accepted_once() {
    let mut harness = synced_batches(5);
    harness.checkpoint();
    let written = harness.disk.content("segment-00000001").expect("it is there");
    let end = written.iter().rposition(|byte| *byte != 0).expect("records") + 1;
    harness.disk.cut("segment-00000001", end + 100);
    assert!(matches!(open(&harness), OpenError::Damaged { .. }));
    harness.options.accept_damage = true;
    let after = harness.try_crash(Survival::All, 0).expect("it was accepted");
    assert_eq!(after.state.messages.len(), 5);
    go_on(after, 6);
}

#[test]
fn a_damaged_checkpoint_says_whether_the_log_can_rebuild_it() {
    let mut harness = some_log();
    harness.checkpoint();
    harness.disk.cut("checkpoint-0000000001", 70);
    let error = open(&harness).to_string();
    assert!(
        error.contains("still has all its segments and can rebuild it: move the file"),
        "{error}"
    );
    harness.disk.remove("checkpoint-0000000001").expect("it is there");
    let after = harness.try_crash(Survival::All, 0).expect("the log rebuilds it");
    assert_eq!(after.state, harness.state);
    // Not once the first segment is gone.
    harness.consume(1, 20);
    harness.checkpoint();
    harness.settle();
    harness.disk.cut("checkpoint-0000000002", 70);
    let error = open(&harness).to_string();
    assert!(error.contains("the log alone cannot rebuild it"), "{error}");
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
    assert!(matches!(error, OpenError::Version { version: 9, known: 2, .. }), "{error}");
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

/// Returns a log with ten messages in the first segment, all on the disk, and what to read of it.
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

/// Publishes messages, so many of which lie in a range of the index that is set aside, and checkpoints as the broker does:
/// that range comes last, and before besides if it was set aside between two slices. Returns it too.
fn with_a_range_set_aside(
    neighbours_are_sparse: bool,
    between_slices: bool,
) -> (StoreHarness<LogStore>, PagedRange) {
    let options = Options { segment_bytes: 1 << 20, ..Options::default() };
    let mut harness = StoreHarness::new(options);
    let seqs: Vec<Seq> = (0..4_000).map(|_| harness.publish_fast(&[1], 40)).collect();
    harness.sync();
    if neighbours_are_sparse {
        // What is left of the chunks before and behind it fits into one.
        let (before, behind) = (seqs[1_024..1_536].iter(), seqs[2_048..2_560].iter());
        let settled = before.chain(behind).filter(|seq| seq.0 % 4 > 0);
        settled.for_each(|seq| harness.remove(1, *seq));
    }
    let index = harness.index(QueueId(1));
    index.page_out(usize::MAX);
    let ranges: Vec<_> = index.paged_ranges().copied().collect();
    let range = *ranges.iter().find(|range| range.first == seqs[1_536]).expect("it is paged out");
    index.remove_paged_range(range.first_location());
    harness.store.begin_checkpoint();
    harness.pump();
    let mut cursor = CheckpointCursor::default();
    let mut index = harness.ready.remove(&QueueId(1)).expect("the queue is there");
    assert!(index.checkpoint(QueueId(1), &mut cursor, usize::MAX, &mut harness.store));
    (0..=usize::from(between_slices)).for_each(|_| {
        harness.store.checkpoint_paged_range(QueueId(1), &range);
    });
    harness.store.finish_checkpoint();
    harness.settle();
    (harness, range)
}

#[test]
fn a_range_that_was_set_aside_is_not_read_at_the_next_start() {
    for (neighbours_are_sparse, between_slices) in [(false, false), (true, false), (false, true)] {
        let (harness, range) = with_a_range_set_aside(neighbours_are_sparse, between_slices);
        let damaged = range.first_offset as usize + 30;
        flip(&harness.disk, "segment-00000001", damaged);
        let mut after = harness.crash_unhistoric();
        let expected = harness.state.messages.len();
        assert_eq!(after.index(QueueId(1)).len(), expected);
        let loaded = after.load(QueueId(1), LoadWhat::PagedRange(range));
        assert_eq!(loaded.errors.len(), 1, "it still cannot be read");
        // It is where it belongs when it can.
        flip(&after.disk, "segment-00000001", damaged);
        after.page_in();
        let index = after.index(QueueId(1));
        let seqs: Vec<Seq> = index.entries().map(|(entry, _)| entry.seq).collect();
        assert_eq!(seqs.len(), expected);
        assert!(seqs.is_sorted_by(|a, b| a < b));
    }
}

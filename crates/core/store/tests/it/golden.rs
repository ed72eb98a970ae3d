//! Files of each released format still open, and today's code still writes the same bytes.

use std::path::PathBuf;

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::fake_disk::FakeDisk;
use quelea_store::{Disk, LogStore, NEVER, Store, Visibility};

use crate::harness::{StoreHarness, tiny};

type Writer = fn() -> StoreHarness<LogStore>;

/// The directories of the golden files of today's code, and what wrote them. Those of `v2` have headers that do not say that files
/// get their names last.
const GOLDEN: [(&str, Writer); 2] =
    [("v2-named", write_a_log), ("v2-named-visibility", write_a_log_of_visibility)];

/// Writes every kind of record up to 10, two segments and a checkpoint, the same bytes each time.
fn write_a_log() -> StoreHarness<LogStore> {
    let mut harness = StoreHarness::new(tiny());
    harness.put_topology("queue/orders", "durable");
    harness.put_topology("queue/gone", "durable");
    let at = Timestamp::from_millis(1_700_000_000_000);
    for size in [0, 1, 200, 900] {
        harness.publish(&[1], size);
        harness.publish_with(&[1, 2], size, true, &[at, NEVER], 4);
    }
    harness.publish_with(&[2], 50, false, &[], 0);
    harness.deliver(1);
    let seq = harness.deliver(1).expect("a message is there");
    harness.requeue(1, seq);
    harness.settle();
    harness.checkpoint();
    harness.publish_with(&[2], 30, true, &[at], 1);
    harness.consume(2, 2);
    harness.transaction(1, 2, 100);
    harness.publish(&[3, 4], 300);
    harness.purge(3);
    harness.delete_queue(4);
    harness.delete_topology("queue/gone");
    harness.settle();
    harness
}

/// Writes records 11 and 12, before a checkpoint, repeated by it, and after it.
fn write_a_log_of_visibility() -> StoreHarness<LogStore> {
    let mut harness = StoreHarness::new(tiny());
    harness.publish(&[1], 10);
    harness.send(1, 20, 1_700_000_000_000, 7);
    let seq = harness.deliver(1).expect("a message is there");
    harness.hide(1, seq, 1_700_000_030_000, 1);
    harness.settle();
    harness.checkpoint();
    harness.send(1, 30, 1_700_000_060_000, 8);
    harness.hide(1, seq, 1_700_000_090_000, 2);
    let seq = harness.deliver(1).expect("a message is there");
    harness.hide(1, seq, 5, 1);
    harness.ack(1, seq);
    harness.send(2, 0, 1, 9);
    harness.delete_queue(2);
    harness.settle();
    harness
}

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read_golden(name: &str) -> FakeDisk {
    let disk = FakeDisk::new();
    for file in std::fs::read_dir(directory(name)).expect("the golden files are in the repository")
    {
        let file = file.expect("a file");
        let name = file.file_name().into_string().expect("a name");
        disk.set_content(&name, std::fs::read(file.path()).expect("its content"));
    }
    disk
}

/// Numbers of messages that an opening leaves out.
const LEFT_OUT: u64 = 1 << 24;

#[test]
fn a_log_of_each_format_still_opens() {
    for name in ["v1", "v2", "v2-named"] {
        check_the_log_in(read_golden(name));
    }
}

fn check_the_log_in(disk: FakeDisk) {
    let now = Timestamp::from_millis(2_000_000);
    let (store, recovered) = LogStore::open(&disk, tiny(), now).expect("it opens");
    let lens: Vec<(u32, usize)> = {
        let queues = &recovered.queues;
        let mut lens: Vec<_> = queues.iter().map(|(queue, index)| (queue.0, index.len())).collect();
        lens.sort_unstable();
        lens
    };
    assert_eq!(lens, [(1, 9), (2, 3)]);
    assert_eq!(store.stats().live, 12);
    assert_eq!(recovered.next_seq, Seq(14 + LEFT_OUT));
    assert_eq!(recovered.next_queue, QueueId(5));
    assert_eq!(recovered.report.checkpoint, Some(1));
    assert_eq!(recovered.topology.len(), 1);
    assert_eq!(recovered.topology[&b"queue/orders"[..]], b"durable");
    let requeued = recovered.queues[&QueueId(1)].get(Seq(2)).expect("it is there");
    assert_eq!(requeued.entry.delivery_count, 1);
    assert_eq!(requeued.entry.priority, 4);
    assert_eq!(requeued.expires_at, Some(Timestamp::from_millis(1_700_000_000_000)));
}

#[test]
fn a_log_with_visibility_still_opens() {
    for name in ["v1-visibility", "v2-visibility", "v2-named-visibility"] {
        check_the_visibility_in(read_golden(name));
    }
}

fn check_the_visibility_in(disk: FakeDisk) {
    let now = Timestamp::from_millis(2_000_000);
    let (store, recovered) = LogStore::open(&disk, tiny(), now).expect("it opens");
    assert_eq!(store.stats().live, 2);
    assert_eq!(recovered.next_seq, Seq(5 + LEFT_OUT));
    let noted: Vec<Visibility> = recovered.visibility[&QueueId(1)].values().copied().collect();
    let visibility = |seq, visible_at, first_received_at, receive_count| Visibility {
        seq: Seq(seq),
        visible_at: Timestamp::from_millis(visible_at),
        first_received_at: Timestamp::from_millis(first_received_at),
        receive_count,
    };
    let wanted = [visibility(1, 1_700_000_090_000, 1, 2), visibility(3, 1_700_000_060_000, 0, 0)];
    assert_eq!(noted, wanted);
    let mut sent: Vec<_> =
        recovered.deduplications[&QueueId(1)].iter().map(|sent| (sent.key, sent.seq)).collect();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent, [([7, 1], Seq(2)), ([8, 1], Seq(3))]);
    assert!(!recovered.deduplications.contains_key(&QueueId(2)));
}

#[test]
fn a_log_of_the_older_format_is_gone_on_with_in_a_new_segment() {
    let mut harness = StoreHarness::on(read_golden("v1"), tiny());
    let messages = harness.state.messages.len();
    for _ in 0..3 {
        harness.publish(&[1], 100);
        harness.sync();
        // The third file was a spare one.
        let version = |name: &str| harness.disk.content(name).map(|content| content[8]);
        assert_eq!(version("segment-00000002"), Some(1));
        assert_eq!(version("segment-00000003"), Some(2));
        harness = harness.restart();
    }
    assert_eq!(harness.state.messages.len(), messages + 3);
    harness.load_everything();
}

#[test]
fn the_same_operations_still_give_the_same_bytes() {
    for (directory, write) in GOLDEN {
        let (golden, harness) = (read_golden(directory), write());
        let mut names = golden.list().unwrap();
        names.sort();
        let mut written = harness.disk.list().unwrap();
        written.sort();
        assert_eq!(names, written);
        for name in names {
            let (golden, written) =
                (golden.content(&name).unwrap(), harness.disk.content(&name).unwrap());
            let differs = golden.iter().zip(&written).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{name} differs; a change of the format needs a new version");
            assert_eq!(golden.len(), written.len(), "{name}");
        }
    }
}

#[test]
#[ignore = "writes golden files that are not there yet: a new format version, or new records"]
fn write_golden_files() {
    for (name, write) in GOLDEN {
        let directory = directory(name);
        if std::fs::create_dir(&directory).is_err() {
            continue;
        }
        let harness = write();
        for name in harness.disk.list().unwrap() {
            let content = harness.disk.content(&name).unwrap_or_default();
            std::fs::write(directory.join(&name), content).expect("the directory is there");
        }
    }
}

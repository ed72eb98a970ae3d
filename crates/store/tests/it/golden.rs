//! Files of each released format still open, and today's code still writes the same bytes.

use std::path::PathBuf;

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::fake_disk::FakeDisk;
use quelea_store::{Disk, LogStore, NEVER, Store};

use crate::world::{World, tiny};

/// Every kind of record, two segments and a checkpoint, the same bytes each time.
fn write_a_log() -> World<LogStore> {
    let mut world = World::new(tiny());
    world.put_topology("queue/orders", "durable");
    world.put_topology("queue/gone", "durable");
    let at = Timestamp::from_millis(1_700_000_000_000);
    for size in [0, 1, 200, 900] {
        world.publish(&[1], size);
        world.publish_with(&[1, 2], size, true, &[at, NEVER], 4);
    }
    world.publish_with(&[2], 50, false, &[], 0);
    world.deliver(1);
    let seq = world.deliver(1).expect("a message is there");
    world.requeue(1, seq);
    world.settle();
    world.checkpoint();
    world.publish_with(&[2], 30, true, &[at], 1);
    world.consume(2, 2);
    world.transaction(1, 2, 100);
    world.publish(&[3, 4], 300);
    world.purge(3);
    world.delete_queue(4);
    world.delete_topology("queue/gone");
    world.settle();
    world
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn read_golden() -> FakeDisk {
    let disk = FakeDisk::new();
    for file in std::fs::read_dir(directory()).expect("the golden files are in the repository") {
        let file = file.expect("a file");
        let name = file.file_name().into_string().expect("a name");
        disk.set_content(&name, std::fs::read(file.path()).expect("its content"));
    }
    disk
}

#[test]
fn a_log_of_format_1_still_opens() {
    let now = Timestamp::from_millis(2_000_000);
    let (store, recovered) = LogStore::open(&read_golden(), tiny(), now).unwrap();
    let lens: Vec<(u32, usize)> = {
        let queues = &recovered.queues;
        let mut lens: Vec<_> = queues.iter().map(|(queue, index)| (queue.0, index.len())).collect();
        lens.sort_unstable();
        lens
    };
    assert_eq!(lens, [(1, 9), (2, 3)]);
    assert_eq!(store.stats().live, 12);
    assert_eq!(recovered.next_seq, Seq(14));
    assert_eq!(recovered.next_queue, QueueId(5));
    assert_eq!(recovered.report.checkpoint, Some(1));
    assert_eq!(recovered.topology.len(), 1);
    assert_eq!(recovered.topology[&b"queue/orders"[..]], b"durable");
    let requeued = recovered.queues[&QueueId(1)].get(Seq(2)).unwrap();
    assert_eq!(requeued.entry.delivery_count, 1);
    assert_eq!(requeued.entry.priority, 4);
    assert_eq!(requeued.expires_at, Some(Timestamp::from_millis(1_700_000_000_000)));
}

#[test]
fn the_same_operations_still_give_the_same_bytes() {
    let (golden, world) = (read_golden(), write_a_log());
    let mut names = golden.list().unwrap();
    names.sort();
    let mut written = world.disk.list().unwrap();
    written.sort();
    assert_eq!(names, written);
    for name in names {
        let (golden, written) =
            (golden.content(&name).unwrap(), world.disk.content(&name).unwrap());
        let differs = golden.iter().zip(&written).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name} differs; a change of the format needs a new version");
        assert_eq!(golden.len(), written.len(), "{name}");
    }
}

#[test]
#[ignore = "writes the golden files; only for a new format version"]
fn write_golden_files() {
    let world = write_a_log();
    for name in world.disk.list().unwrap() {
        let content = world.disk.content(&name).unwrap_or_default();
        std::fs::write(directory().join(&name), content).expect("the directory is there");
    }
}

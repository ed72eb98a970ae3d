//! Damage at rest: flipped bits, lost ranges, files that are shorter. Whatever it hits, every confirmed message is
//! delivered or named as lost, or the start is refused.

use std::collections::BTreeSet;

use fastrand::Rng;
use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{
    Damage, Disk, Durability, LoadItem, LoadRequest, LoadWhat, LogStore, Missed, OpenError,
    Options, Recovered, Store,
};

use crate::harness::{StoreHarness, small, tiny};

/// Returns a log with all kinds of records in several segments, all of it on the disk and said to
/// be.
fn confirmed(options: Options, with_checkpoint: bool) -> StoreHarness<LogStore> {
    let mut harness = StoreHarness::new(options);
    for round in 0..14_u64 {
        harness.put_topology(&format!("queue/{}", round % 3), &format!("round {round}"));
        for size in [0, 40, 300, 1_100] {
            harness.publish(&[1], size);
            harness.publish(&[1, 2, 3], size / 2);
        }
        harness.send(2, 60, round, round % 3);
        if let Some(seq) = harness.deliver(2) {
            harness.hide(2, seq, 50, 1);
        }
        harness.consume(1, 4);
        if round % 5 == 4 {
            harness.deliver(1);
            harness.transaction(1, 3, 700);
        }
        harness.ticket(Durability::Fsync);
        harness.pump();
        if with_checkpoint && round == 7 {
            harness.checkpoint();
        }
    }
    harness.become_quiet();
    harness
}

/// Damages one place of one file; says what it did.
fn damage(disk: &FakeDisk, random: &mut Rng) -> String {
    let names = disk.list().expect("a list");
    let segments: Vec<_> = names.iter().filter(|name| name.starts_with("segment")).collect();
    let name = segments[random.usize(..segments.len())];
    let number = |name: &String| {
        let content = disk.content(name).expect("the file is there");
        u32::from_le_bytes(content[12..16].try_into().expect("four bytes"))
    };
    // That the log once had a further segment is nowhere to be seen if its file is gone as a whole.
    let is_last = segments.iter().all(|other| number(other) <= number(name));
    let content = disk.content(name).expect("the file is there");
    let used = content.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let end_max = if is_last { used } else { content.len() };
    let at = random.usize(..end_max);
    match random.u8(..8) {
        0 => {
            let end = (at + 512 * random.usize(1..4)).min(end_max);
            disk.lose_range(name, at..end);
            format!("lost {at}..{end} of {name}")
        }
        1 => {
            disk.cut(name, at);
            format!("cut {name} at {at}")
        }
        2 if !is_last => {
            disk.remove(name).expect("it is there");
            format!("removed {name}")
        }
        _ => {
            disk.flip(name, at, &[0x10, 0, 0x81, 0xff]);
            format!("flipped bits at {at} of {name}")
        }
    }
}

/// What a start makes of the disk, and what can be loaded then.
struct Found {
    delivered: BTreeSet<(QueueId, Seq)>,
    named: Vec<Damage>,
    unreadable: BTreeSet<(QueueId, Seq)>,
}

fn open(disk: &FakeDisk, options: Options) -> Result<Found, OpenError> {
    let (mut store, recovered) = LogStore::open(disk, options, Timestamp::from_millis(9_000_000))?;
    let Recovered { queues, damage, .. } = recovered;
    let mut found =
        Found { delivered: BTreeSet::new(), named: damage, unreadable: BTreeSet::new() };
    for (queue, index) in queues {
        for range in index.paged_ranges() {
            load(&mut store, disk, queue, LoadWhat::PagedRange(*range), &mut found);
        }
        let items = index.entries().map(|(entry, _)| LoadItem {
            seq: entry.seq,
            location: entry.location,
            body_bytes: entry.body_bytes,
        });
        load(&mut store, disk, queue, LoadWhat::Items(items.collect()), &mut found);
    }
    Ok(found)
}

fn load(store: &mut LogStore, disk: &FakeDisk, queue: QueueId, what: LoadWhat, found: &mut Found) {
    store.load(LoadRequest { token: 1, queue, what });
    let now = Timestamp::from_millis(9_000_000);
    while let Some(job) = store.poll_job(now) {
        store.complete(job.run(disk));
    }
    let loaded = store.poll_loaded().expect("an answer");
    found.delivered.extend(loaded.messages.iter().map(|(seq, _)| (queue, *seq)));
    for error in loaded.errors {
        match error.missed {
            Missed::Message(seq) => found.unreadable.insert((queue, seq)),
            Missed::PagedRange(range) => {
                found
                    .unreadable
                    .extend((range.first.0..=range.last.0).map(|seq| (queue, Seq(seq))));
                true
            }
        };
    }
}

impl Found {
    fn is_named(&self, queue: QueueId, seq: Seq) -> bool {
        let names = |lost: &quelea_store::LostMessages| {
            lost.queue.is_none_or(|named| named == queue) && (lost.first..=lost.last).contains(&seq)
        };
        self.unreadable.contains(&(queue, seq))
            || self.named.iter().flat_map(|damage| &damage.lost).any(names)
    }
}

/// Plays damage by many seeds: returns how many starts were refused, and how many messages were named.
fn play(options: Options, with_checkpoint: bool, seeds: u64) -> (u64, usize) {
    let harness = confirmed(options, with_checkpoint);
    let (mut refused, mut named) = (0, 0);
    for seed in 0..seeds {
        let disk = harness.disk.crash(Survival::Nothing, 0);
        let what = damage(&disk, &mut Rng::with_seed(seed));
        let before = disk.crash(Survival::All, 0);
        let accept = Options { accept_damage: true, ..options };
        let found = match open(&disk, options) {
            Ok(found) => found,
            Err(_) => {
                refused += 1;
                // What is refused is not changed.
                for name in before.list().expect("a list") {
                    assert_eq!(before.content(&name), disk.content(&name), "seed {seed}: {what}");
                }
                let Ok(found) = open(&disk, accept) else { continue };
                assert!(!found.named.is_empty(), "seed {seed}: {what}");
                found
            }
        };
        for (queue, seq) in harness.state.messages.keys() {
            let is_there = found.delivered.contains(&(*queue, *seq));
            assert!(
                is_there || found.is_named(*queue, *seq),
                "seed {seed}: {what}: message {} of queue {} is gone without a word: {:?}",
                seq.0,
                queue.0,
                found.named,
            );
            named += usize::from(!is_there);
        }
    }
    (refused, named)
}

#[test]
fn every_confirmed_message_is_delivered_or_named_as_lost() {
    for (options, with_checkpoint) in
        [(tiny(), false), (tiny(), true), (small(), false), (small(), true)]
    {
        let (refused, named) = play(options, with_checkpoint, 200);
        assert!(refused > 10, "{refused} starts were refused");
        assert!(named > 10, "{named} messages were named");
    }
}

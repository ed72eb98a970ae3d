//! Paging of the index and of bodies, and reading back.

use std::sync::Arc;

use proptest::prelude::*;
use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::fake_disk::Survival;
use quelea_store::{
    Durability, Entry, EntryFlags, Front, LoadWhat, LogStore, MemStore, NewMessage, NextRead,
    Options, QueueIndex, Store,
};

use crate::state::{assert_is, message};
use crate::world::{World, missing};

const QUEUE: QueueId = QueueId(1);

fn large() -> Options {
    Options { segment_bytes: 1 << 20, ..Options::default() }
}

/// Reads and consumes everything, checking order and content; gives the numbers.
fn consume_all(world: &mut World<LogStore>, queue: u32) -> Vec<Seq> {
    let id = QueueId(queue);
    let mut seqs = Vec::new();
    while !world.index(id).is_empty() {
        if let Some(what) = missing(world.index(id), 16 * 1024) {
            let loaded = world.load(id, what);
            assert_eq!(loaded.errors, []);
            world.index(id).fill(loaded);
        }
        let Front::Entry { entry, body: Some(body), .. } = world.index(id).front() else {
            panic!("the head is not there: {:?}", world.index(id).front());
        };
        assert_is(body, entry.seq, entry.body_bytes);
        seqs.push(entry.seq);
        world.consume_fast(queue);
    }
    assert_eq!(world.index(id).index_bytes() / 20_000, 0, "an empty index takes little");
    seqs
}

#[test]
fn a_paged_out_index_gives_all_back_in_order() {
    let mut world = World::new(large());
    let expected: Vec<Seq> = (0..8_000).map(|at| world.publish_fast(&[1], at % 90)).collect();
    world.sync();
    let before = world.index(QUEUE).index_bytes();
    let freed = world.index(QUEUE).page_out(before);
    let index = world.index(QUEUE);
    assert_eq!(index.len(), 8_000);
    assert!(index.paged_ranges().count() > 8, "{} ranges", index.paged_ranges().count());
    assert_eq!(index.index_bytes(), before - freed);
    assert!(freed > before / 2);
    // Nothing is lost for the checkpoint or a restart.
    world.checkpoint();
    let mut after = world.crash_unhistoric();
    assert_eq!(after.index(QUEUE).len(), 8_000);
    assert_eq!(consume_all(&mut after, 1), expected);
    assert_eq!(consume_all(&mut world, 1), expected);
    world.settle();
    assert_eq!(world.store.stats().live, 0);
}

#[test]
fn paged_out_ranges_of_two_queues_in_one_span_do_not_mix() {
    let mut world = World::new(large());
    let mut expected = [Vec::new(), Vec::new()];
    for at in 0..6_000_u32 {
        let queues: &[u32] = match at % 3 {
            0 => &[1],
            1 => &[2],
            _ => &[1, 2],
        };
        let seq = world.publish_fast(queues, 20);
        for queue in queues {
            expected[*queue as usize - 1].push(seq);
        }
    }
    world.sync();
    for queue in [1, 2] {
        assert!(world.index(QueueId(queue)).page_out(usize::MAX) > 0);
    }
    for queue in [1, 2] {
        assert_eq!(consume_all(&mut world, queue), expected[queue as usize - 1]);
    }
}

#[test]
fn priorities_in_one_span_do_not_mix() {
    // Two indexes of one queue, as a priority queue has them.
    let mut world = World::new(large());
    let mut indexes = [QueueIndex::new(), QueueIndex::new()];
    for at in 0..12_000_u32 {
        let priority = (at % 5) as u8;
        let seq = Seq(u64::from(at) + 1);
        let location = world.store.append_message(NewMessage {
            seq,
            queues: &[QUEUE],
            durable: true,
            enqueued_at: world.now,
            visible_at: None,
            expiries: &[],
            priority,
            message: &message(seq, 30),
        });
        let flags = EntryFlags::STORED.with(EntryFlags::DURABLE);
        let entry = Entry { seq, location, body_bytes: 30, delivery_count: 0, priority, flags };
        // The queue has two levels: 0, and everything above.
        indexes[usize::from(priority > 0)].push_back(entry, None, None);
    }
    world.sync();
    let lens = indexes.each_ref().map(QueueIndex::len);
    for index in &mut indexes {
        assert!(index.page_out(usize::MAX) > 0);
        let ranges: Vec<_> = index.paged_ranges().copied().collect();
        for range in ranges {
            let loaded = world.load(QUEUE, LoadWhat::PagedRange(range));
            assert_eq!(loaded.errors, []);
            index.fill(loaded);
        }
        assert_eq!(index.paged_ranges().count(), 0);
    }
    assert_eq!(indexes.each_ref().map(|index| index.entries().count()), lens);
}

#[test]
fn what_the_log_does_not_tell_exactly_stays_in_memory() {
    let index_of = |change: &dyn Fn(&mut World<LogStore>)| {
        let mut world = World::new(large());
        for _ in 0..3_000 {
            world.publish_fast(&[1], 30);
        }
        world.sync();
        change(&mut world);
        world.index(QUEUE).page_out(usize::MAX);
        world.index(QUEUE).paged_ranges().count()
    };
    let all = index_of(&|_| {});
    assert!(all >= 2);
    // Something was taken from the middle of a chunk.
    let holed = index_of(&|world| {
        let ready = world.index(QUEUE).remove(Seq(1_600)).expect("it is ready");
        world.store.append_acks(QUEUE, &[ready.entry]);
    });
    assert_eq!(holed, all - 1);
    // A message went back with a count.
    let returned = index_of(&|world| {
        let mut ready = world.index(QUEUE).remove(Seq(1_600)).expect("it is ready");
        ready.entry.delivery_count = 1;
        world.index(QUEUE).insert(ready.entry, None, None);
    });
    assert_eq!(returned, all - 1);
}

#[test]
fn interleaved_backlogs_are_paged_out_unless_others_lie_between() {
    let page_out = |others: u32, body_bytes: u32| {
        let mut world = World::new(Options { segment_bytes: 16 << 20, ..Options::default() });
        for _ in 0..1_700 {
            world.publish_fast(&[1], 3);
            for other in 0..others {
                world.publish_fast(&[2 + other], body_bytes);
            }
        }
        world.sync();
        world.index(QUEUE).page_out(usize::MAX)
    };
    assert!(page_out(30, 3) > 0);
    assert_eq!(page_out(1, 12_000), 0);
}

#[test]
fn a_paged_range_survives_acknowledgements_behind_the_checkpoint() {
    let mut world = World::new(large());
    for _ in 0..4_000 {
        world.publish_fast(&[1], 40);
    }
    world.sync();
    world.index(QUEUE).page_out(usize::MAX);
    world.checkpoint();
    // Recovery has to look into the ranges that these come from.
    let consumed = 2_500;
    for _ in 0..consumed {
        if let Some(what) = missing(world.index(QUEUE), 4_096) {
            let loaded = world.load(QUEUE, what);
            world.index(QUEUE).fill(loaded);
        }
        world.consume_fast(1);
    }
    world.sync();
    let mut after = world.crash_unhistoric();
    let left = consume_all(&mut after, 1);
    assert_eq!(left.len(), 4_000 - consumed);
    assert_eq!(left.first(), Some(&Seq(consumed as u64 + 1)));
}

#[test]
fn a_paged_out_queue_can_be_purged_and_deleted() {
    for delete in [false, true] {
        let mut world = World::new(large());
        for _ in 0..4_000 {
            world.publish_fast(&[1], 40);
        }
        let kept = world.deliver(1).expect("one is delivered");
        world.sync();
        world.index(QUEUE).page_out(usize::MAX);
        world.checkpoint();
        if delete {
            world.delete_queue(1)
        } else {
            world.purge(1)
        }
        world.settle();
        let live = u64::from(!delete);
        assert_eq!(world.store.stats().live, live);
        let after = world.crash(Survival::Nothing, 0);
        let seqs: Vec<Seq> = after.state.messages.keys().map(|(_, seq)| *seq).collect();
        assert_eq!(seqs, if delete { vec![] } else { vec![kept] });
    }
}

#[test]
fn a_paged_out_range_is_read_once_it_is_written() {
    let mut world = World::new(large());
    for _ in 0..3_000 {
        world.publish_fast(&[1], 40);
    }
    assert!(world.index(QUEUE).page_out(usize::MAX) > 0);
    assert_eq!(consume_all(&mut world, 1).len(), 3_000);
}

#[test]
fn bodies_are_evicted_from_the_end_and_read_ahead_at_the_head() {
    let mut index = QueueIndex::new();
    for at in 1..=2_000_u64 {
        let body = message(Seq(at), 100);
        let stored = at % 2 == 0;
        let flags = if stored { EntryFlags::STORED } else { EntryFlags::NONE };
        let entry = Entry { seq: Seq(at), body_bytes: 100, flags, ..Entry::default() };
        index.push_back(entry, None, Some(body));
    }
    assert_eq!(index.unstored_len(), 1_000);
    let all = index.resident_bytes();
    let freed = index.evict(all / 4);
    assert!(freed >= all / 4 && freed < all / 4 + 400);
    assert_eq!(index.resident_bytes(), all - freed);
    assert!(matches!(index.front(), Front::Entry { body: Some(_), .. }), "the head stays");
    // What is not in the log is kept, and handed out to be written.
    index.evict(usize::MAX);
    assert!(index.resident_bytes() >= index.unstored_len() * 100);
    assert!(index.resident_bytes() < all * 51 / 100);
    let spilled = index.unstored(100);
    assert_eq!(spilled.len(), 100);
    assert!(spilled.is_sorted_by_key(|unstored| unstored.seq));
    assert_eq!(spilled.last().map(|unstored| unstored.seq), Some(Seq(1_999)));
    for unstored in &spilled {
        let location = quelea_store::Location { segment: 1, offset: unstored.seq.0 as u32 };
        assert!(index.mark_stored(unstored.seq, location));
    }
    assert_eq!(index.unstored_len(), 900);
    assert!(index.evict(usize::MAX) > 0);
    let NextRead::Items(items) = index.next_read(1_000) else { panic!("bodies are missing") };
    let seqs: Vec<u64> = items.iter().map(|item| item.seq.0).collect();
    assert_eq!(seqs, [2, 4, 6], "only the head, only what was evicted");
}

#[test]
fn the_store_in_memory_reads_back_like_the_log() {
    let mut store = MemStore::new();
    let mut index = QueueIndex::new();
    for at in 1..=3_000_u64 {
        let seq = Seq(at);
        let message = message(seq, 20);
        let location = store.append_message(NewMessage {
            seq,
            queues: &[QUEUE],
            durable: false,
            enqueued_at: Timestamp::ZERO,
            visible_at: None,
            expiries: &[],
            priority: 0,
            message: &message,
        });
        let flags = EntryFlags::STORED;
        let entry = Entry { seq, location, body_bytes: 20, delivery_count: 0, priority: 0, flags };
        index.push_back(entry, None, Some(Arc::clone(&message)));
    }
    let ticket = store.ticket(Durability::Fsync);
    assert!(store.progress().reached(ticket));
    assert!(index.page_out(usize::MAX) > 0);
    let mut seen = 0;
    while !index.is_empty() {
        let what = missing(&index, 4_096).unwrap_or_else(|| LoadWhat::Items(Vec::new()));
        store.load(quelea_store::LoadRequest { token: 1, queue: QUEUE, what });
        index.fill(store.poll_loaded().expect("it answers at once"));
        let ready = index.pop_front().expect("the head is there");
        assert_is(ready.body.as_ref().expect("with its body"), ready.entry.seq, 20);
        seen += 1;
    }
    assert_eq!(seen, 3_000);
}

#[derive(Clone, Debug)]
enum Operation {
    Publish { queues: Vec<u32>, count: usize, body_bytes: u32, durable: bool },
    Consume { queue: u32, count: usize },
    RemoveFromTheMiddle { queue: u32, at: usize, step: usize },
    DeliverAndRequeue { queue: u32, count: usize, keep: usize },
    PageOut { queue: u32 },
    Checkpoint,
    Kill,
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    let queue = 1..3_u32;
    let queues = prop_oneof![Just(vec![1]), Just(vec![2]), Just(vec![1, 2])];
    prop_oneof![
        8 => (queues, 1..1_500_usize, 0..120_u32, prop::bool::weighted(0.8)).prop_map(
            |(queues, count, body_bytes, durable)| {
                Operation::Publish { queues, count, body_bytes, durable }
            }
        ),
        4 => (queue.clone(), 1..1_500_usize)
            .prop_map(|(queue, count)| Operation::Consume { queue, count }),
        2 => (queue.clone(), 0..3_000_usize, 1..400_usize)
            .prop_map(|(queue, at, step)| Operation::RemoveFromTheMiddle { queue, at, step }),
        3 => (queue.clone(), 1..200_usize, 1..10_usize)
            .prop_map(|(queue, count, keep)| Operation::DeliverAndRequeue { queue, count, keep }),
        6 => queue.prop_map(|queue| Operation::PageOut { queue }),
        2 => Just(Operation::Checkpoint),
        1 => Just(Operation::Kill),
        2 => Just(Operation::Restart),
    ]
}

fn apply(world: &mut World<LogStore>, operation: &Operation) {
    match operation {
        Operation::Publish { queues, count, body_bytes, durable } => {
            for at in 0..*count {
                world.publish_durably(queues, body_bytes + at as u32 % 3, *durable);
            }
        }
        Operation::Consume { queue, count } => {
            for _ in 0..*count {
                fill_head(world, *queue);
                world.consume_fast(*queue);
            }
        }
        Operation::RemoveFromTheMiddle { queue, at, step } => {
            let index = world.index(QueueId(*queue));
            let seqs: Vec<Seq> =
                index.entries().map(|(entry, _)| entry.seq).skip(*at).step_by(*step).collect();
            for seq in seqs.into_iter().take(10) {
                world.remove(*queue, seq);
            }
        }
        Operation::DeliverAndRequeue { queue, count, keep } => {
            let mut delivered = Vec::new();
            for _ in 0..*count {
                fill_head(world, *queue);
                delivered.extend(world.deliver(*queue));
            }
            for (at, seq) in delivered.into_iter().enumerate() {
                if at % keep == 0 {
                    world.requeue_fast(*queue, seq);
                }
            }
        }
        Operation::PageOut { queue } => {
            world.index(QueueId(*queue)).page_out(usize::MAX);
        }
        Operation::Checkpoint => world.checkpoint(),
        Operation::Kill | Operation::Restart => {}
    }
}

fn fill_head(world: &mut World<LogStore>, queue: u32) {
    let id = QueueId(queue);
    if let Front::Paged(range) = world.index(id).front() {
        let what = LoadWhat::PagedRange(*range);
        let loaded = world.load(id, what);
        assert_eq!(loaded.errors, []);
        world.index(id).fill(loaded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_paged_range_always_gives_back_what_it_stands_for(
        operations in prop::collection::vec(operation(), 1..40),
    ) {
        let mut world = World::new(large());
        for operation in &operations {
            match operation {
                Operation::Kill => {
                    world.sync();
                    world = world.successor(true);
                }
                Operation::Restart => {
                    world.sync();
                    world = world.successor(false);
                }
                operation => apply(&mut world, operation),
            }
        }
        world.load_everything();
        world.sync();
        let mut after = world.successor(false);
        for queue in [1, 2] {
            after.index(QueueId(queue)).page_out(usize::MAX);
        }
        after.load_everything();
        after.assert_state_of_indexes();
    }
}

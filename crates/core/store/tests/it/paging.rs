//! Paging of the index and of bodies, and reading back.

use std::sync::Arc;

use proptest::prelude::*;
use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::fake_disk::Survival;
use quelea_store::{
    CheckpointCursor, Durability, Entry, EntryFlags, Front, LoadWhat, LogStore, MemStore,
    NewMessage, NextRead, Options, QueueIndex, Store,
};

use crate::harness::{StoreHarness, missing};
use crate::state::{assert_is, message};

const QUEUE: QueueId = QueueId(1);

fn large() -> Options {
    Options { segment_bytes: 1 << 20, ..Options::default() }
}

/// Reads and consumes everything, checking order and content; gives the numbers.
fn consume_all(harness: &mut StoreHarness<LogStore>, queue: u32) -> Vec<Seq> {
    let id = QueueId(queue);
    let mut seqs = Vec::new();
    while !harness.index(id).is_empty() {
        if let Some(what) = missing(harness.index(id), 16 * 1024) {
            let loaded = harness.load(id, what);
            assert_eq!(loaded.errors, []);
            harness.index(id).fill(loaded);
        }
        let Front::Entry { entry, body: Some(body), .. } = harness.index(id).front() else {
            panic!("the head is not there: {:?}", harness.index(id).front());
        };
        assert_is(body, entry.seq, entry.body_bytes);
        seqs.push(entry.seq);
        harness.consume_fast(queue);
    }
    assert_eq!(harness.index(id).index_bytes() / 20_000, 0, "an empty index takes little");
    seqs
}

#[test]
fn a_paged_out_index_gives_all_back_in_order() {
    let mut harness = StoreHarness::new(large());
    let expected: Vec<Seq> = (0..8_000).map(|at| harness.publish_fast(&[1], at % 90)).collect();
    harness.sync();
    let before = harness.index(QUEUE).index_bytes();
    let freed = harness.index(QUEUE).page_out(before);
    let index = harness.index(QUEUE);
    assert_eq!(index.len(), 8_000);
    assert!(index.paged_ranges().count() > 8, "{} ranges", index.paged_ranges().count());
    assert_eq!(index.index_bytes(), before - freed);
    assert!(freed > before / 2);
    // Nothing is lost for the checkpoint or a restart.
    harness.checkpoint();
    let mut after = harness.crash_unhistoric();
    assert_eq!(after.index(QUEUE).len(), 8_000);
    assert_eq!(consume_all(&mut after, 1), expected);
    assert_eq!(consume_all(&mut harness, 1), expected);
    harness.settle();
    assert_eq!(harness.store.stats().live, 0);
}

#[test]
fn paged_out_ranges_of_two_queues_in_one_span_do_not_mix() {
    let mut harness = StoreHarness::new(large());
    let mut expected = [Vec::new(), Vec::new()];
    for at in 0..6_000_u32 {
        let queues: &[u32] = match at % 3 {
            0 => &[1],
            1 => &[2],
            _ => &[1, 2],
        };
        let seq = harness.publish_fast(queues, 20);
        for queue in queues {
            expected[*queue as usize - 1].push(seq);
        }
    }
    harness.sync();
    for queue in [1, 2] {
        assert!(harness.index(QueueId(queue)).page_out(usize::MAX) > 0);
    }
    for queue in [1, 2] {
        assert_eq!(consume_all(&mut harness, queue), expected[queue as usize - 1]);
    }
}

#[test]
fn priorities_in_one_span_do_not_mix() {
    // Two indexes of one queue, as a priority queue has them.
    let mut harness = StoreHarness::new(large());
    let mut indexes = [QueueIndex::new(), QueueIndex::new()];
    for at in 0..12_000_u32 {
        let priority = (at % 5) as u8;
        let seq = Seq(u64::from(at) + 1);
        let location = harness.store.append_message(NewMessage {
            seq,
            queues: &[QUEUE],
            durable: true,
            enqueued_at: harness.now,
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
    harness.sync();
    let lens = indexes.each_ref().map(QueueIndex::len);
    for index in &mut indexes {
        assert!(index.page_out(usize::MAX) > 0);
        let ranges: Vec<_> = index.paged_ranges().copied().collect();
        for range in ranges {
            let loaded = harness.load(QUEUE, LoadWhat::PagedRange(range));
            assert_eq!(loaded.errors, []);
            index.fill(loaded);
        }
        assert_eq!(index.paged_ranges().count(), 0);
    }
    assert_eq!(indexes.each_ref().map(|index| index.entries().count()), lens);
}

#[test]
fn what_the_log_does_not_tell_exactly_stays_in_memory() {
    let index_of = |change: &dyn Fn(&mut StoreHarness<LogStore>)| {
        let mut harness = StoreHarness::new(large());
        for _ in 0..3_000 {
            harness.publish_fast(&[1], 30);
        }
        harness.sync();
        change(&mut harness);
        harness.index(QUEUE).page_out(usize::MAX);
        harness.index(QUEUE).paged_ranges().count()
    };
    let all = index_of(&|_| {});
    assert!(all >= 2);
    // Something was taken from the middle of a chunk.
    let holed = index_of(&|harness| {
        let ready = harness.index(QUEUE).remove(Seq(1_600)).expect("it is ready");
        harness.store.append_acks(QUEUE, &[ready.entry]);
    });
    assert_eq!(holed, all - 1);
    // A message went back with a count.
    let returned = index_of(&|harness| {
        let mut ready = harness.index(QUEUE).remove(Seq(1_600)).expect("it is ready");
        ready.entry.delivery_count = 1;
        harness.index(QUEUE).insert(ready.entry, None, None);
    });
    assert_eq!(returned, all - 1);
}

#[test]
fn interleaved_backlogs_are_paged_out_unless_others_lie_between() {
    let page_out = |others: u32, body_bytes: u32| {
        let mut harness =
            StoreHarness::new(Options { segment_bytes: 16 << 20, ..Options::default() });
        for _ in 0..1_700 {
            harness.publish_fast(&[1], 3);
            for other in 0..others {
                harness.publish_fast(&[2 + other], body_bytes);
            }
        }
        harness.sync();
        harness.index(QUEUE).page_out(usize::MAX)
    };
    assert!(page_out(30, 3) > 0);
    assert_eq!(page_out(1, 12_000), 0);
}

#[test]
fn a_paged_range_survives_acknowledgements_behind_the_checkpoint() {
    let mut harness = StoreHarness::new(large());
    for _ in 0..4_000 {
        harness.publish_fast(&[1], 40);
    }
    harness.sync();
    harness.index(QUEUE).page_out(usize::MAX);
    harness.checkpoint();
    // Recovery has to look into the ranges that these come from.
    let consumed = 2_500;
    for _ in 0..consumed {
        if let Some(what) = missing(harness.index(QUEUE), 4_096) {
            let loaded = harness.load(QUEUE, what);
            harness.index(QUEUE).fill(loaded);
        }
        harness.consume_fast(1);
    }
    harness.sync();
    let mut after = harness.crash_unhistoric();
    let left = consume_all(&mut after, 1);
    assert_eq!(left.len(), 4_000 - consumed);
    assert_eq!(left.first(), Some(&Seq(consumed as u64 + 1)));
}

#[test]
fn messages_delivered_during_a_checkpoint_are_there_once_after_it() {
    let mut harness = StoreHarness::new(large());
    for _ in 0..4_000 {
        harness.publish_fast(&[1], 40);
    }
    harness.sync();
    harness.index(QUEUE).page_out(usize::MAX);
    harness.begin_checkpoint();
    harness.pump();
    harness.checkpoint_slice(usize::MAX);
    // The checkpoint has the ranges that these come from, and gets them once more as delivered.
    for _ in 0..2_000 {
        fill_head(&mut harness, 1);
        harness.deliver(1).expect("it is there");
    }
    harness.settle_pass();
    let mut after = harness.successor(false);
    assert_eq!(consume_all(&mut after, 1).len(), 4_000);
}

/// Appends so many messages of one queue, with priorities in blocks of so many. Returns the indexes of both priorities.
fn publish_by_priority(
    harness: &mut StoreHarness<LogStore>,
    messages: u64,
    block: u64,
) -> [QueueIndex; 2] {
    let mut indexes = [QueueIndex::new(), QueueIndex::new()];
    for at in 0..messages {
        let (seq, priority) = (Seq(at + 1), (at / block % 2) as u8);
        let location = harness.store.append_message(NewMessage {
            seq,
            queues: &[QUEUE],
            durable: true,
            enqueued_at: harness.now,
            visible_at: None,
            expiries: &[],
            priority,
            message: &message(seq, 30),
        });
        let flags = EntryFlags::STORED.with(EntryFlags::DURABLE);
        let entry = Entry { seq, location, body_bytes: 30, delivery_count: 0, priority, flags };
        indexes[usize::from(priority)].push_back(entry, None, None);
    }
    harness.sync();
    indexes
}

#[test]
fn acknowledgements_behind_a_checkpoint_count_in_queues_with_priorities() {
    for block in [1, 300] {
        let mut harness = StoreHarness::new(large());
        let mut indexes = publish_by_priority(&mut harness, 6_000, block);
        harness.store.begin_checkpoint();
        harness.pump();
        for index in &mut indexes {
            assert!(index.page_out(usize::MAX) > 0);
            let mut cursor = CheckpointCursor::default();
            assert!(index.checkpoint(QUEUE, &mut cursor, usize::MAX, &mut harness.store));
        }
        harness.store.finish_checkpoint();
        harness.settle();
        let mut acked = 0;
        for index in &mut indexes {
            let ranges: Vec<_> = index.paged_ranges().copied().collect();
            for range in ranges {
                let loaded = harness.load(QUEUE, LoadWhat::PagedRange(range));
                assert_eq!(loaded.errors, []);
                index.fill(loaded);
            }
            while let Some(ready) = index.pop_front() {
                harness.store.append_acks(QUEUE, &[ready.entry]);
                acked += 1;
            }
        }
        assert_eq!(acked, 6_000);
        harness.sync();
        assert_eq!(harness.crash_unhistoric().index(QUEUE).len(), 0, "blocks of {block}");
    }
}

#[test]
fn a_paged_out_queue_can_be_purged_and_deleted() {
    for delete in [false, true] {
        let mut harness = StoreHarness::new(large());
        for _ in 0..4_000 {
            harness.publish_fast(&[1], 40);
        }
        let kept = harness.deliver(1).expect("one is delivered");
        harness.sync();
        harness.index(QUEUE).page_out(usize::MAX);
        harness.checkpoint();
        if delete {
            harness.delete_queue(1)
        } else {
            harness.purge(1)
        }
        harness.settle();
        let live = u64::from(!delete);
        assert_eq!(harness.store.stats().live, live);
        let after = harness.crash(Survival::Nothing, 0);
        let seqs: Vec<Seq> = after.state.messages.keys().map(|(_, seq)| *seq).collect();
        assert_eq!(seqs, if delete { vec![] } else { vec![kept] });
    }
}

#[test]
fn a_paged_out_range_is_read_once_it_is_written() {
    let mut harness = StoreHarness::new(large());
    for _ in 0..3_000 {
        harness.publish_fast(&[1], 40);
    }
    assert!(harness.index(QUEUE).page_out(usize::MAX) > 0);
    assert_eq!(consume_all(&mut harness, 1).len(), 3_000);
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

fn apply(harness: &mut StoreHarness<LogStore>, operation: &Operation) {
    match operation {
        Operation::Publish { queues, count, body_bytes, durable } => {
            for at in 0..*count {
                harness.publish_durably(queues, body_bytes + at as u32 % 3, *durable);
            }
        }
        Operation::Consume { queue, count } => {
            for _ in 0..*count {
                fill_head(harness, *queue);
                harness.consume_fast(*queue);
            }
        }
        Operation::RemoveFromTheMiddle { queue, at, step } => {
            let index = harness.index(QueueId(*queue));
            let seqs: Vec<Seq> =
                index.entries().map(|(entry, _)| entry.seq).skip(*at).step_by(*step).collect();
            for seq in seqs.into_iter().take(10) {
                harness.remove(*queue, seq);
            }
        }
        Operation::DeliverAndRequeue { queue, count, keep } => {
            let mut delivered = Vec::new();
            for _ in 0..*count {
                fill_head(harness, *queue);
                delivered.extend(harness.deliver(*queue));
            }
            for (at, seq) in delivered.into_iter().enumerate() {
                if at % keep == 0 {
                    harness.requeue_fast(*queue, seq);
                }
            }
        }
        Operation::PageOut { queue } => {
            harness.index(QueueId(*queue)).page_out(usize::MAX);
        }
        Operation::Checkpoint => harness.checkpoint(),
        Operation::Kill | Operation::Restart => {}
    }
}

fn fill_head(harness: &mut StoreHarness<LogStore>, queue: u32) {
    let id = QueueId(queue);
    if let Front::Paged(range) = harness.index(id).front() {
        let what = LoadWhat::PagedRange(*range);
        let loaded = harness.load(id, what);
        assert_eq!(loaded.errors, []);
        harness.index(id).fill(loaded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_paged_range_always_gives_back_what_it_stands_for(
        operations in prop::collection::vec(operation(), 1..40),
    ) {
        let mut harness = StoreHarness::new(large());
        for operation in &operations {
            match operation {
                Operation::Kill => {
                    harness.sync();
                    harness = harness.successor(true);
                }
                Operation::Restart => {
                    harness.sync();
                    harness = harness.successor(false);
                }
                operation => apply(&mut harness, operation),
            }
        }
        harness.load_everything();
        harness.sync();
        let mut after = harness.successor(false);
        for queue in [1, 2] {
            after.index(QueueId(queue)).page_out(usize::MAX);
        }
        after.load_everything();
        after.assert_state_of_indexes();
    }
}

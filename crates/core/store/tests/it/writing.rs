//! Batches, tickets, fan-outs, large records.

use quelea_model::{QueueId, Timestamp};
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{Durability, LoadWhat, Options, Store, Ticket};

use crate::harness::{StoreHarness, item, small, tiny};
use crate::state::assert_is;

#[test]
fn a_confirmed_message_survives_and_reads_back() {
    let mut harness = StoreHarness::new(small());
    let seq = harness.publish(&[1], 100);
    let ticket = harness.ticket(Durability::Fsync);
    assert!(!harness.is_reached(ticket));
    harness.pump();
    assert!(harness.is_reached(ticket));
    let after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state, harness.state);
    assert!(after.state.messages.contains_key(&(QueueId(1), seq)));
}

#[test]
fn os_durability_is_reached_by_the_write_and_survives_the_process() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 100);
    harness.sync();
    let syncs = harness.disk.syncs();
    harness.publish(&[1], 100);
    let ticket = harness.ticket(Durability::Os);
    harness.pump();
    assert!(harness.is_reached(ticket));
    assert_eq!(harness.disk.syncs(), syncs, "nothing was synced for it");
    assert_eq!(harness.crash(Survival::All, 0).state, harness.state);
}

#[test]
fn what_nobody_waits_for_is_synced_a_little_later() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 10);
    harness.sync();
    harness.consume(1, 1);
    harness.pump();
    let deadline = harness.store.deadline().expect("a write is due");
    assert!(deadline.since_ms(harness.now) <= 250);
    harness.settle();
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn a_batch_gathers_while_the_last_one_is_written() {
    let mut harness = StoreHarness::new(small());
    harness.publish(&[1], 10);
    harness.sync();
    let batches = harness.store.stats().batches;
    harness.publish(&[1], 10);
    harness.ticket(Durability::Fsync);
    let done = harness.run_unfinished().expect("a write");
    for _ in 0..50 {
        harness.publish(&[1], 10);
        harness.ticket(Durability::Fsync);
    }
    assert!(harness.store.poll_job(harness.now).is_none(), "one write at a time");
    harness.complete(done);
    harness.pump();
    assert_eq!(harness.store.stats().batches, batches + 2);
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn a_ticket_for_nothing_is_reached_at_once() {
    let mut harness = StoreHarness::new(small());
    assert_eq!(harness.ticket(Durability::None), Ticket::NONE);
    let ticket = harness.ticket(Durability::Fsync);
    assert!(harness.is_reached(ticket));
    harness.publish(&[1], 10);
    assert!(harness.is_reached(ticket));
}

#[test]
fn a_fan_out_stores_the_body_once() {
    let mut harness = StoreHarness::new(Options { segment_bytes: 1 << 20, ..small() });
    let queues: Vec<u32> = (1..=20).collect();
    for _ in 0..100 {
        harness.publish(&queues, 1_024);
    }
    harness.sync();
    let bytes = harness.store.stats().written_bytes;
    assert!(bytes * 10 <= 100 * 1_024 * 13, "{bytes} bytes for 100 bodies of 1 KiB");
    let mut after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state.messages.len(), 2_000);
    after.load_everything();
}

#[test]
fn expiries_are_kept_for_each_queue() {
    let mut harness = StoreHarness::new(small());
    let [soon, late] = [Timestamp::from_millis(5), Timestamp::from_millis(9)];
    harness.publish_with(&[1, 2, 3], 10, true, &[soon, quelea_store::NEVER, late], 3);
    harness.publish_with(&[1, 2], 10, true, &[late], 0);
    harness.sync();
    let after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state, harness.state);
    let expiries: Vec<_> = after.state.messages.values().map(|held| held.expires_at).collect();
    assert_eq!(expiries, [Some(soon), Some(late), None, Some(late), Some(late)]);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let mut harness = StoreHarness::new(tiny());
    harness.publish(&[1], 100);
    harness.publish(&[1, 2], 100_000);
    harness.publish(&[1], 100);
    harness.publish(&[1], 20_000);
    harness.sync();
    harness.load_everything();
    let mut after = harness.crash(Survival::Nothing, 0);
    assert_eq!(after.state, harness.state);
    after.load_everything();
    // And it is freed when nothing needs it any more.
    let before = after.store.stats().log_bytes;
    after.consume(1, 4);
    after.consume(2, 1);
    after.publish(&[1], 10);
    after.settle();
    after.checkpoint();
    assert!(after.store.stats().log_bytes + 100_000 <= before);
    assert_eq!(after.restart().state.messages.len(), 1);
}

#[test]
fn short_writes_are_continued() {
    let disk = FakeDisk::new();
    disk.set_short_writes(Some(7));
    let mut harness = StoreHarness::on(disk, small());
    for size in [0, 10, 1_000, 40_000, 3_000] {
        harness.publish(&[1], size);
        harness.sync();
    }
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn a_body_is_readable_before_it_is_written() {
    let mut harness = StoreHarness::new(small());
    let mut items = Vec::new();
    for size in [10, 20_000, 30] {
        let seq = harness.publish(&[1], size);
        let entry = *harness.ready[&QueueId(1)].get(seq).expect("it is ready").entry;
        items.push(item(&entry));
    }
    // Sealed but not written, and open.
    harness.ticket(Durability::Fsync);
    let job = harness.store.poll_job(harness.now).expect("an allocation or a write");
    let seq = harness.publish(&[1], 50);
    items.push(item(harness.ready[&QueueId(1)].get(seq).unwrap().entry));
    let loaded = harness.load(QueueId(1), LoadWhat::Items(items.clone()));
    assert_eq!(loaded.errors, []);
    for ((seq, message), item) in loaded.messages.iter().zip(&items) {
        assert_is(message, *seq, item.body_bytes);
    }
    assert_eq!(loaded.messages.len(), 4);
    drop(job);
}

#[test]
fn a_transaction_over_several_segments_is_one() {
    let mut harness = StoreHarness::new(tiny());
    harness.publish(&[1], 100);
    harness.deliver(1);
    harness.sync();
    harness.transaction(1, 12, 1_000);
    harness.ticket(Durability::Fsync);
    harness.disk.set_recording(true);
    harness.pump();
    let images = harness.disk.take_recorded();
    assert!(images.len() > 4, "segments are synced as they fill");
    for (at, image) in images.iter().enumerate() {
        for seed in 0..20 {
            for survival in [Survival::All, Survival::Random, Survival::Prefix] {
                let after = harness.try_image(image, survival, seed);
                let len = after.state.messages.len();
                assert!(len == 1 || len == 12, "image {at}: {len} messages");
            }
        }
    }
    assert_eq!(harness.crash(Survival::Nothing, 0).state, harness.state);
}

#[test]
fn numbers_go_on_after_everything_was_consumed() {
    let mut harness = StoreHarness::new(tiny());
    for _ in 0..100 {
        harness.publish(&[7], 500);
        harness.consume(7, 1);
    }
    harness.settle();
    let next = harness.next_seq;
    let after = harness.crash(Survival::Nothing, 0);
    assert!(after.next_seq >= next, "{:?} < {next:?}", after.next_seq);
}

#[test]
fn segments_of_another_size_are_taken_over_and_replaced_in_time() {
    let mut harness = StoreHarness::new(tiny());
    for round in 0..12_u32 {
        for _ in 0..40 {
            harness.publish(&[1], 300);
        }
        harness.consume(1, 30);
        if round % 5 == 4 {
            harness.checkpoint();
        }
        harness.settle();
        harness.options.segment_bytes = [4_096, 65_536, 8_192][round as usize % 3];
        harness = harness.restart();
    }
    harness.load_everything();
    assert_eq!(harness.state.messages.len(), 120);
}

//! Batches, tickets, fan-outs, large records.

use quelea_model::{QueueId, Timestamp};
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{Durability, LoadWhat, Options, Store, Ticket};

use crate::state::assert_is;
use crate::world::{World, item, small, tiny};

#[test]
fn a_confirmed_message_survives_and_reads_back() {
    let mut world = World::new(small());
    let seq = world.publish(&[1], 100);
    let ticket = world.ticket(Durability::Fsync);
    assert!(!world.is_reached(ticket));
    world.pump();
    assert!(world.is_reached(ticket));
    let after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state, world.state);
    assert!(after.state.messages.contains_key(&(QueueId(1), seq)));
}

#[test]
fn os_durability_is_reached_by_the_write_and_survives_the_process() {
    let mut world = World::new(small());
    world.publish(&[1], 100);
    world.sync();
    let syncs = world.disk.syncs();
    world.publish(&[1], 100);
    let ticket = world.ticket(Durability::Os);
    world.pump();
    assert!(world.is_reached(ticket));
    assert_eq!(world.disk.syncs(), syncs, "nothing was synced for it");
    assert_eq!(world.crash(Survival::All, 0).state, world.state);
}

#[test]
fn what_nobody_waits_for_is_synced_a_little_later() {
    let mut world = World::new(small());
    world.publish(&[1], 10);
    world.sync();
    world.consume(1, 1);
    world.pump();
    let deadline = world.store.deadline().expect("a write is due");
    assert!(deadline.since_ms(world.now) <= 250);
    world.settle();
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn a_batch_gathers_while_the_last_one_is_written() {
    let mut world = World::new(small());
    world.publish(&[1], 10);
    world.sync();
    let batches = world.store.stats().batches;
    world.publish(&[1], 10);
    world.ticket(Durability::Fsync);
    let done = world.run_unfinished().expect("a write");
    for _ in 0..50 {
        world.publish(&[1], 10);
        world.ticket(Durability::Fsync);
    }
    assert!(world.store.poll_job(world.now).is_none(), "one write at a time");
    world.complete(done);
    world.pump();
    assert_eq!(world.store.stats().batches, batches + 2);
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn a_ticket_for_nothing_is_reached_at_once() {
    let mut world = World::new(small());
    assert_eq!(world.ticket(Durability::None), Ticket::NONE);
    let ticket = world.ticket(Durability::Fsync);
    assert!(world.is_reached(ticket));
    world.publish(&[1], 10);
    assert!(world.is_reached(ticket));
}

#[test]
fn a_fan_out_stores_the_body_once() {
    let mut world = World::new(Options { segment_bytes: 1 << 20, ..small() });
    let queues: Vec<u32> = (1..=20).collect();
    for _ in 0..100 {
        world.publish(&queues, 1_024);
    }
    world.sync();
    let bytes = world.store.stats().written_bytes;
    assert!(bytes * 10 <= 100 * 1_024 * 13, "{bytes} bytes for 100 bodies of 1 KiB");
    let mut after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state.messages.len(), 2_000);
    after.load_everything();
}

#[test]
fn expiries_are_kept_for_each_queue() {
    let mut world = World::new(small());
    let [soon, late] = [Timestamp::from_millis(5), Timestamp::from_millis(9)];
    world.publish_with(&[1, 2, 3], 10, true, &[soon, quelea_store::NEVER, late], 3);
    world.publish_with(&[1, 2], 10, true, &[late], 0);
    world.sync();
    let after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state, world.state);
    let expiries: Vec<_> = after.state.messages.values().map(|held| held.expires_at).collect();
    assert_eq!(expiries, [Some(soon), Some(late), None, Some(late), Some(late)]);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let mut world = World::new(tiny());
    world.publish(&[1], 100);
    world.publish(&[1, 2], 100_000);
    world.publish(&[1], 100);
    world.publish(&[1], 20_000);
    world.sync();
    world.load_everything();
    let mut after = world.crash(Survival::Nothing, 0);
    assert_eq!(after.state, world.state);
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
    let mut world = World::on(disk, small());
    for size in [0, 10, 1_000, 40_000, 3_000] {
        world.publish(&[1], size);
        world.sync();
    }
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn a_body_is_readable_before_it_is_written() {
    let mut world = World::new(small());
    let mut items = Vec::new();
    for size in [10, 20_000, 30] {
        let seq = world.publish(&[1], size);
        let entry = *world.ready[&QueueId(1)].get(seq).expect("it is ready").entry;
        items.push(item(&entry));
    }
    // Sealed but not written, and open.
    world.ticket(Durability::Fsync);
    let job = world.store.poll_job(world.now).expect("an allocation or a write");
    let seq = world.publish(&[1], 50);
    items.push(item(world.ready[&QueueId(1)].get(seq).unwrap().entry));
    let loaded = world.load(QueueId(1), LoadWhat::Items(items.clone()));
    assert_eq!(loaded.errors, []);
    for ((seq, message), item) in loaded.messages.iter().zip(&items) {
        assert_is(message, *seq, item.body_bytes);
    }
    assert_eq!(loaded.messages.len(), 4);
    drop(job);
}

#[test]
fn a_transaction_over_several_segments_is_one() {
    let mut world = World::new(tiny());
    world.publish(&[1], 100);
    world.deliver(1);
    world.sync();
    world.transaction(1, 12, 1_000);
    world.ticket(Durability::Fsync);
    world.disk.set_recording(true);
    world.pump();
    let images = world.disk.take_recorded();
    assert!(images.len() > 4, "segments are synced as they fill");
    for (at, image) in images.iter().enumerate() {
        for seed in 0..20 {
            for survival in [Survival::All, Survival::Random, Survival::Prefix] {
                let after = world.try_image(image, survival, seed);
                let len = after.state.messages.len();
                assert!(len == 1 || len == 12, "image {at}: {len} messages");
            }
        }
    }
    assert_eq!(world.crash(Survival::Nothing, 0).state, world.state);
}

#[test]
fn numbers_go_on_after_everything_was_consumed() {
    let mut world = World::new(tiny());
    for _ in 0..100 {
        world.publish(&[7], 500);
        world.consume(7, 1);
    }
    world.settle();
    let next = world.next_seq;
    let after = world.crash(Survival::Nothing, 0);
    assert!(after.next_seq >= next, "{:?} < {next:?}", after.next_seq);
}

#[test]
fn segments_of_another_size_are_taken_over_and_replaced_in_time() {
    let mut world = World::new(tiny());
    for round in 0..12_u32 {
        for _ in 0..40 {
            world.publish(&[1], 300);
        }
        world.consume(1, 30);
        if round % 5 == 4 {
            world.checkpoint();
        }
        world.settle();
        world.options.segment_bytes = [4_096, 65_536, 8_192][round as usize % 3];
        world = world.restart();
    }
    world.load_everything();
    assert_eq!(world.state.messages.len(), 120);
}

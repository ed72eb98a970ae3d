//! Flows that repeat nothing.

use super::*;

fn lost(sender: &Sender, messages: u64) -> Event {
    Event::Lost { from: sender.from, mailbox: BOX, messages }
}

#[test]
fn messages_are_delivered_as_they_come() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    let sent = [sender.data(&[b"a", b"b"]), sender.data(&[b""]), sender.data(&[b"c"])];
    receiver.take_all(&sender, &sent);
    assert_eq!(receiver.messages(), ["a", "b", "", "c"]);
    assert_eq!(receiver.inbox.counters().messages, 4);
    assert_eq!(receiver.inbox.counters().datagrams, 3);
    let delivery = &receiver.deliveries[0];
    assert_eq!((delivery.from, delivery.session, delivery.mailbox), (sender.from, 11, BOX));
}

#[test]
fn a_duplicate_is_counted_and_dropped() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    let (first, second) = (sender.one(), sender.one());
    receiver.take_all(&sender, [&first, &second, &first, &second, &second]);
    assert_eq!(receiver.messages(), ["0", "1"]);
    assert_eq!(receiver.inbox.counters().duplicates, 3);
}

#[test]
fn what_overtakes_is_counted_as_reordered_and_nothing_is_lost() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..4).map(|_| sender.one()).collect();
    receiver.take_all(&sender, [&sent[3], &sent[1], &sent[0], &sent[2]]);
    assert_eq!(receiver.numbers(), [4, 2, 1, 3]);
    receiver.wait(1_000_000);
    assert_eq!(receiver.inbox.counters().reordered, 3);
    assert_eq!(receiver.inbox.counters().lost_messages, 0);
    assert!(receiver.events().is_empty());
}

#[test]
fn lost_messages_are_counted_exactly_a_moment_later() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let _lost = [sender.data(&[b"a", b"b", b"c"]), sender.data(&[b"d"])];
    let came = sender.one();
    let _lost = sender.data(&[b"e", b"f"]);
    let last = sender.one();
    receiver.take_all(&sender, [&came, &last]);
    assert_eq!(receiver.inbox.counters().lost_messages, 0, "they may be late");
    receiver.wait(60_000);
    assert_eq!(receiver.inbox.counters().lost_messages, 6);
    assert_eq!(receiver.inbox.counters().lost_datagrams, 3);
    assert_eq!(receiver.events(), [lost(&sender, 6)]);
    assert_eq!(receiver.inbox.next_deadline(), None, "nothing is due any more");
}

#[test]
fn what_comes_after_it_was_counted_as_lost_is_late() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let (late, next) = (sender.one(), sender.one());
    receiver.take(&sender, &next);
    receiver.wait(60_000);
    receiver.take(&sender, &late);
    assert_eq!(receiver.numbers(), [2]);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.late, counters.duplicates, counters.lost_messages), (1, 0, 1));
}

#[test]
fn the_first_train_may_be_lost_too() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    for _ in 0..20 {
        sender.data(&[b"x", b"y"]);
    }
    let came = sender.one();
    receiver.take(&sender, &padded(came, 64));
    receiver.wait(60_000);
    receiver.prove(&sender);
    assert_eq!(receiver.inbox.counters().lost_messages, 40);
}

#[test]
fn a_flow_that_is_joined_late_has_lost_nothing() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    sender.sequence = 1_000_000;
    sender.message = u64::from(u32::MAX) * 5 + 77;
    let sent = [sender.one(), sender.one(), sender.one()];
    receiver.take_all(&sender, [&sent[0], &sent[2]]);
    receiver.wait(60_000);
    assert_eq!(receiver.inbox.counters().unproven_lost_messages, 1);
}

#[test]
fn the_number_of_a_message_runs_past_32_bits() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    sender.sequence = 1_000_000;
    sender.message = u64::from(u32::MAX) - 1;
    for step in 0..4 {
        let sent = sender.one();
        if step != 2 {
            receiver.take(&sender, &sent);
        }
    }
    receiver.wait(60_000);
    assert_eq!(receiver.messages().len(), 3);
    assert_eq!(receiver.inbox.counters().unproven_lost_messages, 1);
}

#[test]
fn losses_at_the_end_are_found_by_a_probe() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let _lost = [sender.data(&[b"a", b"b"]), sender.one()];
    let probe = sender.probe(0);
    receiver.probe(&sender, &probe);
    let status = receiver.status();
    assert_eq!((status.highest, status.received_below), (3, 3), "credit comes back");
    assert_eq!((status.echo_us, status.delay_us), (77, 0));
    receiver.wait(60_000);
    assert_eq!(receiver.inbox.counters().lost_messages, 3);
    receiver.probe(&sender, &probe);
    assert_eq!(receiver.inbox.counters().replayed, 1);
    assert!(receiver.statuses().is_empty());
}

#[test]
fn only_the_latest_counts_where_that_was_asked_for() {
    let mut sender = Sender::new(FlowMode::LatestOnly);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..4).map(|_| sender.one()).collect();
    receiver.take_all(&sender, [&sent[1], &sent[0], &sent[3], &sent[2]]);
    assert_eq!(receiver.numbers(), [2, 4]);
    receiver.wait(60_000);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.late, counters.lost_messages), (2, 0), "they came, if late");
    assert_eq!((counters.lost_datagrams, receiver.inbox.poll_event()), (0, None));
}

#[test]
fn a_datagram_whose_messages_run_past_its_end_changes_nothing() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::new();
    let good = sender.one();
    let mut bad = good.clone();
    bad.header.count = 2;
    assert_eq!(receiver.try_take(&sender, &bad), Err(Malformed::Varint));
    assert_eq!(receiver.inbox.flow_count(), (0, 0), "it made no flow");
    receiver.take(&sender, &good);
    assert_eq!(receiver.numbers(), [0]);
}

#[test]
fn a_datagram_that_contradicts_its_flow_is_dropped() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let good = sender.one();
    let wrong = |change: &dyn Fn(&mut Header)| {
        let mut sent = good.clone();
        change(&mut sent.header);
        sent
    };
    let wrongs = [
        wrong(&|header| header.flags = FlowMode::ReliableOrdered as u8 | flags::CREDIT),
        wrong(&|header| header.flags = FlowMode::Lossy as u8),
        wrong(&|header| header.mailbox = Mailbox(8)),
        wrong(&|header| header.first_message = 0),
        wrong(&|header| header.first_message = 2),
    ];
    receiver.take_all(&sender, &wrongs);
    assert_eq!(receiver.inbox.counters().inconsistent, wrongs.len() as u64);
    receiver.take(&sender, &good);
    assert_eq!(receiver.numbers(), [1]);
}

#[test]
fn a_burst_of_gaps_longer_than_the_window_is_counted_exactly() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let mut lost = 0;
    for step in 0..30_000u64 {
        let sent = sender.data(&[b"x", b"y"]);
        if step % 10 < 3 && step < 29_999 {
            lost += 2;
        } else {
            receiver.take(&sender, &sent);
        }
        receiver.deliveries.clear();
        receiver.messages();
        receiver.pop_all();
    }
    receiver.wait(60_000);
    assert_eq!(receiver.inbox.counters().lost_messages, lost);
    assert_eq!(receiver.inbox.counters().lost_datagrams, lost / 2);
}

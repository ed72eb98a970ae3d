//! Flows whose losses are repeated.

use super::*;

#[test]
fn an_unordered_flow_delivers_each_message_once_as_it_comes() {
    let mut sender = Sender::new(FlowMode::ReliableUnordered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..4).map(|_| sender.one()).collect();
    receiver.take_all(&sender, [&sent[2], &sent[0], &sent[2], &sent[1], &sent[0], &sent[3]]);
    assert_eq!(receiver.numbers(), [3, 1, 2, 4]);
    assert_eq!(receiver.inbox.counters().duplicates, 2);
    assert_eq!(receiver.status().received_below, 5);
}

#[test]
fn an_ordered_flow_waits_for_what_is_missing() {
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..5).map(|_| sender.one()).collect();
    receiver.take_all(&sender, [&sent[4], &sent[1], &sent[2]]);
    assert!(receiver.messages().is_empty());
    assert!(receiver.inbox.waiting_bytes() > 0);
    receiver.take(&sender, &sent[0]);
    assert_eq!(receiver.numbers(), [1, 2, 3]);
    receiver.take(&sender, &sent[3]);
    assert_eq!(receiver.numbers(), [4, 5]);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
    assert_eq!(receiver.inbox.counters().lost_messages, 0);
}

#[test]
fn a_gap_is_reported_at_once_and_what_is_in_order_soon() {
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..3).map(|_| sender.one()).collect();
    receiver.take(&sender, &sent[0]);
    assert!(receiver.statuses().is_empty(), "it waits for another");
    receiver.wait(1_000);
    assert_eq!(receiver.status().received_below, 2);
    receiver.take(&sender, &sent[2]);
    let status = receiver.status();
    assert_eq!((status.received_below, status.highest), (2, 4));
    assert_eq!(status.ranges, [(3, 4)]);
    receiver.take(&sender, &sent[1]);
    receiver.wait(1_000);
    assert_eq!(receiver.status().received_below, 4);
    receiver.wait(300_000);
    assert_eq!(receiver.inbox.next_deadline(), None, "nothing is due any more");
}

#[test]
fn every_second_train_is_acknowledged_without_a_wait() {
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let mut statuses = 0;
    for _ in 0..10 {
        for _ in 0..3 {
            let sent = sender.one();
            receiver.take(&sender, &sent);
        }
        statuses += receiver.statuses().len();
        receiver.wait(10);
    }
    assert_eq!(statuses, 5);
}

#[test]
fn a_repetition_of_what_came_is_answered_at_once() {
    let mut sender = Sender::new(FlowMode::ReliableUnordered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.one();
    receiver.take(&sender, &sent);
    receiver.wait(1_000);
    receiver.statuses();
    receiver.take(&sender, &sent);
    assert_eq!(receiver.status().received_below, 2, "the last STATUS was lost");
}

#[test]
fn what_is_popped_is_acknowledged() {
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = [sender.one(), sender.one()];
    receiver.take_all(&sender, &sent);
    receiver.wait(1_000);
    let status = receiver.status();
    assert_eq!((status.received_below, status.acknowledged_below), (3, 1));
    receiver.messages();
    let second = receiver.deliveries.pop().unwrap();
    receiver.inbox.popped(second.token, receiver.now);
    receiver.wait(1_000);
    assert_eq!(receiver.status().acknowledged_below, 1, "the first is not popped");
    receiver.pop_all();
    receiver.wait(1_000);
    assert_eq!(receiver.status().acknowledged_below, 3);
}

#[test]
fn an_application_that_acknowledges_by_itself_does_so_for_all_before() {
    let options = MailboxOptions { acknowledged_by_application: true, ..MailboxOptions::default() };
    let mut sender = Sender::new(FlowMode::ReliableUnordered);
    let mut receiver = Receiver::with(&Config::default(), &options);
    let sent: Vec<Sent> = (0..3).map(|_| sender.one()).collect();
    receiver.take_all(&sender, [&sent[0], &sent[2]]);
    receiver.messages();
    let tokens: Vec<_> = receiver.deliveries.iter().map(|delivery| delivery.token).collect();
    receiver.pop_all();
    receiver.wait(1_000);
    receiver.prove(&sender);
    receiver.wait(1_000);
    let acknowledged = |receiver: &mut Receiver| {
        receiver.wait(1_000);
        receiver.status().acknowledged_below
    };
    assert_eq!(acknowledged(&mut receiver), 0, "popping is not enough");
    receiver.inbox.acknowledge(tokens[1], receiver.now);
    assert_eq!(acknowledged(&mut receiver), 1, "the second is still missing");
    receiver.take(&sender, &sent[1]);
    assert_eq!(acknowledged(&mut receiver), 1);
    receiver.messages();
    receiver.inbox.acknowledge(receiver.deliveries[0].token, receiver.now);
    assert_eq!(acknowledged(&mut receiver), 3);
}

#[test]
fn what_was_given_up_is_skipped_and_counted() {
    let mut sender = Sender::new(FlowMode::ReliableUntil);
    let mut receiver = Receiver::proven(&mut sender);
    let sent: Vec<Sent> = (0..5).map(|_| sender.data(&[b"a", b"b"])).collect();
    receiver.take_all(&sender, [&sent[1], &sent[3]]);
    assert!(receiver.messages().is_empty());
    receiver.probe(&sender, &sender.clone().probe(3));
    assert_eq!(receiver.messages().len(), 2, "the datagram behind the first gap");
    let status = receiver.status();
    assert_eq!((status.received_below, status.highest, status.lost_messages), (3, 6, 2));
    receiver.take(&sender, &sent[2]);
    assert_eq!(receiver.messages().len(), 4);
    receiver.take(&sender, &sent[0]);
    assert_eq!(receiver.inbox.counters().late, 1);
    assert_eq!(receiver.inbox.counters().lost_messages, 2);
}

#[test]
fn what_is_too_far_ahead_of_a_gap_is_refused() {
    let mut sender = Sender::new(FlowMode::ReliableUnordered);
    let mut receiver = Receiver::proven(&mut sender);
    let missing = sender.one();
    let mut beyond = Vec::new();
    for _ in 0..9_000 {
        let sent = sender.one();
        receiver.take(&sender, &sent);
        beyond.push(sent);
    }
    let refused = receiver.inbox.counters().beyond_window;
    assert_eq!(refused, 9_000 - 8_191);
    receiver.take(&sender, &missing);
    receiver.take_all(&sender, &beyond);
    let mut numbers = receiver.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=9_001).collect::<Vec<_>>());
}

#[test]
fn a_full_mailbox_refuses_and_takes_the_repetition_later() {
    let options = MailboxOptions { bytes_max: 2_500, ..MailboxOptions::default() };
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::with(&Config::default(), &options);
    receiver.meet(&mut sender);
    let bytes = [b'x'; 1_000];
    let sent: Vec<Sent> = (0..4).map(|_| sender.data(&[&bytes])).collect();
    receiver.take_all(&sender, &sent);
    assert_eq!(receiver.messages().len(), 3);
    assert_eq!(receiver.inbox.counters().mailbox_full, 1);
    receiver.statuses();
    receiver.pop_all();
    let status = receiver.status();
    assert_eq!(status.received_below, 4);
    assert!(status.window_bytes > 0);
    receiver.take(&sender, &sent[3]);
    assert_eq!(receiver.messages().len(), 1);
    assert_eq!(receiver.inbox.counters().lost_messages, 0);
}

#[test]
fn what_waits_cannot_keep_out_what_it_waits_for() {
    let options = MailboxOptions { bytes_max: 5_000, ..MailboxOptions::default() };
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::with(&Config::default(), &options);
    receiver.meet(&mut sender);
    let bytes = [b'x'; 1_000];
    let sent: Vec<Sent> = (0..10).map(|_| sender.data(&[&bytes])).collect();
    receiver.take_all(&sender, &sent[1..]);
    assert!(receiver.inbox.counters().mailbox_full > 0);
    let status = receiver.statuses().pop().unwrap();
    assert!(status.window_bytes > 0, "the missing one may come: {status:?}");
    receiver.take(&sender, &sent[0]);
    assert!(receiver.messages().len() > 1);
    receiver.pop_all();
    for _ in 0..3 {
        receiver.take_all(&sender, &sent);
        receiver.messages();
        receiver.pop_all();
    }
    assert_eq!(receiver.inbox.counters().messages, 11);
}

#[test]
fn memory_for_what_waits_is_bounded_and_what_is_next_comes_in() {
    let config =
        Config { reassembly_bytes_max: 50_000, message_bytes_max: 10_000, ..Config::default() };
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    receiver.meet(&mut sender);
    let bytes = [b'x'; 1_000];
    let sent: Vec<Sent> = (0..100).map(|_| sender.data(&[&bytes])).collect();
    receiver.take_all(&sender, &sent[1..]);
    assert!(receiver.inbox.waiting_bytes() <= 50_000);
    assert!(receiver.inbox.counters().reassembly_full > 50);
    for _ in 0..2 {
        receiver.take_all(&sender, &sent);
    }
    assert_eq!(receiver.messages().len(), 100);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
}

#[test]
fn a_flow_whose_first_datagrams_were_given_up_begins_behind_them() {
    let mut sender = Sender::new(FlowMode::ReliableUntil);
    let mut receiver = Receiver::new();
    let sent: Vec<Sent> = (0..5).map(|_| sender.data(&[b"a", b"b"])).collect();
    let probe = sender.probe(3);
    receiver.probe(&sender, &probe);
    receiver.take_all(&sender, &sent[3..]);
    receiver.prove(&sender);
    assert_eq!(receiver.messages().len(), 4);
    assert_eq!(receiver.inbox.counters().inconsistent, 0);
    assert_eq!(receiver.inbox.counters().lost_messages, 6);
}

#[test]
fn a_message_without_its_end_is_given_up_before_the_flow_ends() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.fragments(&[b'x'; 1_000], 4);
    receiver.take_all(&sender, &sent[..3]);
    let (mut header, probe) = sender.probe(0);
    header.flags |= flags::END;
    receiver.probe(&sender, &(header, probe));
    assert!(receiver.events().is_empty());
    receiver.wait(60_000);
    let events = receiver.events();
    assert!(matches!(events[..], [Event::Lost { messages: 1, .. }, Event::Ended { .. }]));
}

#[test]
fn a_receiver_that_comes_late_hears_what_was_not_given_up() {
    let mut sender = Sender::new(FlowMode::ReliableUntil);
    let mut receiver = Receiver::new();
    for _ in 0..50_000 {
        sender.one();
    }
    let sent: Vec<Sent> = (0..4).map(|_| sender.one()).collect();
    receiver.take(&sender, &sent[1]);
    assert_eq!(receiver.inbox.counters().beyond_window, 1);
    receiver.probe(&sender, &sender.clone().probe(50_001));
    receiver.take_all(&sender, &sent);
    assert_eq!(receiver.numbers(), [50_001, 50_002, 50_003]);
    assert_eq!(receiver.inbox.counters().inconsistent, 0);
    assert_eq!(receiver.inbox.counters().late, 1);
    let next = sender.one();
    receiver.take(&sender, &next);
    assert_eq!(receiver.numbers(), [50_004]);
    assert_eq!(receiver.inbox.counters().lost_messages, 0, "nobody knows how many were before");
}

//! Messages that are longer than a datagram.

use super::*;

fn message(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + (at % 26) as u8).collect()
}

fn small() -> Config {
    Config { reassembly_bytes_max: 40_000, message_bytes_max: 10_000, ..Config::default() }
}

#[test]
fn fragments_in_any_order_make_one_message() {
    let text = message(10_000);
    for mode in [FlowMode::Lossy, FlowMode::LatestOnly, FlowMode::ReliableUnordered] {
        let mut sender = Sender::new(mode);
        let mut receiver = Receiver::proven(&mut sender);
        let sent = sender.fragments(&text, 8);
        let last = sender.one();
        receiver.take_all(&sender, [7, 1, 0, 3, 2, 6, 5, 4].map(|at| &sent[at]));
        receiver.take(&sender, &last);
        let expected = [String::from_utf8(text.clone()).unwrap(), "2".to_owned()];
        assert_eq!(receiver.messages(), expected, "{mode:?}");
        assert_eq!(receiver.inbox.waiting_bytes(), 0);
        receiver.wait(3_000_000);
        let counters = receiver.inbox.counters();
        assert_eq!((counters.lost_messages, counters.incomplete_messages), (0, 0));
    }
}

#[test]
fn an_ordered_flow_delivers_a_long_message_in_its_place() {
    let text = message(5_000);
    let mut sender = Sender::new(FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let before = sender.one();
    let sent = sender.fragments(&text, 4);
    let after = sender.one();
    receiver.take_all(&sender, [&after, &sent[3], &sent[0], &sent[1], &before]);
    assert_eq!(receiver.messages(), ["1"]);
    receiver.take(&sender, &sent[2]);
    assert_eq!(receiver.messages(), [String::from_utf8(text).unwrap(), "3".to_owned()]);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
}

#[test]
fn a_long_message_is_acknowledged_when_it_is_popped_whole() {
    let mut sender = Sender::new(FlowMode::ReliableUnordered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.fragments(&message(2_000), 4);
    receiver.take_all(&sender, &sent[..3]);
    receiver.wait(1_000);
    let status = receiver.status();
    assert_eq!((status.received_below, status.acknowledged_below), (4, 1));
    receiver.take(&sender, &sent[3]);
    receiver.messages();
    receiver.wait(1_000);
    assert_eq!(receiver.status().acknowledged_below, 1);
    receiver.pop_all();
    receiver.wait(1_000);
    assert_eq!(receiver.status().acknowledged_below, 5);
}

#[test]
fn a_message_of_which_a_part_is_lost_is_lost_once() {
    let text = message(2_000);
    // Which fragment is missing: the first, with which the message is counted, or another.
    for missing in 0..4 {
        let mut sender = Sender::new(FlowMode::Lossy);
        let mut receiver = Receiver::proven(&mut sender);
        let mut sent = sender.fragments(&text, 4);
        let after = sender.one();
        sent.remove(missing);
        receiver.take_all(&sender, &sent);
        receiver.take(&sender, &after);
        assert_eq!(receiver.messages(), ["2"]);
        receiver.wait(3_000_000);
        let counters = receiver.inbox.counters();
        assert_eq!(counters.lost_messages, 1, "fragment {missing}");
        assert_eq!(counters.incomplete_messages, 1);
        assert_eq!(receiver.inbox.waiting_bytes(), 0);
        assert_eq!(receiver.inbox.next_deadline(), None);
    }
}

#[test]
fn incomplete_messages_are_bounded_in_memory_and_the_oldest_goes_first() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::with(&small(), &MailboxOptions::default());
    receiver.meet(&mut sender);
    let text = message(9_000);
    for _ in 0..50 {
        let sent = sender.fragments(&text, 4);
        receiver.take_all(&sender, &sent[..3]);
        assert!(receiver.inbox.waiting_bytes() <= 40_000);
    }
    let sent = sender.fragments(&text, 4);
    receiver.take_all(&sender, &sent);
    assert_eq!(receiver.messages().len(), 1);
    receiver.wait(3_000_000);
    assert_eq!(receiver.inbox.counters().lost_messages, 50);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
}

#[test]
fn a_reliable_flow_gets_all_long_messages_through_little_memory() {
    for mode in [FlowMode::ReliableUnordered, FlowMode::ReliableOrdered] {
        let mut sender = Sender::new(mode);
        let mut receiver = Receiver::with(&small(), &MailboxOptions::default());
        receiver.meet(&mut sender);
        let texts: Vec<Vec<u8>> = (0..10).map(|at| message(9_000 + at)).collect();
        let sent: Vec<Sent> = texts.iter().flat_map(|text| sender.fragments(text, 6)).collect();
        // The first fragment is always lost the first time, and everything is repeated.
        receiver.take_all(&sender, &sent[1..]);
        for _ in 0..10 {
            receiver.take_all(&sender, &sent);
            receiver.wait(300_000);
            assert!(receiver.inbox.waiting_bytes() <= 40_000);
        }
        let mut lengths: Vec<usize> = receiver.messages().iter().map(String::len).collect();
        if !mode.is_ordered() {
            lengths.sort_unstable();
        }
        assert_eq!(lengths, (9_000..9_010).collect::<Vec<_>>(), "{mode:?}");
        assert_eq!(receiver.inbox.waiting_bytes(), 0);
        assert_eq!(receiver.inbox.counters().lost_messages, 0);
    }
}

#[test]
fn a_message_that_is_too_long_does_not_stop_the_flow() {
    for mode in [FlowMode::Lossy, FlowMode::ReliableUnordered, FlowMode::ReliableOrdered] {
        let mut sender = Sender::new(mode);
        let mut receiver = Receiver::with(&small(), &MailboxOptions::default());
        receiver.meet(&mut sender);
        let sent = sender.fragments(&message(10_001), 6);
        let after = sender.one();
        receiver.take_all(&sender, &sent);
        receiver.take(&sender, &after);
        assert_eq!(receiver.messages(), ["2"], "{mode:?}");
        assert_eq!(receiver.inbox.counters().lost_messages, 1);
    }
}

#[test]
fn fragments_that_contradict_one_another_are_dropped() {
    let mut sender = Sender::new(FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.fragments(&message(1_000), 4);
    let mut liar = sender.clone();
    liar.sequence -= 2;
    liar.message -= 1;
    let mut lie = liar.fragments(&message(900), 5)[1].clone();
    lie.header.sequence = sent[2].header.sequence;
    lie.header.first_message = sent[2].header.first_message;
    receiver.take_all(&sender, [&sent[0], &sent[1], &lie]);
    assert_eq!(receiver.inbox.counters().inconsistent, 1);
    assert!(receiver.messages().is_empty());
}

#[test]
fn a_deadline_within_a_long_message_gives_up_all_of_it() {
    let mut sender = Sender::new(FlowMode::ReliableUntil);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.fragments(&message(1_000), 5);
    let after = sender.one();
    receiver.take_all(&sender, [&sent[0], &sent[1], &sent[3], &sent[4], &after]);
    receiver.probe(&sender, &sender.clone().probe(4));
    assert_eq!(receiver.messages(), ["2"]);
    assert_eq!(receiver.inbox.counters().lost_messages, 1);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
}

//! Who is known, who is believed, who is forgotten.

use super::*;
use crate::limits::FLOWS_UNPROVEN_MAX;

fn at(port: u16, mode: FlowMode) -> Sender {
    Sender { from: SocketAddr::from(([127, 0, 0, 1], port)), ..Sender::new(mode) }
}

/// Returns the number of bytes of an answer on the wire.
fn bytes(answer: &Answer) -> usize {
    let body = match answer {
        Answer::Status { status, .. } => {
            let mut body = Vec::new();
            status.write(&mut body);
            body.len()
        }
        Answer::Challenge { .. } => COOKIE_BYTES,
        Answer::Refusal { .. } => 1,
    };
    HEADER_BYTES + body
}

#[test]
fn an_unproven_address_gets_no_more_than_came_from_it() {
    for mode in [FlowMode::Lossy, FlowMode::ReliableOrdered] {
        for length in [1, 8, 30, 100, 1_000] {
            let mut sender = at(5_000, mode);
            let mut receiver = Receiver::new();
            let (mut came, mut went) = (0, 0);
            for step in 0..200 {
                let mut sent = sender.data(&[&vec![b'x'; length]]);
                sent.header.flags |= flags::STATUS_WANTED;
                if step % 3 != 1 {
                    came += HEADER_BYTES + sent.body.len();
                    receiver.take(&sender, &sent);
                }
                receiver.wait(30_000);
                went += receiver.answers().iter().map(bytes).sum::<usize>();
                assert!(went <= came, "{went} of {came}");
                receiver.messages();
                receiver.pop_all();
            }
            assert!(went > 0);
        }
    }
}

#[test]
fn a_cookie_that_is_given_back_proves_all_flows_of_its_session() {
    let mut first = at(5_000, FlowMode::Lossy);
    let mut second = Sender { flow: 2, ..first.clone() };
    let mut receiver = Receiver::new();
    let sent = [first.one(), second.one()].map(|sent| padded(sent, 64));
    receiver.take(&first, &sent[0]);
    receiver.take(&second, &sent[1]);
    assert_eq!(receiver.inbox.flow_count(), (0, 2));
    receiver.prove(&first);
    assert_eq!(receiver.inbox.flow_count(), (2, 0));
    let mut third = Sender { flow: 3, ..at(5_000, FlowMode::Lossy) };
    let sent = padded(third.one(), 64);
    receiver.take(&third, &sent);
    assert_eq!(receiver.inbox.flow_count(), (3, 0), "the session is known");
}

#[test]
fn a_cookie_of_another_proves_nothing() {
    let mut sender = at(5_000, FlowMode::Lossy);
    let forger = Sender { session: 666, ..sender.clone() };
    let mut receiver = Receiver::new();
    let sent = padded(sender.one(), 64);
    receiver.take(&sender, &sent);
    let answers = receiver.answers();
    let [Answer::Challenge { cookie, .. }] = answers[..] else { panic!("{answers:?}") };
    receiver.hello(&forger, cookie);
    receiver.hello(&sender, [0; 8]);
    assert_eq!(receiver.inbox.flow_count(), (0, 1));
    assert_eq!(receiver.inbox.counters().replayed, 2);
    receiver.now = receiver.now.plus_us(200_000_000);
    receiver.hello(&sender, cookie);
    assert_eq!(receiver.inbox.flow_count(), (0, 1), "it is too old");
}

#[test]
fn forged_flows_neither_evict_proven_ones_nor_take_their_share() {
    let config = Config { receive_window_bytes: 1_000_000, ..Config::default() };
    let mut honest = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    receiver.meet(&mut honest);
    let missing = honest.one();
    let behind = honest.one();
    receiver.take(&honest, &behind);
    for forged in 0..5_000u64 {
        let session = 1_000_000 + forged;
        let mut forger = Sender { session, ..at(6_000, FlowMode::ReliableOrdered) };
        forger.one();
        let sent = forger.data(&[&[b'x'; 1_000]]);
        receiver.take(&forger, &sent);
        receiver.answers();
    }
    assert_eq!(receiver.inbox.flow_count(), (1, FLOWS_UNPROVEN_MAX));
    let evicted = receiver.inbox.counters().evicted_unproven;
    assert_eq!(evicted, 5_000 - FLOWS_UNPROVEN_MAX as u64);
    assert_eq!(receiver.inbox.counters().evicted, 0);
    receiver.take(&honest, &missing);
    assert_eq!(receiver.numbers(), [1, 2]);
    let probe = honest.probe(0);
    receiver.probe(&honest, &probe);
    assert_eq!(receiver.statuses().pop().unwrap().window_bytes, 1_000_000);
}

#[test]
fn forged_flows_cannot_take_the_memory_of_proven_ones() {
    let config =
        Config { reassembly_bytes_max: 1 << 20, message_bytes_max: 100_000, ..Config::default() };
    let mut honest = at(5_000, FlowMode::ReliableUnordered);
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    receiver.meet(&mut honest);
    for forged in 0..100u64 {
        let mut forger =
            Sender { session: 1_000 + forged, ..at(6_000, FlowMode::ReliableUnordered) };
        let sent = forger.fragments(&vec![b'x'; 90_000], 100);
        receiver.take(&forger, &sent[0]);
    }
    assert!(receiver.inbox.waiting_bytes() <= (1 << 20) / 8);
    let sent = honest.fragments(&vec![b'x'; 90_000], 100);
    receiver.take_all(&honest, &sent);
    assert_eq!(receiver.messages().len(), 1);
}

#[test]
fn an_address_with_many_proven_flows_pushes_out_only_its_own() {
    let config = Config { flows_max: 10, flows_per_address_max: 4, ..Config::default() };
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    let from = SocketAddr::from(([10, 0, 0, 9], 5_000));
    let mut other = Sender { from, ..Sender::new(FlowMode::ReliableOrdered) };
    receiver.meet(&mut other);
    for port in 0..20 {
        receiver.meet(&mut at(7_000 + port, FlowMode::Lossy));
    }
    assert_eq!(receiver.inbox.flow_count(), (5, 0));
    assert_eq!(receiver.inbox.counters().evicted, 16);
    assert!(receiver.inbox.peer(from, BOX).is_some_and(|peer| peer.proven));
    let newest = SocketAddr::from(([127, 0, 0, 1], 7_019));
    assert!(receiver.inbox.peer(newest, BOX).is_some());
}

#[test]
fn the_flow_that_was_silent_longest_makes_room() {
    let config = Config { flows_max: 3, ..Config::default() };
    let mut receiver = Receiver::with(&config, &MailboxOptions::default());
    let mut senders: Vec<Sender> = (0..3).map(|port| at(7_000 + port, FlowMode::Lossy)).collect();
    for sender in &mut senders {
        receiver.meet(sender);
    }
    let sent = senders[0].one();
    receiver.take(&senders[0], &sent);
    let mut newcomer = at(8_000, FlowMode::Lossy);
    receiver.meet(&mut newcomer);
    assert_eq!(receiver.inbox.flow_count(), (3, 0));
    assert_eq!(receiver.inbox.counters().evicted, 1);
    receiver.messages();
    let next = [senders[0].one(), senders[1].one()];
    receiver.take(&senders[0], &next[0]);
    assert_eq!(receiver.inbox.flow_count(), (3, 0), "the first is still known");
    receiver.take(&senders[1], &next[1]);
    assert_eq!(receiver.inbox.flow_count(), (3, 1), "the second is not");
}

#[test]
fn a_sender_that_was_started_anew_ends_its_old_flow() {
    let mut old = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut old);
    let _missing = old.data(&[b"x", b"y"]);
    let behind = old.one();
    receiver.take(&old, &behind);
    assert!(receiver.messages().is_empty());
    let mut new = Sender { session: 12, ..at(5_000, FlowMode::ReliableOrdered) };
    receiver.meet(&mut new);
    let (from, mailbox) = (new.from, BOX);
    assert_eq!(
        receiver.events(),
        [Event::Lost { from, mailbox, messages: 3 }, Event::Restarted { from, mailbox }]
    );
    assert_eq!(
        receiver.inbox.counters().messages,
        2,
        "nothing is delivered that has a gap before it"
    );
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
    let straggler = old.one();
    receiver.take(&old, &straggler);
    assert_eq!(receiver.inbox.counters().old_session, 1);
    let next = new.one();
    receiver.take(&new, &next);
    assert_eq!(receiver.numbers(), [1]);
    assert!(receiver.events().is_empty());
}

#[test]
fn a_forged_session_does_not_end_a_proven_one() {
    let mut honest = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut honest);
    let missing = honest.one();
    let behind = honest.one();
    receiver.take(&honest, &behind);
    let mut forger = Sender { session: 666, ..at(5_000, FlowMode::ReliableOrdered) };
    let sent = forger.one();
    receiver.take(&forger, &sent);
    assert!(receiver.events().is_empty());
    receiver.messages();
    receiver.take(&honest, &missing);
    assert_eq!(receiver.numbers(), [1, 2]);
}

#[test]
fn a_mailbox_that_is_not_open_is_refused_and_not_too_often() {
    let mut sender = at(5_000, FlowMode::Lossy);
    let mut receiver = Receiver::new();
    receiver.inbox.close(BOX);
    for _ in 0..1_000 {
        let sent = sender.one();
        receiver.take(&sender, &sent);
    }
    let answers = receiver.answers();
    assert!(answers.iter().all(|answer| matches!(answer, Answer::Refusal { .. })));
    assert_eq!(answers.len(), 64);
    let counters = *receiver.inbox.counters();
    assert_eq!((counters.unknown_mailbox, counters.refusals, counters.withheld), (1_000, 64, 936));
    receiver.wait(1_000_000);
    let sent = sender.one();
    receiver.take(&sender, &sent);
    assert_eq!(receiver.answers().len(), 1);
    assert_eq!(receiver.inbox.flow_count(), (0, 0), "nothing is remembered of it");
}

#[test]
fn what_a_mailbox_was_owed_ends_with_it() {
    let mut sender = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let (delivered, _missing, waits) = (sender.one(), sender.one(), sender.one());
    receiver.take_all(&sender, [&delivered, &waits]);
    receiver.messages();
    receiver.inbox.close(BOX);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
    receiver.inbox.open(BOX, &MailboxOptions::default()).unwrap();
    receiver.pop_all();
    let mut again = Sender { flow: 2, ..at(5_000, FlowMode::ReliableOrdered) };
    let sent = again.one();
    receiver.take(&again, &sent);
    assert_eq!(receiver.messages(), ["0"]);
}

#[test]
fn a_sender_whose_flow_was_forgotten_sees_another_receiver() {
    let mut sender = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let probe = sender.probe(0);
    receiver.probe(&sender, &probe);
    let before = receiver.status().receiver_session;
    receiver.inbox.close(BOX);
    receiver.inbox.open(BOX, &MailboxOptions::default()).unwrap();
    let sent = padded(sender.one(), 200);
    receiver.take(&sender, &sent);
    receiver.wait(2_000);
    let status = receiver.statuses().pop().unwrap();
    assert_ne!(status.receiver_session, before);
    assert_eq!((status.received_below, status.acknowledged_below), (0, 0));
    assert!(receiver.messages().is_empty(), "what comes first is not known here");
}

#[test]
fn the_end_of_a_flow_comes_behind_its_last_message() {
    for mode in [FlowMode::Lossy, FlowMode::ReliableOrdered] {
        let mut sender = at(5_000, mode);
        let mut receiver = Receiver::proven(&mut sender);
        let (missing, last) = (sender.one(), sender.one());
        receiver.take(&sender, &last);
        let (mut header, probe) = sender.probe(0);
        header.flags |= flags::END;
        receiver.probe(&sender, &(header, probe));
        assert!(receiver.events().is_empty(), "one is missing");
        receiver.take(&sender, &missing);
        assert!(receiver.events().is_empty(), "the application has not got the last");
        assert_eq!(receiver.messages().len(), 2);
        let ended = Event::Ended { from: sender.from, session: 11, mailbox: BOX };
        assert_eq!(receiver.events(), [ended], "{mode:?}");
        let (mut header, probe) = sender.probe(0);
        header.flags |= flags::END;
        receiver.probe(&sender, &(header, probe));
        assert!(receiver.events().is_empty(), "it is reported once");
    }
}

#[test]
fn a_lossy_flow_ends_also_if_its_last_messages_were_lost() {
    let mut sender = at(5_000, FlowMode::Lossy);
    let mut receiver = Receiver::proven(&mut sender);
    sender.one();
    let (mut header, probe) = sender.probe(0);
    header.flags |= flags::END;
    receiver.probe(&sender, &(header, probe));
    receiver.wait(60_000);
    let events = receiver.events();
    assert!(matches!(events[..], [Event::Lost { messages: 1, .. }, Event::Ended { .. }]));
}

/// Returns a sender, and its datagram, which says in the name of an address that so many messages
/// of datagrams that never were are missing.
fn made_up(port: u16, messages: u64) -> (Sender, Sent) {
    let mut forger = at(port, FlowMode::Lossy);
    forger.sequence = messages;
    forger.message = messages;
    let sent = forger.one();
    (forger, sent)
}

#[test]
fn a_sender_that_proves_nothing_makes_up_no_losses() {
    let mut receiver = Receiver::new();
    let mut honest = at(60_000, FlowMode::Lossy);
    receiver.meet(&mut honest);
    for port in 1..2_000 {
        let (forger, sent) = made_up(port, 1_000);
        receiver.take(&forger, &sent);
        receiver.wait(60_000);
        let answers = receiver.answers();
        assert!(answers.iter().all(|answer| !matches!(answer, Answer::Status { .. })));
    }
    let counters = *receiver.inbox.counters();
    assert_eq!((counters.lost_messages, counters.lost_datagrams), (0, 0));
    assert_eq!(counters.unproven_lost_messages, 1_999_000);
    assert_eq!(counters.unproven_lost_datagrams, 1_999_000);
    let past = receiver.inbox.forgotten_peers();
    assert_eq!((past.lost_messages, past.lost_datagrams), (0, 0));
    assert!(receiver.events().is_empty());
    honest.one();
    let sent = honest.one();
    receiver.take(&honest, &sent);
    receiver.wait(60_000);
    let (from, mailbox) = (honest.from, BOX);
    assert_eq!(receiver.events(), [Event::Lost { from, mailbox, messages: 1 }]);
}

#[test]
fn what_was_lost_before_its_sender_proved_itself_is_reported_then() {
    let mut receiver = Receiver::new();
    let (sender, sent) = made_up(5_000, 7);
    receiver.take(&sender, &padded(sent, 64));
    receiver.wait(60_000);
    assert!(receiver.events().is_empty());
    receiver.prove(&sender);
    let (from, mailbox) = (sender.from, BOX);
    assert_eq!(receiver.events(), [Event::Lost { from, mailbox, messages: 7 }]);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.lost_messages, counters.lost_datagrams), (7, 7));
}

#[test]
fn a_group_hears_of_losses_and_proven_peers_keep_their_room() {
    let mut receiver = Receiver::new();
    receiver.inbox.set_in_group(true);
    for port in 1..2_000 {
        let (mut forger, _) = made_up(port, 9);
        forger.flags &= !flags::CREDIT;
        let sent = forger.one();
        receiver.take(&forger, &sent);
        receiver.wait(60_000);
    }
    assert!(receiver.inbox.counters().lost_messages > 0);
    let mut honest = at(60_000, FlowMode::Lossy);
    honest.one();
    receiver.meet(&mut honest);
    receiver.wait(60_000);
    let events = receiver.events();
    assert_eq!(events.len(), crate::limits::EVENTS_UNPROVEN_MAX + 1);
    let (from, mailbox) = (honest.from, BOX);
    assert_eq!(events.last(), Some(&Event::Lost { from, mailbox, messages: 1 }));
}

#[test]
fn events_that_nobody_asks_for_are_bounded() {
    let mut receiver = Receiver::new();
    for port in 1..2_000 {
        let mut sender = at(port, FlowMode::Lossy);
        sender.one();
        receiver.meet(&mut sender);
        receiver.wait(60_000);
    }
    assert_eq!(receiver.inbox.counters().lost_messages, 1_999);
    assert_eq!(receiver.events().len(), crate::limits::EVENTS_MAX);
    assert!(receiver.inbox.counters().events_dropped > 0);
}

#[test]
fn an_end_is_reported_however_many_events_wait() {
    let mut honest = at(60_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut honest);
    for port in 1..2_000 {
        let mut sender = at(port, FlowMode::Lossy);
        sender.one();
        receiver.meet(&mut sender);
        receiver.wait(30_000);
    }
    receiver.messages();
    let (mut header, probe) = honest.probe(0);
    header.flags |= flags::END;
    receiver.probe(&honest, &(header, probe));
    receiver.probe(&honest, &(header, probe));
    let ended = |event: &Event| matches!(event, Event::Ended { .. });
    assert_eq!(receiver.events().into_iter().filter(ended).count(), 1);
}

#[test]
fn a_peer_that_died_within_a_message_frees_its_memory() {
    let mut sender = at(5_000, FlowMode::ReliableOrdered);
    let mut receiver = Receiver::proven(&mut sender);
    let sent = sender.fragments(&vec![b'x'; 10_000], 10);
    receiver.take_all(&sender, &sent[..5]);
    assert!(receiver.inbox.waiting_bytes() > 0);
    receiver.wait(200_000_000);
    assert_eq!(receiver.inbox.waiting_bytes(), 0);
    assert_eq!(receiver.inbox.counters().lost_messages, 1);
    assert_eq!(receiver.inbox.next_deadline(), None);
}

#[test]
fn a_session_that_begins_anew_is_found_without_a_look_at_all_flows() {
    let mut first = at(5_000, FlowMode::Lossy);
    let mut receiver = Receiver::new();
    receiver.meet(&mut first);
    for port in 6_000..6_100 {
        receiver.meet(&mut at(port, FlowMode::Lossy));
    }
    let mut again = Sender { session: first.session + 1, ..at(5_000, FlowMode::Lossy) };
    receiver.meet(&mut again);
    assert_eq!(receiver.inbox.counters().restarts, 1);
    assert_eq!(receiver.inbox.flows.scans.get(), 0);
}

//! Two endpoints that share a key.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::wire::{Header, Kind, flags};
use quelea_cmq_proto::{
    Config, DestinationId, DestinationOptions, Endpoint, Event, Key, Mailbox, MailboxOptions, Mode,
    Repair, Time,
};

use crate::endpoints::{ALL_MODES, in_mode, losing_every, sort};
use crate::pair::{Datagram, EndpointPair, Fate, MAILBOX, messages};

fn sealed() -> Config {
    with_key(7)
}

fn with_key(byte: u8) -> Config {
    Config { pre_shared_key: Some(PreSharedKey([byte; 32])), ..Config::default() }
}

#[test]
fn what_is_pushed_is_delivered_sealed_in_every_mode() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(sealed());
        let to = pair.destination(in_mode(mode));
        let secret = b"a secret that nobody on the way may read".to_vec();
        let seen = Rc::new(RefCell::new(0));
        let (count, looked_for) = (Rc::clone(&seen), secret.clone());
        pair.network = Box::new(move |datagram: &Datagram| {
            let clear = datagram.bytes.windows(looked_for.len()).any(|part| part == looked_for);
            assert!(!clear, "it can be read on the way");
            let header = Header::parse(&datagram.bytes).unwrap();
            assert!(header.has(flags::SEALED), "{header:?}");
            *count.borrow_mut() += 1;
            Fate::Arrives
        });
        let mut sent = messages(5_000, 64);
        sent.push(secret);
        sent.push(vec![3; 100_000]);
        pair.push_all(to, &sent);
        pair.run();
        assert!(pair.received == sent, "{mode:?}: {}", pair.received.len());
        assert!(*seen.borrow() > 100);
        assert!(pair.client.is_settled(to));
        assert_eq!(pair.client.stats().dropped.total() + pair.server.stats().dropped.total(), 0);
        assert_eq!(pair.client.stats().sent.hellos, 1);
    }
}

#[test]
fn a_handshake_survives_losses_and_so_does_everything_else() {
    for mode in [Mode::ReliableUnordered, Mode::ReliableOrdered] {
        let mut pair = EndpointPair::new(sealed());
        let mut count = 0;
        pair.network = Box::new(move |_| {
            count += 1;
            if count < 6 || count % 5 == 0 { Fate::Lost } else { Fate::Arrives }
        });
        let to = pair.destination(in_mode(mode));
        let sent = messages(3_000, 100);
        pair.push_all(to, &sent);
        pair.run();
        if !mode.is_ordered() {
            sort(&mut pair.received);
        }
        assert!(pair.received == sent, "{mode:?}: {}", pair.received.len());
    }
}

#[test]
fn peers_with_another_key_or_none_get_nothing_and_leave_no_trace() {
    for client in [with_key(8), Config::default()] {
        let mut pair = EndpointPair::with(client, sealed());
        let to = pair.destination(in_mode(Mode::ReliableOrdered));
        pair.push_all(to, [b"hello"]);
        pair.run_for(Duration::from_secs(70));
        assert!(pair.received.is_empty());
        let stats = pair.server.stats();
        assert!(stats.dropped.not_authentic > 3, "{stats:?}");
        assert_eq!(stats.received.datagrams, 0);
        assert_eq!(pair.sent_by_server, 0, "no answer to those who prove nothing");
        assert!(
            matches!(pair.client_events.last(), Some(Event::Abandoned { messages: 1, .. })),
            "{:?}",
            pair.client_events
        );
    }
    // And one with a key takes nothing from one without.
    let mut pair = EndpointPair::with(sealed(), Config::default());
    let to = pair.destination(in_mode(Mode::Lossy));
    pair.push_all(to, [b"hello"]);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.received.is_empty());
    assert!(pair.server.stats().dropped.not_authentic > 0);
}

#[test]
fn what_was_recorded_is_worth_nothing_neither_now_nor_after_a_restart() {
    for mode in [Mode::Lossy, Mode::ReliableUnordered] {
        let mut pair = EndpointPair::new(sealed());
        let recorded = Rc::new(RefCell::new(Vec::new()));
        let tape = Rc::clone(&recorded);
        pair.network = Box::new(move |datagram: &Datagram| {
            tape.borrow_mut().push(datagram.clone());
            Fate::Arrives
        });
        let to = pair.destination(in_mode(mode));
        let sent = messages(500, 100);
        pair.push_all(to, &sent);
        pair.run();
        assert_eq!(pair.received.len(), 500);
        let play = |pair: &mut EndpointPair| {
            for datagram in recorded.borrow().iter() {
                if datagram.to == pair.server_address {
                    let bytes = BytesMut::from(&datagram.bytes[..]);
                    let len = bytes.len();
                    pair.server.on_datagrams(datagram.from, bytes, len, pair.now);
                }
            }
        };
        play(&mut pair);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.received.len(), 500, "{mode:?}: replayed");
        pair.restart_server(sealed());
        play(&mut pair);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.received.len(), 500, "{mode:?}: replayed after a restart");
    }
}

#[test]
fn a_restarted_receiver_gets_new_keys_and_what_it_had_not_taken() {
    for mode in [Mode::ReliableUnordered, Mode::ReliableOrdered, Mode::Lossy] {
        let mut pair = EndpointPair::new(sealed());
        let to = pair.destination(in_mode(mode));
        let (first, second) = (messages(2_000, 100), messages(1_500, 90));
        pair.push_all(to, &first);
        pair.run_for(Duration::from_micros(220));
        pair.restart_server(sealed());
        pair.push_all(to, &second);
        pair.run();
        pair.push_all(to, [b"at last"]);
        pair.run();
        assert!(pair.client.is_settled(to), "{mode:?}");
        assert_eq!(pair.received.last().map(Vec::as_slice), Some(&b"at last"[..]), "{mode:?}");
        for message in first.iter().chain(&second).filter(|_| mode.is_reliable()) {
            assert!(pair.received.contains(message), "{mode:?}: {}", pair.received.len());
        }
    }
}

#[test]
fn changed_bits_are_never_delivered() {
    let mut pair = EndpointPair::new(sealed());
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    let mut rng = fastrand::Rng::with_seed(5);
    pair.flips = Box::new(move |bytes| {
        if rng.u8(..4) == 0 {
            let at = rng.usize(..bytes.len());
            bytes[at] ^= 1 << rng.u8(..8);
        }
    });
    let sent = messages(3_000, 100);
    pair.push_all(to, &sent);
    pair.run();
    assert!(pair.received == sent, "{}", pair.received.len());
    assert!(pair.server.stats().dropped.not_authentic > 0);
}

#[test]
fn parity_recovers_losses_without_a_repetition_sealed_or_not() {
    for config in [Config::default(), sealed()] {
        for (repair, nth) in
            [(Repair::Xor { data: 8 }, 20), (Repair::ReedSolomon { data: 16, parity: 4 }, 7)]
        {
            let mut pair = EndpointPair::new(config.clone());
            pair.network = losing_every(nth);
            let to = pair.destination(DestinationOptions { repair, ..Default::default() });
            let mut sent = messages(10_000, 100);
            sent.push(vec![5; 60_000]);
            pair.push_all(to, &sent);
            pair.run();
            let stats = pair.server.stats().received;
            sort(&mut pair.received);
            sort(&mut sent);
            assert!(stats.repaired > 20, "{stats:?}");
            assert!(pair.received == sent, "{repair:?}: {} {stats:?}", pair.received.len());
            assert_eq!(stats.lost_messages, 0);
            assert!(pair.sent[&(Kind::Parity as u8)] > 100);
        }
    }
}

#[test]
fn nobody_is_greeted_for_ever() {
    for (mode, closed) in [(Mode::Lossy, false), (Mode::Lossy, true), (Mode::LatestOnly, true)] {
        for answers in [0, 30] {
            let mut pair = EndpointPair::new(sealed());
            let to = pair.destination(in_mode(mode));
            let mut count = 0;
            pair.network = Box::new(move |_| {
                count += 1;
                if count > answers { Fate::Lost } else { Fate::Arrives }
            });
            pair.push_all(to, messages(100, 100));
            pair.run();
            pair.push_all(to, messages(100, 100));
            if closed {
                pair.client.close_destination(to);
            }
            pair.run();
            assert_eq!(pair.client.next_deadline(), None);
            assert!(pair.client.all_settled());
            assert_eq!(pair.client.stats().sent.destinations, u64::from(!closed));
        }
    }
}

/// Returns a pair whose server acknowledges nothing yet, in the midst of a large message: a part of
/// its fragments has come, and data is lost as long as the switch says so.
fn cut_in_the_midst(config: Config, mode: Mode) -> (EndpointPair, DestinationId, Rc<Cell<bool>>) {
    let mut pair = EndpointPair::new(config);
    let to = pair.destination(in_mode(mode));
    pair.push_all(to, messages(1, 100_000));
    pair.client.flush(to);
    let (cut, mut count) = (Rc::new(Cell::new(true)), 0);
    let is_cut = Rc::clone(&cut);
    pair.network = Box::new(move |datagram: &Datagram| {
        let is_data = datagram.kind() == Some(Kind::Data);
        count += u32::from(is_data);
        if is_data && count > 10 && is_cut.get() { Fate::Lost } else { Fate::Arrives }
    });
    pair.run_for(Duration::from_millis(5));
    assert!(pair.server.stats().received.datagrams >= 5 && pair.received.is_empty());
    (pair, to, cut)
}

const REPEATING: [Mode; 3] = [
    Mode::ReliableUnordered,
    Mode::ReliableOrdered,
    Mode::ReliableUntil(Duration::from_secs(3_600)),
];

#[test]
fn a_flow_forgotten_within_a_message_begins_again_with_new_keys() {
    for mode in REPEATING {
        // Its sender slept for so long that the receiver took it for gone.
        let (mut pair, to, cut) = cut_in_the_midst(sealed(), mode);
        for _ in 0..200 {
            pair.now = pair.now.after(Duration::from_secs(1));
            pair.server.on_timer(pair.now);
        }
        assert_eq!(pair.server.reassembly_bytes(), 0, "{mode:?}: it was forgotten");
        cut.set(false);
        pair.run_for(Duration::from_secs(5));
        assert!(pair.received == messages(1, 100_000), "{mode:?}: after a silence");
        assert!(pair.client.is_settled(to));

        // Its mailbox was closed and opened again.
        let (mut pair, to, cut) = cut_in_the_midst(sealed(), mode);
        pair.server.close_mailbox(MAILBOX);
        pair.server.open_mailbox(MAILBOX, MailboxOptions::default()).unwrap();
        cut.set(false);
        pair.run_for(Duration::from_secs(5));
        assert!(pair.received == messages(1, 100_000), "{mode:?}: after closing");
        assert!(pair.client.is_settled(to));
    }
}

#[test]
fn a_flow_that_made_room_for_another_begins_again_with_new_keys() {
    for mode in REPEATING {
        let config = Config { flows_max: 1, ..sealed() };
        let (mut pair, to, _) = cut_in_the_midst(config, mode);
        pair.network = Box::new(|_| Fate::Arrives);
        let other = Mailbox(8);
        pair.server.open_mailbox(other, MailboxOptions::default()).unwrap();
        let key = Key { address: pair.server_address, mailbox: other };
        let second = pair.client.destination(key, in_mode(mode)).unwrap();
        pair.push_all(second, messages(1, 50));
        pair.client.flush(second);
        pair.run_for(Duration::from_secs(20));
        assert!(pair.server.stats().received.evicted > 0, "{mode:?}");
        pair.received.sort();
        let mut sent = [messages(1, 100_000), messages(1, 50)].concat();
        sent.sort();
        pair.received.dedup();
        assert!(pair.received == sent, "{mode:?}: {}", pair.received.len());
        assert!(pair.client.is_settled(to) && pair.client.is_settled(second), "{mode:?}");
    }
}

/// Returns a datagram with one message that `sender` sends to a group.
fn to_group(sender: &mut Endpoint, message: &[u8], now: Time) -> BytesMut {
    let key = Key::new(SocketAddr::from(([239, 1, 2, 3], 4_000)), MAILBOX.0);
    let to = sender.destination(key, DestinationOptions::default()).unwrap();
    sender.push(to, message, || now).unwrap();
    sender.flush(to);
    BytesMut::from(&sender.poll_transmit(now).unwrap().bytes[..])
}

fn deliver(pair: &mut EndpointPair, from: SocketAddr, datagram: &BytesMut) -> usize {
    pair.server.on_datagrams(from, datagram.clone(), datagram.len(), pair.now);
    let mut delivered = 0;
    while let Some(delivery) = pair.server.poll_delivery() {
        delivered += 1;
        pair.server.popped(delivery.token, pair.now);
    }
    delivered
}

#[test]
fn what_is_sealed_for_a_group_reaches_only_those_who_joined_one() {
    let mut pair = EndpointPair::new(sealed());
    let from = pair.client_address;
    let sent: Vec<_> = (0..4).map(|at| to_group(&mut pair.client, &[at], pair.now)).collect();
    assert_eq!(deliver(&mut pair, from, &sent[0]), 0);
    assert_eq!(pair.server.stats().dropped.not_authentic, 1);
    pair.server.set_in_group(true);
    assert_eq!(deliver(&mut pair, from, &sent[1]), 1);
    pair.server.set_in_group(false);
    assert_eq!(deliver(&mut pair, from, &sent[2]), 0, "although its keys are known");
    pair.server.set_in_group(true);
    assert_eq!(deliver(&mut pair, from, &sent[3]), 1);
}

#[test]
fn a_recorded_group_datagram_is_delivered_once_from_any_address() {
    let mut pair = EndpointPair::new(sealed());
    pair.server.set_in_group(true);
    let (first, second) =
        (to_group(&mut pair.client, b"1", pair.now), to_group(&mut pair.client, b"2", pair.now));
    let forged = |port| SocketAddr::from(([10, 9, 9, 9], port));
    let delivered: usize = (1..=1_000).map(|port| deliver(&mut pair, forged(port), &first)).sum();
    assert_eq!(delivered, 1);
    let own = pair.client_address;
    assert_eq!(deliver(&mut pair, own, &second), 1, "what was not there yet");
    let stats = pair.server.stats();
    assert_eq!((stats.received.proven, stats.dropped.replayed), (1, 999));
}

#[test]
fn a_recorded_group_datagram_ends_no_session_of_its_sender() {
    let mut pair = EndpointPair::new(sealed());
    pair.server.set_in_group(true);
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(to, messages(10, 50));
    pair.run();
    let mut other = Endpoint::new(sealed(), [3; 32]);
    let recorded = to_group(&mut other, b"other", pair.now);
    let victim = pair.client_address;
    assert_eq!(deliver(&mut pair, victim, &recorded), 1);
    pair.push_all(to, messages(10, 50));
    pair.run();
    assert_eq!(pair.received.len(), 20);
    let stats = pair.server.stats().received;
    assert_eq!((stats.restarts, stats.old_session, stats.duplicates), (0, 0, 0));
}

#[test]
fn a_greeting_called_for_too_early_is_said_in_time() {
    let mut pair = EndpointPair::new(sealed());
    pair.network = Box::new(|_| Fate::Lost);
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(to, [b"hello"]);
    pair.client.flush(to);
    pair.run_for(Duration::from_micros(1));
    assert_eq!(pair.client.stats().sent.hellos, 1);
    pair.network = Box::new(|_| Fate::Arrives);
    let next = pair.client.next_deadline().unwrap();
    assert!(next > pair.now);
    pair.client.on_timer(next);
    pair.run();
    assert_eq!(pair.received, [b"hello"]);
}

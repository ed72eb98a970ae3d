//! Datagrams that are wrong: each is counted by its cause, and nothing else suffers.

use std::time::Duration;

use quelea_cmq_proto::inbox::Received;
use quelea_cmq_proto::wire::{HEADER_BYTES, Malformed, flags};
use quelea_cmq_proto::{Endpoint, Key, Mailbox, MailboxOptions};

use super::*;
use crate::pair::{MAILBOX, messages};

const MODES: [Mode; 3] = [Mode::Lossy, Mode::ReliableUnordered, Mode::ReliableOrdered];

fn with_byte(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    bytes
}

/// Returns wrong datagrams made of a right one, with what is wrong with each.
fn wrong(data: &[u8], probe: &[u8]) -> Vec<(Malformed, Vec<u8>)> {
    let body = |bytes: &[u8]| [&data[..HEADER_BYTES], bytes].concat();
    let fragment = |bytes: &[u8]| {
        reheaded(&body(bytes), |header| {
            header.flags |= flags::FRAGMENT;
            header.count = 0;
        })
    };
    let parity = |bytes: &[u8]| {
        reheaded(&body(bytes), |header| {
            header.kind = Kind::Parity;
            header.count = 0;
        })
    };
    vec![
        (Malformed::Short, Vec::new()),
        (Malformed::Short, data[..HEADER_BYTES - 1].to_vec()),
        (Malformed::Magic, with_byte(data, 0, b'G')),
        (Malformed::Version, with_byte(data, 1, 2)),
        (Malformed::Kind, with_byte(data, 2, 0)),
        (Malformed::Kind, with_byte(data, 2, 99)),
        (Malformed::Flags, with_byte(data, 3, 7)),
        (Malformed::Flags, with_byte(probe, 3, flags::FRAGMENT)),
        (Malformed::Varint, reheaded(data, |header| header.count += 1)),
        (Malformed::Varint, body(&[0xff; 10])),
        (Malformed::Messages, data[..data.len() - 1].to_vec()),
        (Malformed::Messages, body(&[0xff, 0xff, 0xff, 0x07, 0])),
        (Malformed::Fragment, fragment(&[3, 2, 9, 0, 0, 0])),
        (Malformed::Fragment, fragment(&[1, 3, 9, 0, 0])),
        (Malformed::Fragment, fragment(&[1, 0, 9, 0, 0])),
        (Malformed::Probe, probe[..probe.len() - 1].to_vec()),
        // More messages than its datagrams can have had.
        (Malformed::Probe, [&probe[..HEADER_BYTES + 16], &[0xff; 8], &[0; 8]].concat()),
        (Malformed::Parity, parity(&[0; 11])),
        (Malformed::Parity, parity(&[0; 40])),
    ]
}

#[test]
fn each_malformed_datagram_is_counted_by_its_cause_and_nothing_else_suffers() {
    for mode in MODES {
        let sent = messages(1_000, 64);
        let (mut pair, recording, to) = pair_in(mode, &sent[..500]);
        let data = recording.last(Kind::Data);
        // A question, so that there is a PROBE to spoil.
        pair.client.close_destination(to);
        pair.run();
        let to = pair.destination(in_mode(mode));
        let probe = recording.last(Kind::Probe);
        let from = pair.client_address;
        for (cause, datagram) in wrong(&data, &probe) {
            // Of a flow that goes on, and of one that nobody knows.
            let other = match datagram.len() >= HEADER_BYTES {
                true => [&datagram[..8], &[0xee; 8], &datagram[16..]].concat(),
                false => datagram.clone(),
            };
            for datagram in [datagram, other] {
                let before = pair.server.stats();
                forge(&mut pair, from, &datagram);
                let after = pair.server.stats();
                let counted = after.dropped.of(cause) - before.dropped.of(cause);
                // What is known to be a duplicate is not looked into.
                let duplicates = after.received.duplicates - before.received.duplicates;
                assert_eq!(counted + duplicates, 1, "{mode:?}, {cause:?}: {datagram:?}");
                assert_eq!(after.dropped.total() - before.dropped.total(), counted);
            }
        }
        for cause in [Malformed::Varint, Malformed::Messages, Malformed::Fragment] {
            assert!(pair.server.stats().dropped.of(cause) > 0, "{cause:?}");
        }
        pair.push_all(to, &sent[500..]);
        pair.run();
        assert!(pair.received == sent, "{mode:?}");
        assert_eq!(pair.server.stats().received.lost_messages, 0);
    }
}

#[test]
fn what_contradicts_its_flow_is_counted_by_cause() {
    type Cause = fn(&Received) -> u64;
    for mode in MODES {
        let sent = messages(1_000, 64);
        let (mut pair, recording, to) = pair_in(mode, &sent[..500]);
        let (data, from) = (recording.last(Kind::Data), pair.client_address);
        let next = |header: &mut Header| header.sequence += 1;
        let cases: [(Cause, Vec<u8>); 6] = [
            (|of| of.duplicates, data.to_vec()),
            (
                |of| of.inconsistent,
                reheaded(&data, |header| {
                    next(header);
                    header.flags ^= flags::CREDIT;
                }),
            ),
            (
                |of| of.inconsistent,
                reheaded(&data, |header| {
                    next(header);
                    header.flags = header.flags & !flags::MODE_MASK | 4;
                }),
            ),
            (
                |of| of.inconsistent,
                reheaded(&data, |header| {
                    next(header);
                    header.mailbox = Mailbox(8);
                }),
            ),
            // Its messages have come already, by their numbers.
            (|of| of.inconsistent, reheaded(&data, next)),
            (
                |of| of.unknown_mailbox,
                reheaded(&data, |header| {
                    header.session = 5;
                    header.mailbox = Mailbox(8);
                }),
            ),
        ];
        for (at, (cause, datagram)) in cases.into_iter().enumerate() {
            let before = cause(&pair.server.stats().received);
            forge(&mut pair, from, &datagram);
            assert_eq!(cause(&pair.server.stats().received) - before, 1, "{mode:?}, case {at}");
        }
        pair.push_all(to, &sent[500..]);
        pair.run();
        assert!(pair.received == sent, "{mode:?}");
        assert_eq!(pair.server.stats().received.lost_messages, 0);
    }
}

/// Returns everything that two endpoints say in a conversation with losses, large messages and an
/// end.
fn conversation() -> Vec<Datagram> {
    let mut all = Vec::new();
    for mode in MODES {
        let mut pair = EndpointPair::new(Config::default());
        let recording = Recording::of(&mut pair);
        let to = pair.destination(in_mode(mode));
        pair.push_all(to, messages(40, 100));
        pair.push_all(to, [vec![7; 5_000]]);
        pair.run();
        pair.client.close_destination(to);
        pair.run();
        all.extend(recording.all());
    }
    all
}

#[test]
fn no_piece_of_a_datagram_stops_an_endpoint() {
    let mut pair = EndpointPair::new(Config::default());
    let (client, server) = (pair.client_address, pair.server_address);
    // The recorded flow is this one: the endpoints' numbers are the same each time.
    pair.destination(in_mode(Mode::ReliableOrdered));
    for datagram in conversation() {
        let to_server = datagram.to == server;
        for end in 0..=datagram.bytes.len() {
            let bytes = BytesMut::from(&datagram.bytes[..end]);
            let (endpoint, from): (&mut Endpoint, _) =
                if to_server { (&mut pair.server, client) } else { (&mut pair.client, server) };
            endpoint.on_datagrams(from, bytes, end, pair.now);
        }
    }
    while pair.server.poll_delivery().is_some() {}
    pair.server.open_mailbox(Mailbox(8), MailboxOptions::default()).unwrap();
    let key = Key { address: server, mailbox: Mailbox(8) };
    let to = pair.client.destination(key, in_mode(Mode::ReliableOrdered)).unwrap();
    let sent = messages(1_000, 100);
    pair.push_all(to, &sent);
    pair.run();
    assert!(pair.received == sent);
}

/// Returns a datagram of the recording with some bytes changed, perhaps cut, of a session that
/// nobody has: a forger does not know the sessions.
fn noise(recorded: &[Datagram], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = random.choice(recorded).unwrap().bytes.to_vec();
    for _ in 0..random.usize(1..5) {
        let at = random.usize(..bytes.len());
        bytes[at] = random.u8(..);
    }
    bytes.truncate(random.usize(..=bytes.len()));
    if let Some(session) = bytes.get_mut(8..16) {
        session.fill(random.u8(..));
    }
    bytes
}

#[test]
fn no_noise_stops_an_endpoint_or_harms_a_flow() {
    let recorded = conversation();
    let mut random = fastrand::Rng::with_seed(4_711);
    for mode in MODES {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        let sent = messages(1_000, 99);
        for part in sent.chunks(20) {
            pair.push_all(to, part);
            for _ in 0..100 {
                let bytes = noise(&recorded, &mut random);
                let from = match random.bool() {
                    true => pair.client_address,
                    false => SocketAddr::from(([10, 0, 0, 9], random.u16(..))),
                };
                forge(&mut pair, from, &bytes);
                let bytes = BytesMut::from(&bytes[..]);
                let length = bytes.len();
                pair.client.on_datagrams(pair.server_address, bytes, length, pair.now);
            }
            pair.run_for(Duration::from_millis(5));
        }
        pair.run();
        // Without a key, some of the noise is somebody's message.
        pair.received.retain(|message| message.len() == 99);
        assert!(pair.received == sent, "{mode:?}: {}", pair.received.len());
    }
}

#[test]
fn a_mailbox_that_is_opened_late_gets_what_is_repeated() {
    let mut pair = EndpointPair::new(Config::default());
    pair.server.close_mailbox(MAILBOX);
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    let sent = messages(100, 100);
    pair.push_all(to, &sent);
    pair.run_for(Duration::from_millis(500));
    let stats = pair.server.stats().received;
    assert!(stats.unknown_mailbox > 0 && stats.refusals > 0);
    assert!(pair.received.is_empty());
    pair.server.open_mailbox(MAILBOX, MailboxOptions::default()).unwrap();
    pair.run();
    assert!(pair.received == sent);
}

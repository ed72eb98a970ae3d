//! What an endpoint does with what is pushed: batches, bounds, paths, groups, lists.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use quelea_cmq_proto::config::Wire;
use quelea_cmq_proto::error::DestinationError;
use quelea_cmq_proto::{
    Config, DestinationId, DestinationOptions, Endpoint, Event, Key, Mailbox, MailboxOptions, Mode,
    PushError, Repair, Time, Transmit, WhenFull,
};

use crate::endpoints::in_mode;
use crate::pair::{EndpointPair, Fate, MAILBOX, messages};

fn key(port: u16) -> Key {
    Key::new(SocketAddr::from(([10, 0, 0, 9], port)), 1)
}

fn endpoint(config: Config) -> Endpoint {
    Endpoint::new(config, [9; 32])
}

/// Returns the options of a destination that may send as much as it likes.
fn unbounded() -> DestinationOptions {
    DestinationOptions { credit: false, ..DestinationOptions::default() }
}

fn open(endpoint: &mut Endpoint, port: u16, options: DestinationOptions) -> DestinationId {
    endpoint.destination(key(port), options).unwrap()
}

fn at(us: u64) -> Time {
    Time::from_micros(us)
}

fn transmits(endpoint: &mut Endpoint, now: Time) -> Vec<Transmit> {
    std::iter::from_fn(|| endpoint.poll_transmit(now)).collect()
}

#[test]
fn each_batch_leaves_when_its_own_timeout_says() {
    let mut endpoint = endpoint(Config::default());
    let timeouts = [None, Some(300), Some(5_000), None, Some(1_000)];
    let ids: Vec<_> = timeouts
        .iter()
        .zip(1..)
        .map(|(timeout, port)| {
            let timeout = timeout.map(Duration::from_micros);
            open(&mut endpoint, port, DestinationOptions { timeout, ..unbounded() })
        })
        .collect();
    for (id, us) in ids.iter().zip([0, 10, 20, 400, 500]) {
        endpoint.push(*id, b"first", || at(us)).unwrap();
        endpoint.push(*id, b"second", || panic!("a batch that is open needs no clock")).unwrap();
    }
    let mut left = Vec::new();
    while let Some(due) = endpoint.next_deadline() {
        endpoint.on_timer(at(due.as_micros() - 1));
        assert!(!endpoint.has_transmit(), "nothing leaves before its time");
        endpoint.on_timer(due);
        let ports = transmits(&mut endpoint, due).iter().map(|it| it.to.port()).collect::<Vec<_>>();
        left.push((due.as_micros(), ports));
    }
    let expected = [(310, 2), (1_000, 1), (1_400, 4), (1_500, 5), (5_020, 3)];
    assert_eq!(left, expected.map(|(us, port)| (us, vec![port])));
}

#[test]
fn options_that_make_no_sense_are_refused_with_the_reason() {
    let mut endpoint = endpoint(Config { destinations_max: 2, ..Config::default() });
    let bad = [
        DestinationOptions { credit: false, ..in_mode(Mode::ReliableOrdered) },
        DestinationOptions { when_full: WhenFull::DropOldest, ..in_mode(Mode::ReliableUnordered) },
        DestinationOptions { path_bytes: 100, ..DestinationOptions::default() },
        DestinationOptions { repair: Repair::Xor { data: 0 }, ..DestinationOptions::default() },
    ];
    for options in bad {
        let refused = endpoint.destination(key(1), options.clone());
        assert!(matches!(refused, Err(DestinationError::Invalid(_))), "{options:?}");
    }
    let group = Key::new(SocketAddr::from(([239, 1, 2, 3], 9)), 1);
    let refused = endpoint.destination(group, in_mode(Mode::ReliableOrdered));
    assert!(matches!(refused, Err(DestinationError::Invalid(_))));

    let first = open(&mut endpoint, 1, in_mode(Mode::ReliableOrdered));
    let larger = DestinationOptions { path_bytes: 9_000, ..in_mode(Mode::ReliableOrdered) };
    assert_eq!(open(&mut endpoint, 1, larger), first, "the path is the driver's matter");
    let other = endpoint.destination(key(1), in_mode(Mode::Lossy));
    assert_eq!(other, Err(DestinationError::Conflict));
    open(&mut endpoint, 2, unbounded());
    let third = endpoint.destination(key(3), unbounded());
    assert_eq!(third, Err(DestinationError::TooMany { limit: 2 }));
    assert_eq!(endpoint.find(&key(1)), Some(first));
    assert_eq!(endpoint.find(&key(3)), None);
}

#[test]
fn a_message_that_can_never_be_sent_is_refused_with_the_limit() {
    let config = Config { message_bytes_max: 10_000, ..Config::default() };
    let mut endpoint = endpoint(config);
    let id = open(&mut endpoint, 1, unbounded());
    assert_eq!(endpoint.push(id, &[0; 10_000], || Time::ZERO), Ok(()));
    assert_eq!(
        endpoint.push(id, &[0; 10_001], || Time::ZERO),
        Err(PushError::TooLarge { bytes: 10_001, limit: 10_000 })
    );
}

#[test]
fn an_outbox_that_is_full_refuses_or_drops_as_its_destinations_want() {
    let config = Config { outbox_bytes_max: 1 << 20, ..Config::default() };
    for when_full in [WhenFull::Block, WhenFull::Refuse, WhenFull::DropNew, WhenFull::DropOldest] {
        let mut endpoint = endpoint(config.clone());
        let ids: Vec<_> = (1..200)
            .map(|port| open(&mut endpoint, port, DestinationOptions { when_full, ..unbounded() }))
            .collect();
        let (mut pushed, mut refused) = (0_u64, 0_u64);
        for round in 0..100 {
            for id in &ids {
                match endpoint.push(*id, &[round; 500], || Time::ZERO) {
                    Ok(()) => pushed += 1,
                    Err(PushError::WouldBlock) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let drops = matches!(when_full, WhenFull::DropNew | WhenFull::DropOldest);
        assert_eq!(refused == 0, drops, "{when_full:?}: {refused} refused");
        assert_eq!(endpoint.stats().sent.dropped_messages > 0, drops);
        endpoint.flush_all();
        let bytes: usize =
            transmits(&mut endpoint, Time::ZERO).iter().map(|it| it.bytes.len()).sum();
        assert!(bytes <= 1 << 20, "{bytes} bytes were held");
        let stats = endpoint.stats().sent;
        assert_eq!(stats.messages + stats.dropped_messages, pushed, "{when_full:?}");
        assert!(ids.iter().all(|id| endpoint.writable(*id, 1)));
    }
}

#[test]
fn a_full_outbox_lets_the_oldest_batches_leave_before_their_time() {
    let config = Config { outbox_bytes_max: 1 << 20, ..Config::default() };
    let mut endpoint = endpoint(config);
    let mut refused = None;
    for port in 1..u16::MAX {
        let id = open(&mut endpoint, port, unbounded());
        if endpoint.push(id, &[0; 1_000], || at(port.into())).is_err() {
            refused = Some(id);
            break;
        }
        assert!(!endpoint.has_transmit(), "there is room, and no time has passed");
    }
    let refused = refused.expect("a megabyte is not endless");
    let early: Vec<_> =
        transmits(&mut endpoint, at(0)).iter().map(|transmit| transmit.to.port()).collect();
    assert!(!early.is_empty());
    assert!(early.iter().zip(1..).all(|(port, nth)| *port == nth), "the oldest first: {early:?}");
    assert_eq!(endpoint.push(refused, &[0; 1_000], || at(1)), Ok(()));
}

#[test]
fn the_newest_batches_stay_where_the_oldest_are_dropped() {
    let mut endpoint = endpoint(Config::default());
    let options = DestinationOptions {
        when_full: WhenFull::DropOldest,
        credit: true,
        ..DestinationOptions::default()
    };
    let id = open(&mut endpoint, 1, options);
    // The first train leaves; the receiver never answers, so the others wait.
    for message in messages(20_000, 100) {
        endpoint.push(id, &message, || Time::ZERO).unwrap();
        transmits(&mut endpoint, Time::ZERO);
    }
    let stats = endpoint.stats().sent;
    assert!(stats.dropped_messages > 10_000, "{stats:?}");
    // After each silence as much leaves as a new flow may send.
    let mut now = Time::ZERO;
    let mut last = Vec::new();
    while let Some(due) = endpoint.next_deadline() {
        now = now.max(due);
        endpoint.on_timer(now);
        for transmit in transmits(&mut endpoint, now) {
            if transmit.bytes[2] == 1 {
                last = transmit.bytes.to_vec();
            }
        }
        if now > at(600_000_000) {
            break;
        }
    }
    let newest = (19_999_u32).to_le_bytes();
    assert!(last.windows(4).any(|part| part == newest), "the newest message has left");
}

#[test]
fn new_trains_obey_a_changed_path_and_old_ones_may_fragment() {
    let mut endpoint = endpoint(Config::default());
    let id = open(&mut endpoint, 1, DestinationOptions { path_bytes: 1_400, ..unbounded() });
    let other = open(&mut endpoint, 2, DestinationOptions { path_bytes: 1_400, ..unbounded() });
    for _ in 0..100 {
        endpoint.push(id, &[7; 100], || Time::ZERO).unwrap();
    }
    endpoint.set_path_bytes(key(1).address.ip(), 600);
    endpoint.flush_all();
    let old = transmits(&mut endpoint, Time::ZERO);
    assert!(old.iter().all(|transmit| transmit.may_fragment), "{old:?}");
    for id in [id, other] {
        for _ in 0..100 {
            endpoint.push(id, &[7; 100], || Time::ZERO).unwrap();
        }
    }
    endpoint.flush_all();
    let new = transmits(&mut endpoint, Time::ZERO);
    assert_eq!(new.len(), 2);
    for transmit in new {
        assert!(!transmit.may_fragment && transmit.segment_bytes.unwrap() <= 600);
    }
}

#[test]
fn repetitions_on_a_path_that_became_smaller_may_be_fragmented() {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.network = Box::new(|datagram| {
        if datagram.bytes.len() > 600 && !datagram.may_fragment {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    let sent = messages(200, 100);
    pair.push_all(to, &sent);
    pair.run_for(Duration::from_millis(3));
    assert!(pair.received.is_empty());
    pair.client.set_path_bytes(pair.server_address.ip(), 600);
    pair.run();
    assert!(pair.received == sent);
}

#[test]
fn a_group_is_sent_to_without_credit_and_answers_nothing() {
    let mut pair = EndpointPair::new(Config::default());
    let group = Key::new(SocketAddr::from(([239, 1, 2, 3], 2_000)), MAILBOX.0);
    pair.server_address = group.address;
    let to = pair.client.destination(group, DestinationOptions::default()).unwrap();
    let sent = messages(20_000, 64);
    pair.push_all(to, &sent);
    pair.client.close_destination(to);
    pair.run();
    assert!(pair.sent_by_server <= 1, "a challenge at most: {}", pair.sent_by_server);
    assert!(pair.received == sent);
    assert!(matches!(pair.events.last(), Some(Event::Ended { .. })), "{:?}", pair.events);
}

#[test]
fn a_mailbox_that_opens_later_gets_what_reliable_senders_kept() {
    let mut pair = EndpointPair::new(Config::default());
    let key = Key::new(pair.server_address, 99);
    let to = pair.client.destination(key, in_mode(Mode::ReliableOrdered)).unwrap();
    let sent = messages(1_000, 100);
    pair.push_all(to, &sent);
    pair.run_for(Duration::from_secs(3));
    assert!(pair.client.stats().sent.refusals > 0);
    assert!(!pair.client.is_settled(to));
    pair.server.open_mailbox(Mailbox(99), MailboxOptions::default()).unwrap();
    pair.run();
    assert!(pair.received == sent);
    assert!(pair.client.is_settled(to));
}

#[test]
fn a_receiver_that_is_gone_is_given_up_and_reported() {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.network = Box::new(|_| Fate::Lost);
    pair.push_all(to, messages(100, 100));
    pair.run();
    assert_eq!(
        pair.client_events,
        [Event::Abandoned { to: Key::new(pair.server_address, 7), messages: 100 }]
    );
    assert!(pair.now > at(60_000_000) && pair.now < at(90_000_000), "{:?}", pair.now);
    assert_eq!(pair.push(to, b"more"), Err(PushError::Closed));
    assert!(pair.client.is_settled(to) && pair.client.all_settled());
    // Closed, it may be opened again.
    pair.client.close_destination(to);
    pair.run();
    pair.network = Box::new(|_| Fate::Arrives);
    let again = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(again, [b"again"]);
    pair.run();
    assert_eq!(pair.received, [b"again"]);
}

#[test]
fn the_original_is_spoken_as_it_was() {
    for wire in [Wire::ClassicString, Wire::ClassicBytes] {
        let config = Config { wire, ..Config::classic() };
        let mut pair = EndpointPair::new(config);
        pair.server.open_mailbox(Mailbox(0), MailboxOptions::default()).unwrap();
        let now = pair.now;
        let key = Key::new(pair.server_address, 5);
        let to = pair.client.destination(key, DestinationOptions::default()).unwrap();
        let sent: Vec<Vec<u8>> = (0..100).map(|nth| format!("{nth:04}").into_bytes()).collect();
        pair.push_all(to, &sent);
        assert_eq!(pair.client.stats().sent.trains, 0, "the network has not worked yet");
        let due = pair.client.next_deadline();
        pair.run();
        // 41 messages of four bytes are 500 bytes; the next would make 512, which is not below.
        let stats = pair.client.stats().sent;
        assert_eq!((stats.trains, stats.bytes), (3, 2 * 500 + 8 + 18 * 12), "{wire:?}");
        assert_eq!(due, Some(now.plus_us(200_000)), "the last list waits for its age");
        assert!(pair.received == sent);
        assert_eq!(pair.sent_by_server, 0);
        // The longest fills a datagram; the original's receiver would end by a longer one.
        pair.push(to, &[b'x'; 496]).unwrap();
        let refused = pair.push(to, &[b'x'; 497]);
        assert_eq!(refused, Err(PushError::TooLarge { bytes: 497, limit: 496 }));
        let before = pair.client.stats().sent.bytes;
        pair.run();
        assert_eq!(pair.client.stats().sent.bytes - before, 512);
        let text = pair.push(to, &[0xFF, 0xFE]);
        assert_eq!(text == Err(PushError::NotText), wire == Wire::ClassicString);
        // What killed the original's receiver is counted.
        let (from, now) = (pair.client_address, pair.now);
        pair.server.on_datagrams(from, bytes::BytesMut::from(&b"\x00\x01garbage"[..]), 9, now);
        assert_eq!(pair.server.stats().dropped.total(), 1);
    }
}

#[test]
fn no_datagram_can_do_more_than_be_counted() {
    let mut rng = fastrand::Rng::with_seed(11);
    for config in [Config::default(), Config::classic()] {
        let mut pair = EndpointPair::new(config);
        pair.server.open_other_mailboxes(MailboxOptions::default()).unwrap();
        let to = pair.destination(DestinationOptions::default());
        pair.push_all(to, messages(100, 50));
        pair.run();
        for len in 0..3_000 {
            let mut bytes: Vec<u8> = (0..len % 200).map(|_| rng.u8(..)).collect();
            if let [magic, version, kind, ..] = &mut bytes[..] {
                (*magic, *version, *kind) = (0xC3, 1, 1 + *kind % 7);
            }
            let (from, now) = (pair.client_address, pair.now);
            pair.server.on_datagrams(
                from,
                bytes::BytesMut::from(&bytes[..]),
                rng.usize(..100),
                now,
            );
            let from = pair.server_address;
            pair.client.on_datagrams(from, bytes::BytesMut::from(&bytes[..]), bytes.len(), now);
            if len % 100 == 0 {
                pair.run_for(Duration::from_millis(1));
            }
        }
        assert!(pair.server.stats().dropped.total() > 0);
        let before = pair.received.len();
        pair.push_all(to, [b"still here"]);
        pair.run_for(Duration::from_secs(5));
        assert!(pair.received.len() > before, "it goes on");
    }
}

fn is_closed(pair: &EndpointPair, id: DestinationId) -> bool {
    pair.client.destination_stats(id).is_none()
}

/// What an application does with three destinations.
#[derive(Clone, Debug)]
enum Step {
    Push(usize, usize),
    Flush(usize),
    Wait(u64),
    Close(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0..3usize, 0..3_000usize).prop_map(|(to, len)| Step::Push(to, len)),
        2 => (0..3usize).prop_map(Step::Flush),
        4 => (0..2_000u64).prop_map(Step::Wait),
        1 => (0..3usize).prop_map(Step::Close),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done in whatever order: each message arrives once and in order, no timer fires in
    /// vain for ever, and at the end nothing is left.
    #[test]
    fn every_message_of_every_destination_arrives_in_order(
        steps in steps(),
        modes in prop::collection::vec(
            prop_oneof![
                Just(Mode::Lossy),
                Just(Mode::ReliableUnordered),
                Just(Mode::ReliableOrdered),
            ],
            3,
        ),
        lossy_network in any::<bool>(),
        sealed in any::<bool>(),
    ) {
        let key = quelea_cmq_proto::config::PreSharedKey([4; 32]);
        let config = Config { pre_shared_key: sealed.then_some(key), ..Config::default() };
        let mut pair = EndpointPair::new(config);
        pair.server.open_other_mailboxes(MailboxOptions::default()).unwrap();
        let modes: Vec<Mode> = modes
            .into_iter()
            .map(|mode| if lossy_network { Mode::ReliableOrdered } else { mode })
            .collect();
        if lossy_network {
            let mut count = 0;
            pair.network = Box::new(move |_| {
                count += 1;
                if count % 4 == 0 { Fate::Lost } else { Fate::Arrives }
            });
        }
        let open = |pair: &mut EndpointPair, nth: usize| {
            let key = Key::new(pair.server_address, 100 + nth as u64);
            pair.client.destination(key, in_mode(modes[nth]))
        };
        let mut ids: Vec<_> = (0..3).map(|nth| open(&mut pair, nth).unwrap()).collect();
        // A destination that was closed and made again is another flow, with an order of its own.
        let mut pushed: Vec<(Mode, Vec<Vec<u8>>)> =
            modes.iter().map(|mode| (*mode, Vec::new())).collect();
        let mut flows = [0_u8, 1, 2];
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(to, len) => {
                    let flow = flows[to];
                    let mut message = vec![flow; len + 5];
                    message[1..5].copy_from_slice(&(number as u32).to_le_bytes());
                    match pair.push(ids[to], &message) {
                        Ok(()) => pushed[usize::from(flow)].1.push(message),
                        Err(PushError::Closed) => {
                            ids[to] = open(&mut pair, to).unwrap();
                            flows[to] = pushed.len() as u8;
                            pushed.push((modes[to], Vec::new()));
                        }
                        Err(refused) => prop_assert_eq!(refused, PushError::WouldBlock),
                    }
                }
                Step::Flush(to) => pair.client.flush(ids[to]),
                Step::Wait(us) => pair.run_for(Duration::from_micros(us)),
                Step::Close(to) => pair.client.close_destination(ids[to]),
            }
        }
        pair.run();
        prop_assert!(pair.client.all_settled());
        prop_assert_eq!(pair.client.next_deadline(), None);
        let sent = pair.client.stats().sent;
        prop_assert_eq!(pair.client.outbox_bytes(), 0);
        prop_assert_eq!(sent.destinations, 3 - ids.iter().filter(|id| is_closed(&pair, **id)).count() as u64);
        for (flow, (mode, pushed)) in pushed.iter().enumerate() {
            let mut got: Vec<_> =
                pair.received.iter().filter(|message| message[0] == flow as u8).cloned().collect();
            if !mode.is_ordered() {
                got.sort_by_key(|message| u32::from_le_bytes([message[1], message[2], message[3], message[4]]));
            }
            prop_assert!(&got == pushed, "{mode:?}: {} of {}", got.len(), pushed.len());
        }
    }
}

#[test]
fn a_destination_tells_what_is_known_of_it() {
    let mut pair = EndpointPair::new(Config::default());
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(to, messages(10, 100));
    let before = pair.client.destination_stats(to).unwrap();
    assert!(before.waiting_bytes > 1_000 && before.messages == 0, "{before:?}");
    pair.run();
    let after = pair.client.destination_stats(to).unwrap();
    assert_eq!((after.messages, after.datagrams), (10, 1));
    assert_eq!((after.waiting_bytes, after.kept_bytes, after.lost_messages), (0, 0, 0));
    let round_trip = after.round_trip.unwrap();
    assert!((100..5_000).contains(&round_trip.as_micros()), "{round_trip:?}");
}

#[test]
fn a_key_is_free_as_soon_as_its_destination_is_closed() {
    let mut pair = EndpointPair::new(Config::default());
    let first = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(first, [b"first"]);
    pair.client.close_destination(first);
    let second = pair.destination(in_mode(Mode::Lossy));
    assert_ne!(first, second);
    pair.push_all(second, [b"second"]);
    pair.run();
    pair.received.sort();
    assert_eq!(pair.received, [&b"first"[..], b"second"]);
    assert_eq!(pair.client.stats().sent.destinations, 1);
    assert_eq!(pair.client.find(&Key::new(pair.server_address, 7)), Some(second));
}

#[test]
fn a_receiver_that_is_gone_amid_new_keys_wakes_nobody_in_vain() {
    let key = quelea_cmq_proto::config::PreSharedKey([4; 32]);
    let config = Config { pre_shared_key: Some(key), ..Config::default() };
    let mut pair = EndpointPair::new(config.clone());
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(to, messages(100, 100));
    pair.run();
    // It is started anew, says so, and is gone.
    pair.restart_server(config);
    pair.push_all(to, [b"lost"]);
    let mut challenges = 0;
    pair.network = Box::new(move |datagram| {
        challenges += u64::from(datagram.kind() == Some(quelea_cmq_proto::wire::Kind::Challenge));
        if challenges > 1 { Fate::Lost } else { Fate::Arrives }
    });
    pair.run();
    assert!(
        matches!(pair.client_events[..], [Event::Abandoned { messages: 1, .. }]),
        "{:?}",
        pair.client_events
    );
    assert_eq!(pair.push(to, b"more"), Err(PushError::Closed));
    assert!(pair.client.all_settled());
}

#[test]
fn a_destination_that_is_refused_goes_when_it_is_closed() {
    let cases =
        [(Mode::Lossy, false), (Mode::ReliableOrdered, true), (Mode::ReliableOrdered, false)];
    for (mode, arrives) in cases {
        let mut pair = EndpointPair::new(Config::default());
        let to = pair.destination(in_mode(mode));
        if !arrives {
            pair.server.close_mailbox(MAILBOX);
        }
        pair.push_all(to, [b"hello"]);
        pair.client.flush(to);
        pair.run_for(Duration::from_secs(200));
        assert_eq!(pair.client.is_settled(to), arrives || mode == Mode::Lossy, "it keeps trying");
        if arrives {
            pair.server.close_mailbox(MAILBOX);
        }
        pair.client.close_destination(to);
        pair.run_for(Duration::from_secs(70));
        assert!(pair.client.all_settled(), "{mode:?}, {arrives}");
        assert_eq!(pair.client.stats().sent.destinations, 0, "{mode:?}, {arrives}");
        assert_eq!(pair.client.next_deadline(), None, "{mode:?}, {arrives}");
        let abandoned = matches!(pair.client_events[..], [Event::Abandoned { messages: 1, .. }]);
        assert_eq!(abandoned, mode.is_reliable() && !arrives, "{:?}", pair.client_events);
    }
}

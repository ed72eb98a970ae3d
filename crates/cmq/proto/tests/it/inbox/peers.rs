//! What an endpoint says of each of its peers.

use std::time::Duration;

use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::{
    DestinationId, Endpoint, Key, Mailbox, MailboxOptions, Peer, PeerCounts, Repair,
};

use super::*;
use crate::endpoints::ALL_MODES;
use crate::pair::{MAILBOX, messages};

/// Returns a network in which `fate` befalls one datagram of data, counted from zero.
fn to_the(nth: u64, fate: Fate) -> Box<dyn FnMut(&Datagram) -> Fate> {
    let mut seen = 0;
    Box::new(move |datagram| {
        let data = datagram.kind() == Some(Kind::Data);
        seen += u64::from(data);
        if data && seen == nth + 1 { fate } else { Fate::Arrives }
    })
}

/// Returns what the server knows of the client.
fn known(pair: &EndpointPair) -> Peer {
    pair.server.peer(pair.client_address, MAILBOX).expect("it has sent")
}

/// Each message in a datagram of its own.
fn push_apart(pair: &mut EndpointPair, to: DestinationId, count: usize) {
    for message in messages(count, 40) {
        pair.push_all(to, [message]);
        pair.client.flush(to);
        pair.run_for(Duration::from_micros(10));
    }
    pair.run();
}

/// Pushes twenty messages in twenty datagrams, to one of which something happens.
fn story(mode: Mode, network: Box<dyn FnMut(&Datagram) -> Fate>) -> (EndpointPair, PeerCounts) {
    let mut pair = EndpointPair::new(Config::default());
    pair.network = network;
    let to = pair.destination(in_mode(mode));
    push_apart(&mut pair, to, 20);
    let counts = known(&pair).counts;
    assert_eq!(counts.messages, pair.received.len() as u64, "{mode:?}");
    let received = pair.server.stats().received;
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server), "{mode:?}");
    assert_eq!(counts.datagrams, received.datagrams, "{mode:?}");
    (pair, counts)
}

/// Returns the peers of all pages.
fn all(endpoint: &Endpoint) -> Vec<Peer> {
    let mut peers = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let page = endpoint.peers(from);
        peers.extend(page.peers);
        next = page.next;
    }
    peers
}

/// Returns what was counted of all peers, those included that are forgotten.
fn sums(endpoint: &Endpoint) -> PeerCounts {
    let mut sum = endpoint.forgotten_peers();
    for peer in all(endpoint) {
        sum += peer.counts;
    }
    sum
}

/// Returns what the endpoint has counted itself.
fn of_endpoint(endpoint: &Endpoint) -> PeerCounts {
    let received = endpoint.stats().received;
    PeerCounts {
        datagrams: received.datagrams,
        messages: received.messages,
        lost_datagrams: received.lost_datagrams,
        lost_messages: received.lost_messages,
        mailbox_full_messages: received.mailbox_full_messages,
        duplicates: received.duplicates,
        reordered: received.reordered,
        late: received.late,
        repaired: received.repaired,
        restarts: received.restarts,
    }
}

#[test]
fn a_peer_that_loses_nothing_has_nothing_counted_against_it() {
    for mode in ALL_MODES {
        let (pair, counts) = story(mode, Box::new(|_| Fate::Arrives));
        let expected = PeerCounts { datagrams: 20, messages: 20, ..PeerCounts::default() };
        assert_eq!(counts, expected, "{mode:?}");
        let peer = known(&pair);
        assert!(peer.proven, "{mode:?}");
        assert_eq!(peer.mode.is_reliable(), mode.is_reliable());
        assert_eq!((peer.address, peer.mailbox), (pair.client_address, MAILBOX));
        assert_eq!(all(&pair.server), [peer], "{mode:?}");
        assert_eq!(all(&pair.client), [], "the server has sent nothing");
    }
}

#[test]
fn losses_are_counted_of_the_peer_where_nothing_is_repeated() {
    for mode in [Mode::Lossy, Mode::LatestOnly] {
        let (_, counts) = story(mode, to_the(5, Fate::Lost));
        let lost = (counts.datagrams, counts.messages, counts.lost_datagrams, counts.lost_messages);
        assert_eq!(lost, (19, 19, 1, 1), "{mode:?}");
    }
    let (_, counts) = story(Mode::ReliableUnordered, to_the(5, Fate::Lost));
    assert_eq!((counts.messages, counts.lost_messages), (20, 0));
    assert_eq!(counts.reordered, 1, "the repetition");
}

#[test]
fn duplicates_are_counted_of_the_peer_in_every_mode() {
    for mode in ALL_MODES {
        let (_, counts) = story(mode, to_the(5, Fate::Twice));
        assert_eq!((counts.messages, counts.duplicates), (20, 1), "{mode:?}");
    }
}

#[test]
fn with_a_key_replays_are_counted_of_the_peer_as_duplicates() {
    let key = Some(PreSharedKey([7; 32]));
    let mut pair = EndpointPair::new(Config { pre_shared_key: key, ..Config::default() });
    pair.network = to_the(5, Fate::Twice);
    let to = pair.destination(in_mode(Mode::Lossy));
    push_apart(&mut pair, to, 20);
    assert_eq!(known(&pair).counts.duplicates, 1);
    assert_eq!(pair.server.stats().dropped.replayed, 1);
}

#[test]
fn what_overtakes_is_counted_of_the_peer() {
    let (pair, counts) = story(Mode::Lossy, to_the(5, Fate::Late(1_000)));
    assert_eq!((counts.messages, counts.reordered, counts.lost_messages), (20, 1, 0));
    assert_ne!(pair.received, messages(20, 40), "it was overtaken");
}

#[test]
fn what_comes_too_late_counts_as_lost_and_as_late() {
    let (_, counts) = story(Mode::Lossy, to_the(5, Fate::Late(500_000)));
    assert_eq!((counts.messages, counts.lost_messages, counts.late), (19, 1, 1));
    let (_, counts) = story(Mode::LatestOnly, to_the(5, Fate::Late(1_000)));
    assert_eq!((counts.messages, counts.late), (19, 1), "newer ones were delivered");
}

#[test]
fn what_parity_brings_back_is_counted_of_the_peer() {
    let mut pair = EndpointPair::new(Config::default());
    pair.network = to_the(2, Fate::Lost);
    let repair = Repair::Xor { data: 4 };
    let to = pair.destination(DestinationOptions { repair, ..in_mode(Mode::Lossy) });
    pair.push_all(to, messages(10, 1_000));
    pair.client.flush(to);
    pair.run();
    let counts = known(&pair).counts;
    assert_eq!((counts.messages, counts.repaired, counts.lost_messages), (10, 1, 0));
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
}

#[test]
fn what_its_mailbox_has_no_room_for_is_counted_of_the_peer() {
    let mut pair = EndpointPair::new(Config::default());
    pair.server.close_mailbox(MAILBOX);
    let options = MailboxOptions { bytes_max: 5_000, ..MailboxOptions::default() };
    pair.server.open_mailbox(MAILBOX, options).unwrap();
    pair.pops = false;
    let to = pair.destination(DestinationOptions { credit: false, ..in_mode(Mode::Lossy) });
    push_apart(&mut pair, to, 100);
    let counts = known(&pair).counts;
    assert!(counts.mailbox_full_messages > 0, "{counts:?}");
    assert_eq!(counts.messages + counts.mailbox_full_messages, 100, "{counts:?}");
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
}

#[test]
fn a_peer_that_is_started_anew_keeps_what_was_counted_of_it() {
    for mode in ALL_MODES {
        let mut pair = EndpointPair::new(Config::default());
        pair.network = to_the(5, Fate::Twice);
        let mut sessions = Vec::new();
        for life in 0..3 {
            pair.client = Endpoint::new(Config::default(), [10 + life; 32]);
            let to = pair.destination(in_mode(mode));
            push_apart(&mut pair, to, 20);
            let peer = known(&pair);
            assert!(!sessions.contains(&peer.session), "{mode:?}");
            sessions.push(peer.session);
            let lives = u64::from(life) + 1;
            let expected = PeerCounts {
                datagrams: 20 * lives + 1,
                messages: 20 * lives,
                duplicates: 1,
                restarts: u64::from(life),
                ..PeerCounts::default()
            };
            assert_eq!(peer.counts, expected, "{mode:?}");
            assert_eq!(all(&pair.server), [peer], "{mode:?}: the old session is gone");
        }
        assert_eq!(sums(&pair.server), of_endpoint(&pair.server), "{mode:?}");
    }
}

#[test]
fn what_a_restarted_peer_left_missing_is_counted() {
    let mut pair = EndpointPair::new(Config::default());
    pair.network = to_the(5, Fate::Lost);
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    for message in messages(6, 40) {
        pair.push_all(to, [message]);
        pair.client.flush(to);
        pair.run_for(Duration::from_micros(200));
    }
    pair.push_all(to, [b"behind it"]);
    pair.client.flush(to);
    pair.run_for(Duration::from_micros(60));
    pair.client = Endpoint::new(Config::default(), [9; 32]);
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    push_apart(&mut pair, to, 3);
    let counts = known(&pair).counts;
    assert_eq!((counts.restarts, counts.messages), (1, 8));
    assert_eq!(counts.lost_messages, 2, "the one that was missing, and the one behind it");
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
}

#[test]
fn each_mailbox_of_a_peer_is_counted_by_itself() {
    let mut pair = EndpointPair::new(Config::default());
    let other = Mailbox(8);
    pair.server.open_mailbox(other, MailboxOptions::default()).unwrap();
    let key = Key { address: pair.server_address, mailbox: other };
    let second = pair.client.destination(key, in_mode(Mode::Lossy)).unwrap();
    let first = pair.destination(in_mode(Mode::ReliableOrdered));
    push_apart(&mut pair, first, 7);
    let before = known(&pair);
    push_apart(&mut pair, second, 3);
    assert_eq!(known(&pair), before);
    let other = pair.server.peer(pair.client_address, other).unwrap();
    assert_eq!((before.counts.messages, other.counts.messages), (7, 3));
    assert_eq!((before.mode, other.mode), (Mode::ReliableOrdered, Mode::Lossy));
    assert!(other.last_heard > before.last_heard);
    assert_eq!(before.session, other.session);
    assert_eq!(all(&pair.server).len(), 2);
}

#[test]
fn what_was_counted_of_peers_that_are_forgotten_is_not_lost() {
    let mut pair = EndpointPair::new(Config { flows_max: 2, ..Config::default() });
    for number in 8..20 {
        let mailbox = Mailbox(number);
        pair.server.open_mailbox(mailbox, MailboxOptions::default()).unwrap();
        let key = Key { address: pair.server_address, mailbox };
        let to = pair.client.destination(key, in_mode(Mode::Lossy)).unwrap();
        push_apart(&mut pair, to, 3);
    }
    assert_eq!(all(&pair.server).len(), 2);
    assert_eq!(pair.server.forgotten_peers().messages, 3 * 10);
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
    pair.server.close_mailbox(Mailbox(19));
    assert_eq!(pair.server.peer(pair.client_address, Mailbox(19)), None);
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
}

#[test]
fn pages_have_each_peer_once_and_are_bounded() {
    let (mut pair, recording, _) = pair_in(Mode::Lossy, &messages(1, 40));
    let first = recording.all()[0].bytes.clone();
    // Their addresses are not proven, and only the last thousand of them are known.
    for session in 0..3_000u64 {
        let forged = reheaded(&first, |header| header.session = session);
        forge(&mut pair, "10.0.0.9:9".parse().unwrap(), &forged);
    }
    let most = quelea_cmq_proto::limits::PEERS_PAGE as usize;
    let page = pair.server.peers(0);
    assert!(page.next.is_some() && page.peers.len() <= most);
    let peers = all(&pair.server);
    let sessions: std::collections::HashSet<u64> = peers.iter().map(|peer| peer.session).collect();
    assert_eq!(sessions.len(), peers.len());
    assert_eq!(peers.len(), 1 + quelea_cmq_proto::limits::FLOWS_UNPROVEN_MAX);
    assert_eq!(peers.iter().filter(|peer| peer.proven).count(), 1);
    let newest = pair.server.peer("10.0.0.9:9".parse().unwrap(), MAILBOX).unwrap();
    assert_eq!((newest.session, newest.proven), (2_999, false));
    assert_eq!(pair.server.peers(u32::MAX).peers, []);
    assert_eq!(sums(&pair.server), of_endpoint(&pair.server));
}

//! What an endpoint reports of each peer, and a handle of its destination.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use quelea_cmq::proto::wire::{Header, Kind};
use quelea_cmq::{Config, DestinationOptions, Endpoint, Key, Mode, Peer};

use crate::ends::*;

#[test]
fn each_peer_is_listed_with_its_counts() {
    let (a, b, here) = (endpoint(), endpoint(), endpoint());
    let queue = queue(&here, 7);
    assert_eq!(here.peers(), []);
    for (from, mode, count) in [(&a, Mode::Lossy, 3), (&b, Mode::ReliableOrdered, 5)] {
        let dest = dest(from, &here, 7, mode);
        for _ in 0..count {
            dest.push(b"hello").unwrap();
        }
        dest.flush();
        for _ in 0..count {
            queue.pop_timeout(LONG).unwrap();
        }
    }
    let peers = here.peers();
    assert_eq!(peers.len(), 2);
    let listed: Vec<_> = peers.iter().map(|peer| (peer.address, peer.counts.messages)).collect();
    assert_eq!(
        listed,
        [(b.local_addr(), 5), (a.local_addr(), 3)],
        "the one heard of last is first"
    );
    assert!(peers[0].mode.is_reliable() && !peers[1].mode.is_reliable());
    assert!(peers[0].silent_for <= peers[1].silent_for);
    let one = here.peer(a.local_addr(), 7).unwrap();
    assert_eq!((one.counts, one.session), (peers[1].counts, peers[1].session));
    assert_eq!(here.peer(a.local_addr(), 8), None, "it sends to another mailbox");
    assert_eq!(a.peers(), [], "nobody sends there");
}

/// Takes the next datagram of a kind that comes to a socket.
fn take(socket: &UdpSocket, kind: Kind) -> Vec<u8> {
    let mut buffer = [0; 2_000];
    loop {
        let (bytes, _) = socket.recv_from(&mut buffer).unwrap();
        let datagram = &buffer[..bytes];
        let header = Header::parse(datagram).unwrap();
        if header.kind == kind {
            return datagram.to_vec();
        }
    }
}

#[test]
fn losses_duplicates_reordering_and_restarts_of_a_lossy_peer_are_told() {
    // Between the sender and the receiver, so that this can drop, double and swap what it relays.
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.set_read_timeout(Some(LONG)).unwrap();
    let here = endpoint();
    let queue = queue(&here, 7);
    let address = relay.local_addr().unwrap();
    for life in 0..2 {
        let sender = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let options = DestinationOptions { credit: false, ..in_mode(Mode::Lossy) };
        let dest = sender.dest(Key::new(address, 7), options).unwrap();
        let mut datagrams = Vec::new();
        for _ in 0..6 {
            dest.push(b"hello").unwrap();
            dest.flush();
            datagrams.push(take(&relay, Kind::Data));
        }
        // The third never comes, the second comes twice, the fifth after the sixth.
        for at in [0, 1, 1, 3, 5, 4] {
            relay.send_to(&datagrams[at], here.local_addr()).unwrap();
        }
        for _ in 0..5 {
            queue.pop_timeout(LONG).unwrap();
        }
        if life == 0 {
            // It counts as lost when it has had time to come late, and its sender has shown that it is one.
            let challenge = take(&relay, Kind::Challenge);
            relay.send_to(&challenge, sender.local_addr()).unwrap();
            let hello = take(&relay, Kind::Hello);
            relay.send_to(&hello, here.local_addr()).unwrap();
            let event = here.next_event(LONG);
            assert!(matches!(event, Some(quelea_cmq::Event::Lost { messages: 1, .. })));
        }
    }
    let peers = here.peers();
    assert_eq!(peers.len(), 2, "a session that proves nothing ends none");
    for peer in peers {
        assert_eq!((peer.address, peer.mailbox.0), (address, 7));
        let counts = peer.counts;
        assert_eq!((counts.datagrams, counts.messages), (6, 5), "{counts:?}");
        assert_eq!((counts.duplicates, counts.reordered), (1, 1), "{counts:?}");
    }
}

/// Waits for the sender at an address until it has proven that in another session than the last.
fn proven(here: &Endpoint, address: SocketAddr, last: Option<u64>) -> Peer {
    for _ in 0..LONG.as_millis() {
        if let Some(peer) = here.peer(address, 7)
            && peer.proven
            && Some(peer.session) != last
        {
            return peer;
        }
        // Nothing but the waiting is wanted of it.
        let _ = here.next_event(Duration::from_millis(1));
    }
    panic!("{address} is not proven")
}

#[test]
fn a_peer_restarted_at_its_address_is_listed_with_its_restarts() {
    let here = endpoint();
    let queue = queue(&here, 7);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut sessions = Vec::new();
    for life in 0..3u64 {
        let sender = Endpoint::from_socket(socket.try_clone().unwrap(), Config::default()).unwrap();
        let dest = dest(&sender, &here, 7, Mode::ReliableOrdered);
        for _ in 0..2 {
            dest.push(b"hello").unwrap();
        }
        dest.flush();
        for _ in 0..2 {
            queue.pop_timeout(LONG).unwrap();
        }
        assert!(dest.wait_acknowledged(LONG).is_acknowledged());
        let peer = proven(&here, address, sessions.last().copied());
        sessions.push(peer.session);
        assert_eq!((peer.counts.messages, peer.counts.restarts), (2 * (life + 1), life));
        sender.close(LONG).unwrap();
    }
    assert_eq!(here.peers().len(), 1);
}

#[test]
fn a_destination_tells_what_left_and_what_came() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 7);
    let dest = dest(&a, &b, 7, Mode::ReliableOrdered);
    assert_eq!(dest.stats().unwrap().messages, 0);
    for _ in 0..10 {
        dest.push(b"hello").unwrap();
    }
    dest.flush();
    for _ in 0..10 {
        queue.pop_timeout(LONG).unwrap();
    }
    assert!(dest.wait_acknowledged(LONG).is_acknowledged());
    let stats = dest.stats().unwrap();
    assert_eq!((stats.messages, stats.lost_messages), (10, 0));
    // One, unless this thread was kept from its processor for longer than a batch waits.
    assert!((1..=10).contains(&stats.datagrams), "{stats:?}");
    assert_eq!((stats.waiting_bytes, stats.kept_bytes, stats.under_way_bytes), (0, 0, 0));
    assert!(!stats.is_dead);
}

#[test]
fn a_destination_tells_what_is_under_way_and_repeated_while_nobody_answers() {
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let a = endpoint();
    let options = in_mode(Mode::ReliableOrdered);
    let dest = a.dest(Key::new(deaf.local_addr().unwrap(), 7), options).unwrap();
    dest.push(b"hello").unwrap();
    assert!(!dest.wait_acknowledged(Duration::from_millis(1)).is_acknowledged());
    deaf.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(take(&deaf, Kind::Data), take(&deaf, Kind::Data), "it was repeated");
    let stats = dest.stats().unwrap();
    assert_eq!((stats.messages, stats.datagrams), (1, 1));
    assert!(stats.repeated >= 1, "{stats:?}");
    assert!(stats.kept_bytes > 0 && stats.under_way_bytes > 0, "{stats:?}");
    assert_eq!(stats.round_trip, None);
}

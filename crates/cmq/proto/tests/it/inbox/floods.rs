//! More than one is due: forged flows, and what others suffer from them.

use quelea_cmq_proto::limits::FLOWS_UNPROVEN_MAX;

use super::*;
use crate::pair::messages;

/// Returns a datagram with one message, of a session that does not exist.
fn forged(like: &[u8], session: u64, sequence: u64) -> Vec<u8> {
    reheaded(like, |header| {
        header.session = session;
        header.sequence = sequence;
    })
}

#[test]
fn a_flood_of_forged_flows_does_not_evict_proven_ones() {
    for mode in [Mode::Lossy, Mode::ReliableOrdered] {
        let sent = messages(2_000, 100);
        let (mut pair, recording, to) = pair_in(mode, &sent[..1_000]);
        let like = recording.last(Kind::Data);
        for session in 0..5_000 {
            let from = SocketAddr::from(([10, 9, (session >> 8) as u8, session as u8], 9));
            forge(&mut pair, from, &forged(&like, 1_000_000 + session, 3));
        }
        while pair.server.poll_delivery().is_some() {}
        let stats = pair.server.stats().received;
        assert!(stats.evicted_unproven >= 5_000 - FLOWS_UNPROVEN_MAX as u64);
        assert_eq!(stats.evicted, 0);
        pair.push_all(to, &sent[1_000..]);
        pair.run();
        assert!(pair.received == sent, "{mode:?}");
        let stats = pair.server.stats().received;
        assert_eq!((stats.restarts, stats.duplicates), (0, 0), "the flow is still known");
    }
}

#[test]
fn an_address_that_proves_nothing_gets_no_more_than_it_sent() {
    let (mut pair, recording, _) = pair_in(Mode::ReliableOrdered, &messages(100, 100));
    let data = recording.last(Kind::Data);
    let victim = SocketAddr::from(([10, 7, 7, 7], 7));
    let (mut came, mut went) = (0, 0);
    for round in 0..5_000u64 {
        let bytes = match round % 3 {
            // A new flow each time, the same flow, and a mailbox that is not open.
            0 => forged(&data, round, round % 100),
            1 => forged(&data, 77, round),
            _ => reheaded(&data, |header| header.mailbox.0 += 1),
        };
        came += bytes.len();
        forge(&mut pair, victim, &bytes);
        pair.now = pair.now.plus_us(500);
        pair.server.on_timer(pair.now);
        while let Some(transmit) = pair.server.poll_transmit(pair.now) {
            went += if transmit.to == victim { transmit.bytes.len() } else { 0 };
            assert!(went <= came, "{went} of {came}");
        }
        while pair.server.poll_delivery().is_some() {}
    }
    assert!(went > 0);
}

#[test]
fn a_second_session_must_prove_itself_before_it_ends_the_first() {
    let sent = messages(200, 100);
    let (mut pair, recording, to) = pair_in(Mode::ReliableOrdered, &sent[..100]);
    let (like, from) = (recording.last(Kind::Data), pair.client_address);
    for session in 0..10 {
        forge(&mut pair, from, &forged(&like, session, 1));
    }
    pair.push_all(to, &sent[100..]);
    pair.run();
    pair.received.dedup();
    assert!(pair.received == sent);
    assert_eq!(pair.server.stats().received.restarts, 0);
    assert!(pair.events.is_empty(), "{:?}", pair.events);
}

//! PING, PONG and who is given up when.

use bytes::Bytes;
use quelea_elastic_zmtp::{Error, Heartbeat, Security, Settings, SocketType, ZmtpTime};

use crate::pair::{ConnectionPair, Seen, mechanisms, settings, take};

fn beating(heartbeat: Heartbeat, a: Security, b: Security) -> ConnectionPair {
    let ours = Settings { heartbeat, ..settings(SocketType::Xsub) };
    let mut pair = ConnectionPair::of(ours, a, settings(SocketType::Pub), b);
    pair.run();
    pair
}

const BEAT: Heartbeat = Heartbeat { interval_ms: 1_000, timeout_ms: 2_500, ttl_ms: 3_000 };

#[test]
fn an_idle_peer_is_asked_and_answers() {
    for (a, b) in mechanisms() {
        let mut pair = beating(BEAT, a, b);
        for second in 1..20 {
            pair.now = ZmtpTime(second * 1_000);
            assert_eq!(pair.a.next_deadline(), Some(pair.now));
            pair.a.handle_timeout(pair.now).unwrap();
            pair.b.handle_timeout(pair.now).unwrap();
            let (at_a, at_b) = pair.run();
            assert!(at_a.error.is_none() && at_b.error.is_none());
        }
    }
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut pair = beating(BEAT, Security::Null, Security::Null);
    for at in [1_000, 2_000, 3_000] {
        assert_eq!(pair.a.handle_timeout(ZmtpTime(at)), Ok(()));
    }
    assert_eq!(pair.a.next_deadline(), Some(ZmtpTime(3_500)));
    assert_eq!(pair.a.handle_timeout(ZmtpTime(3_500)), Err(Error::Silent { ms: 2_500 }));
}

#[test]
fn any_byte_is_an_answer() {
    let mut pair = beating(BEAT, Security::Null, Security::Null);
    pair.a.handle_timeout(ZmtpTime(1_000)).unwrap();
    take(&mut pair.a, ZmtpTime(3_400), b"\x00", &mut Seen::default());
    assert_eq!(pair.a.handle_timeout(ZmtpTime(3_500)), Ok(()), "the next PING");
    assert_eq!(pair.a.handle_timeout(ZmtpTime(6_000)), Err(Error::Silent { ms: 2_500 }));
}

#[test]
fn a_peer_that_is_heard_is_asked_only_where_it_was_promised_a_ping() {
    for (ttl_ms, next) in [(0, 1_900), (3_000, 1_000)] {
        let heartbeat = Heartbeat { ttl_ms, ..BEAT };
        let mut pair = beating(heartbeat, Security::Null, Security::Null);
        take(&mut pair.a, ZmtpTime(900), b"\x00", &mut Seen::default());
        assert_eq!(pair.a.next_deadline(), Some(ZmtpTime(next)));
    }
}

#[test]
fn without_a_timeout_the_interval_is_it() {
    let heartbeat = Heartbeat { interval_ms: 700, timeout_ms: 0, ttl_ms: 0 };
    let mut pair = beating(heartbeat, Security::Null, Security::Null);
    pair.a.handle_timeout(ZmtpTime(700)).unwrap();
    assert_eq!(pair.a.handle_timeout(ZmtpTime(1_400)), Err(Error::Silent { ms: 700 }));
}

#[test]
fn a_peer_that_promises_to_be_heard_is_held_to_it() {
    let mut pair = beating(BEAT, Security::Null, Security::Null);
    pair.now = ZmtpTime(1_000);
    pair.a.handle_timeout(pair.now).unwrap();
    pair.run();
    assert_eq!(pair.b.next_deadline(), Some(ZmtpTime(4_000)));
    assert_eq!(pair.b.handle_timeout(ZmtpTime(3_999)), Ok(()));
    assert_eq!(pair.b.handle_timeout(ZmtpTime(4_000)), Err(Error::Ttl { ms: 3_000 }));
}

#[test]
fn a_pong_brings_the_pings_context_back() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    take(&mut pair.a, ZmtpTime(0), b"\x04\x0a\x04PING\x00\x0aabc", &mut Seen::default());
    assert_eq!(pair.a.take_output(), Bytes::from_static(b"\x04\x08\x04PONGabc"));
    let mut seen = Seen::default();
    let frame = b"\x04\x18\x04PING\x00\x00seventeen bytes!!";
    take(&mut pair.a, ZmtpTime(0), frame, &mut seen);
    assert!(matches!(seen.error, Some(Error::Malformed { command: "PING", .. })));
}

/// ZMTP 3.0 knows no PING, and an old peer ends the connection when it gets one.
#[test]
fn a_peer_of_3_0_is_not_asked() {
    let ours = Settings { heartbeat: BEAT, ..settings(SocketType::Xsub) };
    let mut pair =
        ConnectionPair::of(ours, Security::Null, settings(SocketType::Pub), Security::Null);
    let mut old = pair.b.take_output().to_vec();
    old[11] = 0;
    take(&mut pair.a, ZmtpTime(0), &old, &mut Seen::default());
    let to_b = pair.a.take_output();
    take(&mut pair.b, ZmtpTime(0), &to_b, &mut Seen::default());
    assert!(!pair.run().0.peer().speaks_3_1);
    assert_eq!(pair.a.next_deadline(), None);
}

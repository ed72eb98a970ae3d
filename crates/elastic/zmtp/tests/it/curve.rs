//! CURVE: who gets in, who does not, and what cannot be forged.

use std::collections::BTreeSet;

use bytes::Bytes;
use quelea_elastic_zmtp::{AllowedKeys, Error, Event, ZmtpTime, frame_parts};

use crate::pair::{ConnectionPair, Seen, curve_client, curve_server, key, take};

fn only(number: u8) -> AllowedKeys {
    AllowedKeys::Only(BTreeSet::from([key(number).public()]))
}

#[test]
fn a_client_is_known_by_its_key() {
    let (at_a, at_b) = ConnectionPair::new(curve_server(only(2)), curve_client(2, 1)).run();
    assert_eq!(at_a.peer().key, Some(key(2).public()));
    assert_eq!(at_b.peer().key, Some(key(1).public()));
}

#[test]
fn a_client_with_an_unknown_key_is_denied_and_told() {
    let (at_a, at_b) = ConnectionPair::new(curve_server(only(2)), curve_client(3, 1)).run();
    assert_eq!(at_a.error, Some(Error::Denied { who: format!("key {}", key(3).public()) }));
    assert_eq!(at_b.error, Some(Error::Refused { reason: "400".to_owned() }));
}

#[test]
fn who_does_not_know_the_servers_key_is_told_nothing() {
    let mut pair = ConnectionPair::new(curve_server(AllowedKeys::All), curve_client(2, 9));
    let (at_a, at_b) = pair.run();
    assert_eq!(at_a.error, Some(Error::Box { command: "HELLO" }));
    assert!(at_b.error.is_none() && at_b.events.is_empty());
}

/// Each byte of the client's side of the handshake is changed once: nobody gets in by it.
#[test]
fn no_changed_byte_of_the_handshake_gets_in() {
    let transcript = client_transcript();
    for at in 64..transcript.len() {
        let mut pair = ConnectionPair::new(curve_server(AllowedKeys::All), curve_client(2, 1));
        let mut changed = transcript.clone();
        changed[at] ^= 0x10;
        let mut seen = Seen::default();
        take(&mut pair.a, ZmtpTime(0), &changed, &mut seen);
        // The padding of HELLO alone is nobody's.
        let padding = 64 + 2 + 6 + 2..64 + 2 + 6 + 2 + 72;
        assert_eq!(seen.events.is_empty(), !padding.contains(&at), "byte {at}: {seen:?}");
    }
}

/// Returns what a client writes to this server: always the same, since all randomness is given.
fn client_transcript() -> Vec<u8> {
    let mut pair = ConnectionPair::new(curve_server(AllowedKeys::All), curve_client(2, 1));
    let mut written = Vec::new();
    loop {
        let to_a = pair.b.take_output();
        let to_b = pair.a.take_output();
        if to_a.is_empty() && to_b.is_empty() {
            return written;
        }
        written.extend_from_slice(&to_a);
        take(&mut pair.a, ZmtpTime(0), &to_a, &mut Seen::default());
        take(&mut pair.b, ZmtpTime(0), &to_b, &mut Seen::default());
    }
}

#[test]
fn messages_are_sealed_and_opened() {
    let mut pair = ConnectionPair::ready(curve_server(AllowedKeys::All), curve_client(2, 1));
    for parts in [&[&b"topic"[..], b"body"][..], &[b""], &[b"", b"", &[7; 300]]] {
        let message = frame_parts(parts);
        let sealed = pair.b.seal(&message).unwrap();
        assert!(!sealed.windows(5).any(|five| five == b"topic"));
        let mut seen = Seen::default();
        take(&mut pair.a, ZmtpTime(0), &sealed, &mut seen);
        assert_eq!(seen.events, [Event::Message(message)]);
    }
}

#[test]
fn a_message_can_neither_be_changed_nor_repeated_nor_sent_openly() {
    let message = frame_parts(&[b"a", b"b"]);
    let fresh = || ConnectionPair::ready(curve_server(AllowedKeys::All), curve_client(2, 1));
    let sealed = fresh().b.seal(&message).unwrap();
    for at in 0..sealed.len() {
        let mut pair = fresh();
        let mut changed = sealed.to_vec();
        changed[at] ^= 1;
        let mut seen = Seen::default();
        take(&mut pair.a, ZmtpTime(0), &changed, &mut seen);
        // A frame that says to be longer waits for the rest; one that says to be a command is a box all the same.
        let harmless = [1, 36, 0, 35].contains(&at);
        assert!(seen.events.is_empty() || harmless, "byte {at}: {seen:?}");
    }
    let mut pair = fresh();
    let sealed = pair.b.seal(&message).unwrap();
    let mut seen = Seen::default();
    take(&mut pair.a, ZmtpTime(0), &sealed, &mut seen);
    take(&mut pair.a, ZmtpTime(0), &sealed, &mut seen);
    assert_eq!((seen.events.len(), seen.error), (1, Some(Error::Nonce { nonce: 3, last: 4 })));
    let mut seen = Seen::default();
    take(&mut fresh().a, ZmtpTime(0), &message, &mut seen);
    assert!(matches!(seen.error, Some(Error::Unexpected { expected: "MESSAGE", .. })));
}

#[test]
fn heartbeats_and_subscriptions_are_sealed_too() {
    let mut pair = ConnectionPair::ready(curve_server(AllowedKeys::All), curve_client(2, 1));
    pair.a.subscribe(b"secret");
    let output = pair.a.take_output();
    assert!(!output.windows(6).any(|six| six == b"secret"));
    let mut seen = Seen::default();
    take(&mut pair.b, ZmtpTime(0), &output, &mut seen);
    assert_eq!(seen.events, [Event::Subscribe(Bytes::from_static(b"secret"))]);
}

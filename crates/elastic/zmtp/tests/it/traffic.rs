//! Messages, subscriptions and limits after the handshake.

use bytes::{Bytes, BytesMut};
use quelea_elastic_zmtp::{
    Connection, Error, Event, Parts, Security, SocketType, ZmtpTime, frame_parts, limits, put_frame,
};

use crate::pair::{ConnectionPair, Seen, mechanisms, settings, take};

#[test]
fn messages_come_as_they_were_sent_under_each_mechanism() {
    for (a, b) in mechanisms() {
        let mut pair = ConnectionPair::ready(a, b);
        for parts in [&[&b"a"[..]][..], &[b"", b""], &[b"topic", &[9; 100_000], b"end"]] {
            let message = frame_parts(parts);
            assert_eq!(pair.publish(&message).events, [Event::Message(message.clone())]);
            assert_eq!(Parts::of(message).collect::<Vec<_>>(), parts);
        }
    }
}

#[test]
fn nothing_is_copied_without_curve() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let message = frame_parts(&[b"topic", &[9; 5_000]]);
    let sealed = pair.b.seal(&message).unwrap();
    assert_eq!(sealed.as_ptr(), message.as_ptr());
    pair.a.buffer().extend_from_slice(&sealed);
    let read = pair.a.buffer().as_ptr();
    let Ok(Some(Event::Message(got))) = pair.a.poll_event(ZmtpTime(0)) else {
        panic!("no message")
    };
    assert_eq!(got.as_ptr(), read);
}

/// libzmq sends a PING whenever its timer says so.
#[test]
fn a_command_between_the_parts_of_a_message_harms_neither() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let mut bytes = BytesMut::new();
    put_frame(&mut bytes, true, b"one");
    bytes.extend_from_slice(b"\x04\x07\x04PING\x00\x0a");
    put_frame(&mut bytes, true, b"two");
    bytes.extend_from_slice(b"\x04\x07\x04PING\x00\x0a");
    put_frame(&mut bytes, false, b"three");
    let mut seen = Seen::default();
    take(&mut pair.a, ZmtpTime(0), &bytes, &mut seen);
    assert_eq!(seen.events, [Event::Message(frame_parts(&[b"one", b"two", b"three"]))]);
    assert_eq!(pair.a.take_output(), "\x04\x05\x04PONG\x04\x05\x04PONG");
}

#[test]
fn subscriptions_are_commands_for_3_1_and_messages_for_3_0() {
    for (minor, on, off) in [
        (1, &b"\x04\x0c\x09SUBSCRIBEab"[..], &b"\x04\x09\x06CANCELab"[..]),
        (0, b"\x00\x03\x01ab", b"\x00\x03\x00ab"),
    ] {
        let mut pair = ConnectionPair::new(Security::Null, Security::Null);
        let mut greeting = pair.b.take_output().to_vec();
        greeting[11] = minor;
        take(&mut pair.a, ZmtpTime(0), &greeting, &mut Seen::default());
        pair.run();
        pair.a.subscribe(b"ab");
        assert_eq!(pair.a.take_output(), on);
        pair.a.cancel(b"ab");
        assert_eq!(pair.a.take_output(), off);
        let mut seen = Seen::default();
        take(&mut pair.b, ZmtpTime(0), &[on, off].concat(), &mut seen);
        let prefix = Bytes::from_static(b"ab");
        assert_eq!(seen.events, [Event::Subscribe(prefix.clone()), Event::Cancel(prefix)]);
    }
}

#[test]
fn what_a_subscriber_sends_besides_is_a_message() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    for parts in [&[&b"\x02x"[..]][..], &[b""], &[b"\x01a", b"more"]] {
        let message = frame_parts(parts);
        let mut seen = Seen::default();
        take(&mut pair.b, ZmtpTime(0), &message, &mut seen);
        assert_eq!(seen.events, [Event::Message(message)]);
    }
}

#[test]
fn commands_of_later_versions_are_ignored() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let mut seen = Seen::default();
    take(&mut pair.a, ZmtpTime(0), b"\x04\x07\x06FUTURE\x00\x01x", &mut seen);
    assert_eq!(seen.events, [Event::Message(frame_parts(&[b"x"]))]);
}

#[test]
fn an_error_of_the_peer_is_its_last_word() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let mut seen = Seen::default();
    take(&mut pair.a, ZmtpTime(0), b"\x04\x0a\x05ERROR\x03bye\x00\x01x", &mut seen);
    assert_eq!(seen.error, Some(Error::Refused { reason: "bye".to_owned() }));
    assert!(seen.events.is_empty());
}

#[test]
fn a_message_is_refused_by_its_header_alone() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let mut seen = Seen::default();
    let length = limits::MESSAGE_BYTES_MAX as u64 - 8;
    take(&mut pair.a, ZmtpTime(0), &[&[2][..], &length.to_be_bytes()].concat(), &mut seen);
    let max = limits::MESSAGE_BYTES_MAX;
    assert_eq!(seen.error, Some(Error::MessageBytes { length: length + 9, max }));
    for (first, second) in [(max as u64, 1), (1, u64::MAX), (1, i64::MAX as u64)] {
        let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
        let mut seen = Seen::default();
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, true, &vec![0; first.min(70_000) as usize]);
        bytes.extend_from_slice(&[&[2][..], &(second.max(max as u64)).to_be_bytes()].concat());
        take(&mut pair.a, ZmtpTime(0), &bytes, &mut seen);
        assert!(matches!(seen.error, Some(Error::MessageBytes { .. })));
    }
}

#[test]
fn a_message_of_exactly_the_limits_comes_through() {
    let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
    let largest = frame_parts(&[&vec![5; limits::MESSAGE_BYTES_MAX - 9]]);
    assert_eq!(largest.len(), limits::MESSAGE_BYTES_MAX);
    assert_eq!(pair.publish(&largest).events.len(), 1);
    let many: Vec<&[u8]> = vec![b"x"; limits::PARTS_MAX];
    assert_eq!(pair.publish(&frame_parts(&many)).events.len(), 1);
    let too_many: Vec<&[u8]> = vec![b"x"; limits::PARTS_MAX + 1];
    let seen = pair.publish(&frame_parts(&too_many));
    assert_eq!(seen.error, Some(Error::Parts { max: limits::PARTS_MAX }));
}

/// A subscriber has no business with large messages: nothing it sends is kept for long.
#[test]
fn a_publisher_takes_subscriptions_and_nothing_large() {
    for frame in [b"\x02\x00\x00\x00\x00\x00\x00\x20\x00", b"\x06\x00\x00\x00\x00\x00\x00\x20\x01"]
    {
        let mut pair = ConnectionPair::ready(Security::Null, Security::Null);
        let mut seen = Seen::default();
        take(&mut pair.b, ZmtpTime(0), frame, &mut seen);
        assert!(
            matches!(seen.error, Some(Error::MessageBytes { .. } | Error::CommandBytes { .. })),
            "{seen:?}"
        );
    }
}

#[test]
fn nothing_is_sent_before_the_handshake_is_over() {
    let mut connection = Connection::new(settings(SocketType::Xsub), Security::Null, ZmtpTime(0));
    assert_eq!(connection.take_output().len(), 64);
    connection.subscribe(b"x");
    connection.cancel(b"x");
    assert!(connection.take_output().is_empty());
    assert_eq!(connection.seal(&frame_parts(&[b"x"])), None);
}

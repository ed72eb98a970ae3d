//! Greeting, mechanisms, metadata.

use bytes::Bytes;
use quelea_elastic_zmtp::{Connection, Error, Security, Settings, SocketType, ZmtpTime, limits};

use crate::pair::{ConnectionPair, Seen, curve_client, mechanisms, settings, take, user, users};

#[test]
fn both_ends_know_each_other_after_each_mechanism() {
    for (a, b) in mechanisms() {
        let mechanism = a.mechanism();
        let named =
            Settings { identity: Bytes::from_static(b"the one"), ..settings(SocketType::Xpub) };
        let mut pair = ConnectionPair::of(settings(SocketType::Sub), a, named, b);
        let (at_a, at_b) = pair.run();
        assert_eq!(at_a.peer().socket_type, SocketType::Xpub, "{mechanism}");
        assert_eq!(at_a.peer().identity, "the one");
        assert!(at_a.peer().speaks_3_1);
        assert_eq!(at_b.peer().socket_type, SocketType::Sub);
        assert_eq!(at_b.peer().identity, "");
    }
}

#[test]
fn a_user_is_let_in_by_name_and_password_only() {
    let mut right = ConnectionPair::new(users(), user("ada", "lovelace"));
    assert_eq!(right.run().0.peer().user.as_deref(), Some("ada"));
    let wrong = [
        ("ada", "Lovelace"),
        ("ada", "lovelac"),
        ("ada", "lovelace "),
        ("bob", "lovelace"),
        ("", ""),
        ("nobody", "x"),
    ];
    for (name, password) in wrong {
        let (at_a, at_b) = ConnectionPair::new(users(), user(name, password)).run();
        assert_eq!(
            at_a.error,
            Some(Error::Denied { who: format!("user {name:?}") }),
            "{name} {password}"
        );
        // The status that libzmq shows to its user.
        assert_eq!(at_b.error, Some(Error::Refused { reason: "400".to_owned() }));
        assert!(at_a.events.is_empty() && at_b.events.is_empty());
    }
    ConnectionPair::ready(users(), user("nobody", ""));
}

#[test]
fn different_mechanisms_end_it_with_both_names() {
    let (at_a, at_b) = ConnectionPair::new(users(), Security::Null).run();
    assert_eq!(
        at_a.error.unwrap().to_string(),
        "the mechanism is PLAIN here, the peer's is \"NULL\""
    );
    assert!(matches!(at_b.error, Some(Error::Mechanism { ours: "NULL", .. })));
    let (at_a, _) = ConnectionPair::new(Security::Null, curve_client(2, 1)).run();
    assert!(matches!(at_a.error, Some(Error::Mechanism { .. })));
}

#[test]
fn sockets_that_do_not_belong_together_part() {
    for (a, b) in [(SocketType::Xsub, SocketType::Sub), (SocketType::Xpub, SocketType::Pub)] {
        for (at_a, at_b) in mechanisms() {
            let (at_a, at_b) = ConnectionPair::of(settings(a), at_a, settings(b), at_b).run();
            let who = [at_a.error, at_b.error];
            assert!(
                who.iter().flatten().any(|error| matches!(error, Error::SocketType { .. })),
                "{who:?}"
            );
        }
    }
}

#[test]
fn a_peer_of_another_pattern_is_named_in_the_error() {
    let mut connection = Connection::new(settings(SocketType::Xsub), Security::Null, ZmtpTime(0));
    let greeting = connection.take_output();
    let mut seen = Seen::default();
    take(&mut connection, ZmtpTime(0), &greeting, &mut seen);
    take(
        &mut connection,
        ZmtpTime(0),
        b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ",
        &mut seen,
    );
    assert_eq!(
        seen.error.unwrap().to_string(),
        "the peer's Socket-Type is \"REQ\", which a XSUB does not talk to"
    );
    assert!(
        connection.take_output().ends_with(b"which a XSUB does not talk to"),
        "it is sent the reason"
    );
}

#[test]
fn messages_and_large_commands_are_refused_before_the_handshake_is_over() {
    let frames: [(&[u8], &str); 3] = [
        (b"\x00\x05hello", "a message came, but a command of the handshake was due"),
        (
            b"\x06\x00\x00\x00\x00\x00\x10\x00\x00",
            "a command's length is 1048576, the limit is 8192",
        ),
        (b"\x04\x05\x04PING", "the command \"PING\" came, but READY was due"),
    ];
    for (frame, text) in frames {
        let mut connection =
            Connection::new(settings(SocketType::Xsub), Security::Null, ZmtpTime(0));
        let mut seen = Seen::default();
        let greeting = connection.take_output();
        take(&mut connection, ZmtpTime(0), &greeting, &mut seen);
        take(&mut connection, ZmtpTime(0), frame, &mut seen);
        assert_eq!(seen.error.unwrap().to_string(), text);
    }
}

#[test]
fn a_handshake_that_does_not_end_is_ended() {
    let mut connection = Connection::new(settings(SocketType::Xsub), Security::Null, ZmtpTime(5));
    let deadline = ZmtpTime(5 + limits::HANDSHAKE_MS_MAX);
    assert_eq!(connection.next_deadline(), Some(deadline));
    assert_eq!(connection.handle_timeout(ZmtpTime(deadline.0 - 1)), Ok(()));
    assert!(matches!(connection.handle_timeout(deadline), Err(Error::HandshakeTimeout { .. })));
    assert_eq!(connection.next_deadline(), None);
}

#[test]
fn nothing_is_read_after_an_error() {
    let mut pair = ConnectionPair::new(users(), user("ada", "wrong"));
    let (at_a, _) = pair.run();
    assert!(at_a.error.is_some());
    let mut seen = Seen::default();
    take(&mut pair.a, ZmtpTime(0), b"\x00\x05hello", &mut seen);
    assert!(seen.events.is_empty() && seen.error.is_none());
    assert_eq!(pair.a.seal(&Bytes::from_static(b"\x00\x00")), None);
}

#[test]
fn a_command_that_is_no_command_is_refused() {
    for (frame, what) in [
        (&b"\x04\x00"[..], "its name is longer than the command, or empty"),
        (b"\x04\x01\x00", "its name is longer than the command, or empty"),
        (b"\x04\x03\x05REA", "its name is longer than the command, or empty"),
        (b"\x04\x06\x05READY", "there is no Socket-Type"),
        (b"\x04\x0c\x05READY\x04Name\xff", "a property is longer than the command"),
    ] {
        let mut connection =
            Connection::new(settings(SocketType::Xsub), Security::Null, ZmtpTime(0));
        let greeting = connection.take_output();
        let mut seen = Seen::default();
        take(&mut connection, ZmtpTime(0), &greeting, &mut seen);
        take(&mut connection, ZmtpTime(0), frame, &mut seen);
        let error = seen.error.expect("it is refused").to_string();
        assert!(error.ends_with(what), "{error}");
    }
}

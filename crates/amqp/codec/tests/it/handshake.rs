//! From the protocol header to `connection.open-ok`.

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{channel, connection};
use quelea_amqp_codec::{AuthFailure, CloseCause, Event, Mechanism, Method, ReplyCode};
use quelea_model::{Table, Value};

use crate::conversation::{Conversation, config, raw_frame, start_ok, tune_ok};

#[test]
fn a_client_that_does_everything_right_gets_in() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    assert_eq!(talk.events(), []);
    let replies = talk.replies();
    let [(0, Method::ConnectionStart(start))] = &replies[..] else {
        panic!("expected start, got {replies:?}");
    };
    assert_eq!((start.version_major, start.version_minor), (0, 9));
    assert_eq!(start.mechanisms, "PLAIN AMQPLAIN");
    assert_eq!(start.locales, "en_US");
    assert_eq!(start.server_properties.get("product"), Some(&Value::text("Quelea")));

    talk.method(0, start_ok());
    let (user, password) = ("guest".to_owned(), Bytes::from_static(b"secret"));
    let mechanism = Mechanism::Plain;
    assert_eq!(talk.events(), [Event::Authenticate { mechanism, user, password }]);
    assert_eq!(talk.server.mechanism(), Some(Mechanism::Plain));
    assert!(talk.server.capability("authentication_failure_close"));
    assert!(!talk.server.capability("basic.nack") && !talk.server.capability("other"));

    talk.server.authenticated(Ok(()));
    let tune = connection::Tune { channel_max: 10, frame_max: 8_192, heartbeat: 60 };
    assert_eq!(talk.replies(), [(0, tune.into())]);

    talk.method(0, tune_ok(4_096, 5, 20));
    talk.method(0, connection::Open { virtual_host: "prod".into() });
    assert_eq!(talk.events(), [Event::Open { vhost: "prod".into() }]);
    assert!(!talk.server.is_open());
    talk.server.opened(Ok(()));
    assert_eq!(talk.replies(), [(0, connection::OpenOk {}.into())]);
    assert!(talk.server.is_open());
    assert_eq!(talk.server.frame_max(), 4_096);
    assert_eq!(talk.server.channel_max(), 5);
    assert_eq!(talk.server.heartbeat_s(), 20);
}

#[test]
fn nothing_is_parsed_while_the_login_is_checked() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.method(0, start_ok());
    talk.method(0, tune_ok(8_192, 10, 60));
    talk.method(0, connection::Open { virtual_host: "/".into() });
    talk.method(1, channel::Open {});
    assert!(matches!(talk.events()[..], [Event::Authenticate { .. }]));
    assert!(talk.server.has_input());
    talk.server.authenticated(Ok(()));
    assert!(matches!(talk.events()[..], [Event::Open { .. }]));
    talk.server.opened(Ok(()));
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
    assert!(!talk.server.has_input());
}

#[test]
fn another_protocol_is_answered_with_ours_and_hung_up_on() {
    for header in [b"AMQP\x00\x01\x00\x00", b"AMQP\x01\x01\x08\x00", b"GET / HT"] {
        let mut talk = Conversation::new(config());
        talk.write(header);
        assert_eq!(talk.events(), [Event::Closed]);
        assert_eq!(talk.output(), &PROTOCOL_HEADER[..]);
        assert!(talk.server.is_finished());
        assert_eq!(talk.server.close_cause(), Some(&CloseCause::WrongProtocol { header: *header }));
    }
}

#[test]
fn the_header_of_0_9_is_taken_for_ours_as_rabbitmq_does() {
    let mut talk = Conversation::new(config());
    talk.write(b"AMQP\x01\x01\x00\x09");
    assert_eq!(talk.events(), []);
    assert!(matches!(&talk.replies()[..], [(0, Method::ConnectionStart(_))]));
}

#[test]
fn amqplain_carries_the_same_as_plain() {
    let login =
        Table::from_iter([("LOGIN", Value::text("guest")), ("PASSWORD", Value::text("pw"))]);
    let mut response = BytesMut::new();
    login.encode(&mut response);
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.method(
        0,
        connection::StartOk {
            mechanism: "AMQPLAIN".into(),
            response: response.split_off(4).freeze(),
            ..start_ok()
        },
    );
    let (user, password) = ("guest".to_owned(), Bytes::from_static(b"pw"));
    let mechanism = Mechanism::AmqPlain;
    assert_eq!(talk.events(), [Event::Authenticate { mechanism, user, password }]);
}

#[test]
fn an_unknown_mechanism_or_a_malformed_response_closes() {
    for (mechanism, response, expected) in [
        ("EXTERNAL", "", "COMMAND_INVALID - unknown authentication mechanism 'EXTERNAL'"),
        ("PLAIN", "guest", "SYNTAX_ERROR - malformed PLAIN response"),
        ("AMQPLAIN", "guest", "SYNTAX_ERROR - malformed AMQPLAIN response"),
    ] {
        let mut talk = Conversation::new(config());
        talk.write(PROTOCOL_HEADER);
        talk.events();
        talk.replies();
        let (mechanism, response) = (mechanism.into(), Bytes::from_static(response.as_bytes()));
        talk.method(0, connection::StartOk { mechanism, response, ..start_ok() });
        assert_eq!(talk.events(), [Event::Closed]);
        assert_eq!(talk.connection_close().1, expected);
    }
}

#[test]
fn a_refused_login_is_told_to_those_who_understand_it() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.method(0, start_ok());
    talk.events();
    talk.replies();
    talk.server.authenticated(Err(AuthFailure));
    let (code, text) = talk.connection_close();
    assert_eq!(code, 403);
    assert_eq!(
        text,
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see \
         the broker logfile."
    );
    assert_eq!(talk.events(), [Event::Closed]);
    assert_eq!(talk.server.close_cause(), Some(&CloseCause::LoginRefused));
    assert!(!talk.server.is_finished(), "the client's close-ok is waited for");
    talk.method(0, connection::CloseOk {});
    assert_eq!(talk.events(), []);
    assert!(talk.server.is_finished());
}

#[test]
fn a_refused_login_hangs_up_on_those_who_do_not() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.method(0, connection::StartOk { client_properties: Table::new(), ..start_ok() });
    talk.events();
    talk.replies();
    talk.server.authenticated(Err(AuthFailure));
    assert_eq!(talk.events(), [Event::Closed]);
    assert_eq!(talk.replies(), []);
    assert!(talk.server.is_finished());
}

#[test]
fn a_tune_ok_outside_the_offer_is_not_allowed() {
    for (tune_ok, expected) in [
        (
            tune_ok(8_193, 10, 0),
            "negotiated frame_max = 8193 is higher than the maximum allowed value (8192)",
        ),
        (
            tune_ok(0, 10, 0),
            "negotiated frame_max = 0 is higher than the maximum allowed value (8192)",
        ),
        (
            tune_ok(4_095, 10, 0),
            "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)",
        ),
        (
            tune_ok(8_192, 11, 0),
            "negotiated channel_max = 11 is higher than the maximum allowed value (10)",
        ),
        (
            tune_ok(8_192, 0, 0),
            "negotiated channel_max = 0 is higher than the maximum allowed value (10)",
        ),
    ] {
        let mut talk = Conversation::new(config());
        talk.write(PROTOCOL_HEADER);
        talk.method(0, start_ok());
        talk.events();
        talk.server.authenticated(Ok(()));
        talk.replies();
        talk.method(0, tune_ok);
        assert_eq!(talk.events(), [Event::Closed]);
        let (code, text) = talk.connection_close();
        assert_eq!((code, text), (530, format!("NOT_ALLOWED - {expected}")));
    }
}

#[test]
fn a_virtual_host_that_is_refused_closes_with_the_callers_words() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.method(0, start_ok());
    talk.events();
    talk.server.authenticated(Ok(()));
    talk.method(0, tune_ok(8_192, 10, 0));
    talk.method(0, connection::Open { virtual_host: "x".into() });
    talk.events();
    talk.replies();
    talk.server.opened(Err((ReplyCode::NotAllowed, "vhost x not found".to_owned())));
    assert_eq!(talk.connection_close(), (530, "NOT_ALLOWED - vhost x not found".to_owned()));
    assert_eq!(talk.events(), [Event::Closed]);
}

#[test]
fn a_method_out_of_turn_is_an_invalid_command() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.events();
    talk.replies();
    talk.method(0, connection::Open { virtual_host: "/".into() });
    assert_eq!(talk.events(), [Event::Closed]);
    let (code, text) = talk.connection_close();
    assert_eq!(code, 503);
    assert_eq!(text, "COMMAND_INVALID - unexpected connection.open during the handshake");
}

#[test]
fn a_channel_before_the_connection_is_open_is_an_error() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.events();
    talk.replies();
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::Closed]);
    assert_eq!(talk.connection_close().0, 504);
}

#[test]
fn a_stranger_may_send_no_large_frame() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.events();
    talk.replies();
    // Only the head arrives, and that is enough.
    talk.write(&raw_frame(1, 0, &vec![0; 9_000])[..7]);
    assert_eq!(talk.events(), [Event::Closed]);
    let (code, text) = talk.connection_close();
    assert_eq!(code, 501);
    assert_eq!(text, "FRAME_ERROR - frame of 9008 bytes is larger than the negotiated 8192");
    assert!(talk.server.is_finished());
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.events();
    talk.replies();
    assert_eq!(talk.server.deadline(), Some(talk.now.plus_ms(10_000)));
    talk.pass_ms(9_999);
    assert_eq!(talk.events(), []);
    talk.pass_ms(1);
    assert_eq!(talk.events(), [Event::Closed]);
    assert_eq!(talk.replies(), []);
    assert!(talk.server.is_finished());
    assert_eq!(talk.server.close_cause(), Some(&CloseCause::HandshakeTimeout));
    assert_eq!(talk.server.deadline(), None);
}

#[test]
fn a_client_may_leave_in_the_middle_of_the_handshake() {
    let mut talk = Conversation::new(config());
    talk.write(PROTOCOL_HEADER);
    talk.events();
    talk.replies();
    talk.method(0, connection::Close { reply_code: 200, ..connection::Close::default() });
    assert_eq!(talk.events(), [Event::Closed]);
    talk.server.connection_close_ok();
    assert_eq!(talk.replies(), [(0, connection::CloseOk {}.into())]);
    assert!(talk.server.is_finished());
}

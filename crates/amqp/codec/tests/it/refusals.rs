//! What a client must not do, with the code and the words it gets for it.

use bytes::Bytes;
use quelea_amqp_codec::method::{basic, channel, connection, queue};
use quelea_amqp_codec::{Event, Method};

use crate::conversation::{Conversation, content_header, method_frame, publish, raw_frame};

/// Writes to a connection with channel 1 and expects `connection.close` with that code and text.
fn refused(bytes: &[Bytes], code: u16, text: &str) {
    let mut talk = Conversation::with_channel();
    for part in bytes {
        talk.write(part);
    }
    assert_eq!(talk.events(), [Event::Closed], "{text}");
    assert_eq!(talk.connection_close(), (code, text.to_owned()));
    // Whatever comes now, nothing follows but the end.
    talk.method(1, queue::Declare::default());
    assert_eq!(talk.events(), []);
    assert_eq!(talk.replies(), []);
}

#[test]
fn frames_that_cannot_be_read_are_frame_errors() {
    refused(&[raw_frame(4, 1, b"")], 501, "FRAME_ERROR - unknown frame type 4");
    refused(
        &[raw_frame(1, 1, &[0; 8_193])],
        501,
        "FRAME_ERROR - frame of 8201 bytes is larger than the negotiated 8192",
    );
    let mut bad_end = raw_frame(8, 0, b"").to_vec();
    bad_end[7] = 0xcd;
    refused(&[bad_end.into()], 501, "FRAME_ERROR - frame ends in 0xcd instead of 0xce");
    refused(&[raw_frame(8, 0, b"x")], 501, "FRAME_ERROR - a heartbeat is empty");
    let elsewhere = "UNEXPECTED_FRAME - a heartbeat belongs on channel 0";
    refused(&[raw_frame(8, 1, b"")], 505, elsewhere);
}

#[test]
fn methods_that_cannot_be_read_are_syntax_errors() {
    let declare = |rest: &[u8]| raw_frame(1, 1, &[&[0, 50, 0, 10][..], rest].concat());
    let text = |detail: &str| format!("SYNTAX_ERROR - {detail}");
    refused(&[declare(b"")], 502, &text("method ends early, in field reserved"));
    refused(&[declare(b"\0\0\x05abc")], 502, &text("method ends early, in field queue"));
    refused(&[declare(b"\0\0\x01\xff\0\0\0\0\0")], 502, &text("field queue is not UTF-8"));
    refused(&[declare(b"\0\0\0\0\0\0\0\0!")], 502, &text("1 bytes after the last field"));
    refused(
        &[declare(b"\0\0\0\0\0\0\0\x04\x01a?\0")],
        502,
        &text("field arguments: unknown field type 0x3f at byte 2"),
    );
    refused(
        &[raw_frame(1, 1, b"\0\x3c\0\x28\0\0\x09")],
        502,
        &text("method ends early, in field exchange"),
    );
    refused(&[raw_frame(1, 1, b"\0")], 502, &text("method ends early, in field class"));
}

#[test]
fn the_close_names_the_method_that_failed() {
    let mut talk = Conversation::with_channel();
    talk.frame(1, 1, &[0, 50, 0, 10]);
    talk.events();
    let replies = talk.replies();
    let [(0, Method::ConnectionClose(close))] = &replies[..] else {
        panic!("expected close, got {replies:?}");
    };
    assert_eq!((close.class_id, close.method_id), (50, 10));
}

#[test]
fn methods_that_do_not_exist_are_not_implemented() {
    let unknown = raw_frame(1, 1, &[0, 50, 0, 99]);
    refused(&[unknown], 540, "NOT_IMPLEMENTED - unknown method 50.99");
    let immediate = basic::Publish { immediate: true, ..publish("", "q") };
    refused(&[method_frame(1, immediate)], 540, "NOT_IMPLEMENTED - immediate=true");
}

#[test]
fn methods_at_the_wrong_place_are_invalid_commands() {
    let text = |detail: &str| format!("COMMAND_INVALID - {detail}");
    refused(
        &[method_frame(1, queue::DeclareOk::default())],
        503,
        &text("queue.declare-ok is for servers to send"),
    );
    refused(
        &[method_frame(1, connection::Close::default())],
        503,
        &text("unexpected connection.close on channel 1"),
    );
    refused(
        &[method_frame(1, channel::CloseOk {})],
        503,
        &text("unexpected channel.close-ok on channel 1"),
    );
}

#[test]
fn an_open_connection_takes_few_methods_on_channel_0() {
    let text = "CHANNEL_ERROR - unexpected method in connection state running";
    for method in [
        Method::from(queue::Declare::default()),
        channel::Open {}.into(),
        connection::Open::default().into(),
        connection::TuneOk::default().into(),
        connection::CloseOk {}.into(),
        connection::Blocked::default().into(),
    ] {
        refused(&[method_frame(0, method)], 504, text);
    }
}

#[test]
fn channels_are_opened_once_and_before_they_are_used() {
    let closed = "CHANNEL_ERROR - expected 'channel.open'";
    refused(&[method_frame(2, queue::Declare::default())], 504, closed);
    refused(&[method_frame(2, publish("", "q"))], 504, closed);
    refused(&[method_frame(2, channel::Close::default())], 504, closed);
    let text = "UNEXPECTED_FRAME - expected method frame, got non method frame instead";
    refused(&[raw_frame(3, 2, b"x")], 505, text);
    let twice = "CHANNEL_ERROR - second 'channel.open' seen";
    refused(&[method_frame(1, channel::Open {})], 504, twice);
}

#[test]
fn as_many_channels_are_open_as_agreed_whatever_their_numbers() {
    let mut talk = Conversation::with_channel();
    for number in 65_527..=u16::MAX {
        talk.method(number, channel::Open {});
    }
    assert_eq!(talk.events().len(), 9);
    talk.replies();
    talk.method(2, channel::Open {});
    assert_eq!(talk.events(), [Event::Closed]);
    let text = "NOT_ALLOWED - number of channels opened (10) has reached the negotiated \
                channel_max (10)";
    assert_eq!(talk.connection_close(), (530, text.to_owned()));
}

#[test]
fn content_frames_out_of_order_are_unexpected() {
    let text = |detail: &str| format!("UNEXPECTED_FRAME - {detail}");
    let begin = method_frame(1, publish("", "q"));
    let header = |size| raw_frame(2, 1, &content_header(size, &[0, 0]));
    let method = text("expected method frame, got non method frame instead");
    refused(&[header(1)], 505, &method);
    refused(&[raw_frame(3, 1, b"x")], 505, &method);
    let head = text("expected content header for class 60, got non content header frame instead");
    refused(&[begin.clone(), begin.clone()], 505, &head);
    refused(&[begin.clone(), raw_frame(3, 1, b"x")], 505, &head);
    let rest = text("expected content body, got non content body frame instead");
    refused(&[begin.clone(), header(1), begin.clone()], 505, &rest);
    refused(&[begin.clone(), header(1), header(1)], 505, &rest);
    refused(
        &[begin.clone(), header(3), raw_frame(3, 1, b"ab"), raw_frame(3, 1, b"cd")],
        505,
        &text("a body of at least 4 bytes, declared were 3"),
    );
    let mut other_class = content_header(1, &[0, 0]).to_vec();
    other_class[1] = 50;
    refused(
        &[begin.clone(), raw_frame(2, 1, &other_class)],
        505,
        &text("expected content header for class 60, got one for class 50 instead"),
    );
    let mut weighty = content_header(1, &[0, 0]).to_vec();
    weighty[3] = 1;
    refused(&[begin, raw_frame(2, 1, &weighty)], 505, &text("content header's weight is not 0"));
    refused(&[raw_frame(2, 0, b"x")], 505, &text("channel 0 carries no content"));
}

#[test]
fn malformed_properties_are_a_syntax_error() {
    let begin = method_frame(1, publish("", "q"));
    refused(
        &[begin.clone(), raw_frame(2, 1, &content_header(1, &[0x80, 0, 9]))],
        502,
        "SYNTAX_ERROR - properties end early, in content-type",
    );
    let no_table = content_header(1, &[0x20, 0, 0, 0, 0, 3, 1, b'a', b'Z']);
    refused(
        &[begin.clone(), raw_frame(2, 1, &no_table)],
        502,
        "SYNTAX_ERROR - property headers: unknown field type 0x5a at byte 2",
    );
    refused(&[begin, raw_frame(2, 1, b"\0\x3c")], 502, "SYNTAX_ERROR - content header ends early");
}

#[test]
fn a_binary_correlation_id_is_none_of_our_business() {
    let mut talk = Conversation::with_channel();
    talk.method(1, publish("", "q"));
    let properties = Bytes::from_static(&[0x04, 0, 2, 0xff, 0xfe]);
    talk.frame(2, 1, &content_header(0, &properties));
    let body = Bytes::new();
    let publish = publish("", "q");
    assert_eq!(talk.events(), [Event::Publish { channel: 1, publish, properties, body }]);
}

#[test]
fn answers_to_what_the_server_never_asks_are_ignored() {
    let mut talk = Conversation::with_channel();
    talk.method(1, channel::FlowOk { active: true });
    talk.method(1, basic::CancelOk { consumer_tag: "c".into() });
    assert_eq!(talk.events(), []);
    assert_eq!(talk.replies(), []);
    assert!(talk.server.is_open());
}

#[test]
fn what_belongs_to_the_broker_is_handed_on() {
    let mut talk = Conversation::with_channel();
    let method = Method::from(queue::Declare { queue: "q".into(), ..queue::Declare::default() });
    talk.method(1, method.clone());
    let flow = Method::from(channel::Flow { active: false });
    talk.method(1, flow.clone());
    talk.method(0, connection::UpdateSecret { new_secret: "s".into(), reason: "expired".into() });
    assert_eq!(
        talk.events(),
        [
            Event::Method { channel: 1, method },
            Event::Method { channel: 1, method: flow },
            Event::UpdateSecret { secret: "s".into() },
        ]
    );
    talk.server.send(0, &connection::UpdateSecretOk {}.into());
    assert_eq!(talk.replies(), [(0, connection::UpdateSecretOk {}.into())]);
}

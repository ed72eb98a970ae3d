//! Messages in both directions.

use bytes::Bytes;
use quelea_amqp_codec::method::{basic, channel};
use quelea_amqp_codec::{ConnectionConfig, Event, FrameKind, Method};
use quelea_model::Message;

use crate::conversation::{
    Conversation, config, content_header, method_of, publish, raw_frame, tune_ok,
};

fn body(len: usize) -> Bytes {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_publish_is_one_event_however_many_frames_its_body_has() {
    for parts in [vec![], vec![5], vec![5, 5, 2], vec![0, 5, 0, 3]] {
        let body = body(parts.iter().sum());
        let mut talk = Conversation::with_channel();
        talk.method(1, publish("logs", "a.b"));
        talk.frame(2, 1, &content_header(body.len() as u64, &[0x10, 0, 2]));
        let mut at = 0;
        for len in parts {
            talk.frame(3, 1, &body[at..at + len]);
            at += len;
        }
        let properties = Bytes::from_static(&[0x10, 0, 2]);
        let publish = publish("logs", "a.b");
        assert_eq!(talk.events(), [Event::Publish { channel: 1, publish, properties, body }]);
    }
}

#[test]
fn channels_may_interleave_their_frames() {
    let mut talk = Conversation::with_channel();
    talk.method(2, channel::Open {});
    talk.method(1, publish("", "one"));
    talk.method(2, publish("", "two"));
    talk.frame(2, 2, &content_header(2, &[0, 0]));
    talk.frame(2, 1, &content_header(4, &[0, 0]));
    talk.frame(3, 1, b"11");
    talk.frame(3, 2, b"22");
    talk.frame(8, 0, b"");
    talk.frame(3, 1, b"11");
    let events = talk.events();
    let published: Vec<(u16, &str, &[u8])> = events
        .iter()
        .filter_map(|event| match event {
            Event::Publish { channel, publish, body, .. } => {
                Some((*channel, publish.routing_key.as_str(), &body[..]))
            }
            _ => None,
        })
        .collect();
    assert_eq!(published, [(2, "two", &b"22"[..]), (1, "one", &b"1111"[..])]);
}

#[test]
fn a_message_above_the_limit_closes_the_channel_before_its_body_comes() {
    let mut talk = Conversation::with_channel();
    talk.method(1, publish("", "q"));
    talk.frame(2, 1, &content_header(100_001, &[0, 0]));
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    talk.server.channel_close_ok(1);
    let expected = "PRECONDITION_FAILED - message size 100001 is larger than configured max size \
                    100000";
    assert_eq!(talk.channel_close(), (406, expected.to_owned()));
    // The body is under way already.
    talk.frame(3, 1, &body(8_000));
    talk.method(1, publish("", "q"));
    assert_eq!(talk.events(), []);
    talk.method(1, channel::CloseOk {});
    talk.method(1, channel::Open {});
    assert_eq!(talk.events(), [Event::ChannelOpen(1)]);
}

#[test]
fn a_message_at_the_limit_is_taken() {
    let mut talk = Conversation::with_channel();
    talk.method(1, publish("", "q"));
    talk.frame(2, 1, &content_header(100_000, &[0, 0]));
    let whole = body(100_000);
    for part in whole.chunks(8_184) {
        talk.frame(3, 1, part);
    }
    let events = talk.events();
    assert!(matches!(&events[..], [Event::Publish { body, .. }] if *body == whole));
}

#[test]
fn unfinished_messages_of_all_channels_together_are_limited() {
    let mut config = config();
    config.channel_max = 2_000;
    config.message_bytes_max = 1_000_000;
    config.frame_max = 131_072;
    let mut talk = Conversation::open_with(config, tune_ok(131_072, 2_000, 0));
    let part = raw_frame(3, 0, &body(131_000));
    let mut events = Vec::new();
    for number in 1..2_000u16 {
        talk.method(number, channel::Open {});
        talk.method(number, publish("", "q"));
        talk.frame(2, number, &content_header(1_000_000, &[0, 0]));
        let mut part = part.to_vec();
        part[1..3].copy_from_slice(&number.to_be_bytes());
        talk.write(&part);
        events.extend(talk.events());
        if events.last() == Some(&Event::Closed) {
            assert_eq!(number, 257, "32 MiB are 256 parts and a bit");
            break;
        }
    }
    assert_eq!(events.last(), Some(&Event::Closed));
}

#[test]
fn the_properties_of_unfinished_messages_count_too() {
    let config = ConnectionConfig { channel_max: 2_000, message_bytes_max: 1_000, ..config() };
    let config = ConnectionConfig { frame_max: 131_072, ..config };
    let mut talk = Conversation::open_with(config, tune_ok(131_072, 2_000, 0));
    // One header, a long string of nearly a whole frame.
    let len = 131_000u32;
    let head = [&[0x20, 0][..], &(len + 7).to_be_bytes(), b"\x01aS", &len.to_be_bytes()].concat();
    let properties = [head, vec![b'x'; len as usize]].concat();
    let mut events = Vec::new();
    let refused = (1..2_000u16).find(|&number| {
        talk.method(number, channel::Open {});
        talk.method(number, publish("", "q"));
        talk.frame(2, number, &content_header(1, &properties));
        events.extend(talk.events());
        events.last() == Some(&Event::Closed)
    });
    assert_eq!(refused, Some(257), "32 MiB are 256 frames and a bit");
}

#[test]
fn two_of_the_largest_messages_may_be_under_way() {
    let config = ConnectionConfig { message_bytes_max: 20_000_000, ..config() };
    let mut talk = Conversation::open_with(config, tune_ok(8_192, 10, 0));
    for number in [1, 2] {
        talk.method(number, channel::Open {});
        talk.method(number, publish("", "q"));
        talk.frame(2, number, &content_header(20_000_000, &[0x80, 0, 1, b'x']));
        assert_eq!(talk.events(), [Event::ChannelOpen(number)]);
    }
    for part in body(20_000_000 - 1).chunks(8_184) {
        talk.frame(3, 1, part);
        talk.frame(3, 2, part);
        assert_eq!(talk.events(), []);
    }
    talk.frame(3, 1, b"x");
    talk.frame(3, 2, b"x");
    assert!(matches!(&talk.events()[..], [Event::Publish { .. }, Event::Publish { .. }]));
}

#[test]
fn a_delivery_is_the_method_the_header_and_the_body_in_frames() {
    for len in [0, 1, 4_088, 4_089, 9_000, 20_000, 100_000] {
        let body = body(len);
        let message = Message::new("logs", "a.b", &[0x10, 0, 2], body.clone());
        let mut talk = Conversation::open_with(config(), tune_ok(4_096, 10, 0));
        talk.method(7, channel::Open {});
        talk.events();
        talk.replies();
        talk.server.deliver(7, "ctag", 300, true, &message);
        let mut frames = talk.frames();
        let rest = frames.split_off(2);
        let (channel, method) = method_of(frames.remove(0));
        let deliver = basic::Deliver {
            consumer_tag: "ctag".into(),
            delivery_tag: 300,
            redelivered: true,
            exchange: "logs".into(),
            routing_key: "a.b".into(),
        };
        assert_eq!((channel, method), (7, deliver.clone().into()));
        assert_eq!(frames[0].kind, FrameKind::Header);
        assert_eq!(frames[0].payload, content_header(len as u64, &[0x10, 0, 2]));
        assert_eq!(rest.len(), len.div_ceil(4_088));
        assert!(rest.iter().all(|f| f.kind == FrameKind::Body && f.payload.len() <= 4_088));
        let joined: Vec<u8> = rest.iter().flat_map(|frame| frame.payload.to_vec()).collect();
        assert_eq!(joined, body);

        // The general way writes the same bytes.
        talk.server.deliver(7, "ctag", 300, true, &message);
        let hot = talk.output();
        talk.server.send_content(7, &Method::from(deliver), &[0x10, 0, 2], body);
        assert_eq!(talk.output(), hot);
    }
}

#[test]
fn a_publish_is_written_as_it_is_read() {
    for len in [0, 16, 5_000, 50_000] {
        let body = body(len);
        let mut output = quelea_amqp_codec::Output::new();
        output.publish(1, "logs", "a.b", true, &[0, 0], body.clone(), 8_192);
        let hot = output.to_bytes();
        let method = basic::Publish { mandatory: true, ..publish("logs", "a.b") };
        let mut output = quelea_amqp_codec::Output::new();
        output.content(1, &method.clone().into(), &[0, 0], body.clone(), 8_192);
        assert_eq!(output.to_bytes(), hot);

        let mut talk = Conversation::with_channel();
        talk.write(&hot);
        let properties = Bytes::from_static(&[0, 0]);
        let event = Event::Publish { channel: 1, publish: method, properties, body };
        assert_eq!(talk.events(), [event]);
    }
}

#[test]
fn nothing_is_sent_on_a_channel_that_is_not_open() {
    let message = Message::new("", "q", &[0, 0], body(3));
    let mut talk = Conversation::with_channel();
    talk.server.deliver(2, "c", 1, false, &message);
    talk.server.send(2, &basic::QosOk {}.into());
    assert_eq!(talk.replies(), []);
    talk.method(1, channel::Close::default());
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
    talk.server.deliver(1, "c", 1, false, &message);
    talk.server.send(1, &basic::QosOk {}.into());
    assert_eq!(talk.replies(), []);
}

#[test]
fn properties_that_fit_into_no_frame_close_the_channel() {
    let mut properties = vec![0x20, 0];
    let mut table = bytes::BytesMut::new();
    quelea_model::Table::from_iter([("h", quelea_model::Value::ByteArray(body(5_000)))])
        .encode(&mut table);
    properties.extend_from_slice(&table);
    let message = Message::new("", "q", &properties, body(3));
    let mut talk = Conversation::open_with(config(), tune_ok(4_096, 10, 0));
    talk.method(1, channel::Open {});
    talk.events();
    talk.replies();
    talk.server.deliver(1, "c", 1, false, &message);
    assert!(talk.server.has_input(), "poll has something to tell");
    let (code, text) = talk.channel_close();
    assert_eq!(code, 311);
    assert_eq!(
        text,
        "CONTENT_TOO_LARGE - message properties need a frame of 5033 bytes, frame_max is 4096"
    );
    assert_eq!(talk.events(), [Event::ChannelClosed(1)]);
}

//! What a connection holds between two reads.

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::method::channel;
use quelea_amqp_codec::{Event, ServerConnection};

use crate::conversation::{Conversation, content_header, publish};

/// Puts bytes into a read buffer that says whether someone still shares it.
fn read_buffer(parts: &[Bytes]) -> Bytes {
    parts.iter().flat_map(|part| part.to_vec()).collect::<BytesMut>().freeze()
}

#[test]
fn a_connection_is_small() {
    assert!(size_of::<ServerConnection>() <= 512, "{}", size_of::<ServerConnection>());
    assert!(size_of::<Event>() <= 160, "{}", size_of::<Event>());
}

#[test]
fn an_unfinished_message_does_not_keep_the_read_buffer() {
    let mut talk = Conversation::with_channel();
    talk.method(2, channel::Open {});
    talk.events();
    let begin = |number| crate::conversation::method_frame(number, publish("logs", "a.b"));
    let header =
        |number| crate::conversation::raw_frame(2, number, &content_header(5, &[0x10, 0, 2]));
    let body = crate::conversation::raw_frame(3, 1, b"abc");
    let buffer = read_buffer(&[begin(1), begin(2), header(2), header(1), body]);
    talk.server.receive(buffer.clone(), talk.now);
    assert_eq!(talk.events(), []);
    assert!(buffer.try_into_mut().is_ok(), "the connection shares nothing with the buffer");

    talk.frame(3, 1, b"de");
    talk.frame(3, 2, b"fghij");
    let properties = Bytes::from_static(&[0x10, 0, 2]);
    let publish = publish("logs", "a.b");
    assert_eq!(
        talk.events(),
        [
            Event::Publish {
                channel: 1,
                publish: publish.clone(),
                properties: properties.clone(),
                body: Bytes::from_static(b"abcde"),
            },
            Event::Publish { channel: 2, publish, properties, body: Bytes::from_static(b"fghij") },
        ]
    );
}

#[test]
fn another_channels_complete_message_does_not_pin_the_read_buffer() {
    let mut talk = Conversation::with_channel();
    talk.method(2, channel::Open {});
    talk.method(2, publish("logs", "a.b"));
    talk.frame(2, 2, &content_header(5, &[0, 0]));
    assert_eq!(talk.events(), [Event::ChannelOpen(2)]);
    let begin = crate::conversation::method_frame(1, publish("logs", "a.b"));
    let end = crate::conversation::raw_frame(3, 2, b"abcde");
    let buffer = read_buffer(&[begin, end]);
    talk.server.receive(buffer.clone(), talk.now);
    assert!(matches!(&talk.events()[..], [Event::Publish { channel: 2, .. }]));
    assert!(buffer.try_into_mut().is_ok(), "the connection shares nothing with the buffer");
}

#[test]
fn an_unfinished_frame_does_not_keep_the_read_buffer() {
    let mut talk = Conversation::with_channel();
    let frame = crate::conversation::method_frame(1, publish("logs", "a.b"));
    let buffer = read_buffer(&[frame.slice(..frame.len() - 1)]);
    talk.server.receive(buffer.clone(), talk.now);
    assert_eq!(talk.events(), []);
    assert!(!talk.server.has_input(), "there is nothing to look at before more comes");
    assert!(buffer.try_into_mut().is_ok(), "the connection shares nothing with the buffer");
}

#[test]
fn a_body_in_one_frame_is_a_slice_of_the_read_buffer() {
    let mut talk = Conversation::with_channel();
    let mut output = quelea_amqp_codec::Output::new();
    output.publish(1, "", "q", false, &[0, 0], Bytes::from(vec![7; 1_000]), 8_192);
    let buffer = output.to_bytes();
    let range = buffer.as_ptr_range();
    talk.server.receive(buffer, talk.now);
    let events = talk.events();
    let [Event::Publish { body, .. }] = &events[..] else {
        panic!("expected a publish, got {events:?}");
    };
    assert!(range.contains(&body.as_ptr()));
}

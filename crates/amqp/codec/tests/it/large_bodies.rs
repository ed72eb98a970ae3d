//! Bodies in frames that are larger than a read, which are handed on as they arrive.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quelea_amqp_codec::method::{basic, channel, connection};
use quelea_amqp_codec::{ConnectionConfig, Event, Output, ReplyCode};

use crate::conversation::{Conversation, config, content_header, publish, raw_frame, tune_ok};

const FRAME_MAX: u32 = 131_072;
const BODY_BYTES: usize = 400_000;

fn open() -> Conversation {
    let config = ConnectionConfig { frame_max: FRAME_MAX, message_bytes_max: 1 << 20, ..config() };
    let mut talk = Conversation::open_with(config, tune_ok(FRAME_MAX, 10, 60));
    talk.method(1, channel::Open {});
    talk.method(2, channel::Open {});
    talk.events();
    talk.output();
    talk
}

fn body() -> Bytes {
    (0..BODY_BYTES).map(|at| (at % 251) as u8).collect()
}

/// Returns a large message between two small ones, and an acknowledgement behind them.
fn script() -> Bytes {
    let mut out = Output::new();
    let small = Bytes::from_static(b"small");
    out.publish(2, "", "q", false, &[0, 0], small.clone(), FRAME_MAX);
    out.publish(1, "", "q", false, &[0x10, 0, 2], body(), FRAME_MAX);
    out.publish(2, "", "q", false, &[0, 0], small, FRAME_MAX);
    out.method(1, &basic::Ack { delivery_tag: 1, multiple: false }.into());
    out.to_bytes()
}

/// Returns what comes of the script in reads of so many bytes, as a shell makes them: those of a body to where
/// that stays.
fn events_of(reads: usize) -> Vec<Event> {
    let (mut talk, mut rest) = (open(), script());
    let mut events = Vec::new();
    while !rest.is_empty() {
        let came = match talk.server.body_buffer() {
            Some(mut room) => {
                let came = reads.min(rest.len()).min(room.remaining_mut());
                room.put_slice(&rest[..came]);
                talk.server.advance_body(came, talk.now);
                came
            }
            None => {
                let came = reads.min(rest.len());
                talk.write(&rest[..came]);
                came
            }
        };
        rest.advance(came);
        events.extend(talk.events());
    }
    assert!(talk.output().is_empty(), "nothing was refused");
    events
}

fn events_of_pushed(reads: usize) -> Vec<Event> {
    let mut talk = open();
    let mut events = Vec::new();
    for read in script().chunks(reads) {
        talk.write(read);
        events.extend(talk.events());
    }
    events
}

/// Begins a message of `size` bytes, whose body frame of as many has only its first half.
fn begin(talk: &mut Conversation, size: usize) -> Bytes {
    talk.method(1, publish("", "q"));
    talk.frame(2, 1, &content_header(size as u64, &[0, 0]));
    let mut frame = raw_frame(3, 1, &vec![7; size]);
    talk.write(&frame.split_to(size / 2));
    assert_eq!(talk.events(), []);
    frame
}

/// Returns whether what was written leads to a message.
fn publishes(talk: &mut Conversation) -> bool {
    talk.events().iter().any(|event| matches!(event, Event::Publish { .. }))
}

#[test]
fn every_size_of_reads_gives_the_same_messages() {
    let whole = events_of_pushed(usize::MAX);
    let bodies: Vec<_> = whole
        .iter()
        .filter_map(|event| match event {
            Event::Publish { body, .. } => Some(body.len()),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, [5, BODY_BYTES, 5]);
    for reads in [1, 777, 16_384, 65_536, 100_003, 131_072, 131_073, 262_144] {
        assert_eq!(events_of(reads), whole, "reads of {reads}");
        assert_eq!(events_of_pushed(reads), whole, "reads of {reads} that are all pushed");
    }
}

#[test]
fn most_of_a_large_body_is_read_to_where_it_stays() {
    let (mut talk, script) = (open(), script());
    talk.write(&script[..1_000]);
    talk.events();
    let room = talk.server.body_buffer().unwrap().remaining_mut();
    assert!((130_000..FRAME_MAX as usize).contains(&room), "{room} bytes to the frame's end");
    let mut buffer = talk.server.body_buffer().unwrap();
    assert!(
        buffer.get_ref().capacity() <= FRAME_MAX as usize,
        "memory for a frame, not for the message"
    );
    buffer.put_slice(&script[1_000..1_000 + room]);
    talk.server.advance_body(room, talk.now);
    let heads = 1_000 + room..1_000 + room + 100;
    talk.write(&script[heads]);
    talk.events();
    let buffer = talk.server.body_buffer().unwrap();
    assert_eq!(buffer.get_ref().capacity(), BODY_BYTES, "a quarter has come");
}

#[test]
fn only_behind_a_large_body_another_one_is_expected() {
    let mut talk = open();
    let rest = begin(&mut talk, 60_000);
    assert!(!talk.server.expects_body());
    talk.write(&rest);
    assert!(publishes(&mut talk));
    assert!(talk.server.expects_body());
    talk.method(2, publish("", "q"));
    assert!(!talk.server.expects_body());
}

/// Has a part of what is missing come as a shell reads it.
fn advance(talk: &mut Conversation, rest: &mut Bytes, bytes: usize) {
    let Some(mut buffer) = talk.server.body_buffer() else { panic!("a body is awaited") };
    buffer.put_slice(&rest.split_to(bytes));
    talk.server.advance_body(bytes, talk.now);
}

#[test]
fn what_was_read_into_a_body_is_dropped_with_its_channel() {
    let mut talk = open();
    let mut rest = begin(&mut talk, 60_000);
    advance(&mut talk, &mut rest, 10_000);
    talk.server.close_channel(1, ReplyCode::NotFound, "gone", 60, 40);
    assert!(talk.server.body_buffer().is_none());
    talk.write(&rest);
    talk.method(1, channel::CloseOk {});
    let small = Bytes::from_static(b"small");
    let mut out = Output::new();
    out.publish(2, "", "q", false, &[0, 0], small.clone(), FRAME_MAX);
    talk.write(&out.to_bytes());
    let events = talk.events();
    assert_eq!(events[0], Event::ChannelClosed(1));
    assert!(matches!(&events[1..], [Event::Publish { channel: 2, body, .. }] if *body == small));
}

#[test]
fn nothing_is_expected_of_a_connection_that_is_over() {
    let mut talk = open();
    let mut rest = begin(&mut talk, 60_000);
    let missing = rest.len() - 1;
    advance(&mut talk, &mut rest, missing);
    assert!(talk.server.expects_body() && talk.server.is_mid_body_frame());
    talk.server.close(ReplyCode::InternalError, "enough", 0, 0);
    assert!(talk.server.body_buffer().is_none());
    talk.write(&rest);
    assert!(!publishes(&mut talk));
    talk.method(0, connection::CloseOk {});
    talk.events();
    assert!(talk.server.is_finished());
    assert!(!talk.server.expects_body() && !talk.server.is_mid_body_frame());
}

#[test]
fn a_body_frame_with_a_wrong_end_publishes_nothing() {
    let mut talk = open();
    let mut rest = begin(&mut talk, 60_000).to_vec();
    *rest.last_mut().unwrap() = 0;
    talk.write(&rest);
    assert!(!publishes(&mut talk));
    assert_eq!(talk.connection_close().0, 501);
}

#[test]
fn a_body_frame_beyond_the_promised_size_is_refused() {
    let mut talk = open();
    talk.method(1, publish("", "q"));
    talk.frame(2, 1, &content_header(50_000, &[0, 0]));
    for read in raw_frame(3, 1, &vec![7; 50_001]).chunks(20_000) {
        talk.write(read);
        assert!(!publishes(&mut talk));
    }
    assert_eq!(talk.connection_close().0, 505);
}

#[test]
fn the_rest_of_a_body_is_dropped_when_its_channel_was_closed() {
    let mut talk = open();
    let rest = begin(&mut talk, 60_000);
    talk.server.close_channel(1, ReplyCode::NotFound, "gone", 60, 40);
    talk.write(&rest);
    talk.method(1, channel::CloseOk {});
    talk.method(2, channel::Close::default());
    assert_eq!(talk.events(), [Event::ChannelClosed(1), Event::ChannelClosed(2)]);
    assert!(!talk.server.has_input());
}

#[test]
fn the_rest_of_a_body_is_dropped_when_the_connection_is_closing() {
    let mut talk = open();
    let rest = begin(&mut talk, 60_000);
    talk.server.close(ReplyCode::InternalError, "enough", 0, 0);
    talk.write(&rest);
    assert!(!publishes(&mut talk));
}

#[test]
fn a_large_body_that_is_unfinished_keeps_no_read_buffer() {
    let mut talk = open();
    let rest = begin(&mut talk, 60_000);
    let buffer = BytesMut::from(&rest[..20_000]).freeze();
    talk.server.receive(buffer.clone(), talk.now);
    assert_eq!(talk.events(), []);
    assert!(!talk.server.has_input());
    assert!(buffer.try_into_mut().is_ok(), "the connection shares nothing with the buffer");
}

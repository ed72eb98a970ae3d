//! However the bytes are cut, the same events and the same replies come of them.

use bytes::Bytes;
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{basic, channel, connection, queue};
use quelea_amqp_codec::{Event, Output};

use crate::conversation::{Conversation, config, start_ok, tune_ok};

/// Returns a short life, from the first byte to the last.
fn script() -> Bytes {
    let declare = queue::Declare { queue: "orders".into(), durable: true, ..Default::default() };
    let close = connection::Close { reply_code: 200, ..connection::Close::default() };
    let mut out = Output::new();
    out.put_slice(PROTOCOL_HEADER);
    out.method(0, &start_ok().into());
    out.method(0, &tune_ok(8_192, 10, 60).into());
    out.method(0, &connection::Open { virtual_host: "/".into() }.into());
    out.method(1, &channel::Open {}.into());
    out.method(1, &declare.into());
    out.heartbeat();
    out.publish(1, "logs", "a.b", false, &[0x10, 0, 2], Bytes::from_static(b"hello"), 10);
    out.publish(1, "", "orders", true, &[0, 0], Bytes::new(), 8_192);
    out.method(1, &basic::Ack { delivery_tag: 9, multiple: true }.into());
    out.method(1, &channel::Close::default().into());
    out.method(0, &close.into());
    out.to_bytes()
}

fn run<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Bytes) {
    let mut talk = Conversation::new(config());
    let mut events = Vec::new();
    for part in parts {
        talk.write(part);
        while let Some(event) = talk.server.poll(talk.now) {
            match &event {
                Event::Authenticate { .. } => talk.server.authenticated(Ok(())),
                Event::Open { .. } => talk.server.opened(Ok(())),
                Event::ChannelClosed(channel) => talk.server.channel_close_ok(*channel),
                Event::Closed => talk.server.connection_close_ok(),
                _ => {}
            }
            events.push(event);
        }
    }
    assert!(talk.server.is_finished());
    (events, talk.output())
}

#[test]
fn every_split_position_gives_the_same_events() {
    let script = script();
    let whole = run([&script[..]]);
    assert_eq!(whole.0.len(), 9, "{:?}", whole.0);
    for at in 0..=script.len() {
        let (first, second) = script.split_at(at);
        assert_eq!(run([first, second]), whole, "cut at {at}");
    }
}

#[test]
fn every_size_of_reads_gives_the_same_events() {
    let script = script();
    let whole = run([&script[..]]);
    for len in 1..=40 {
        assert_eq!(run(script.chunks(len)), whole, "reads of {len}");
    }
}

#[test]
fn reading_on_before_all_is_parsed_gives_the_same_events() {
    let script = script();
    let mut talk = Conversation::new(config());
    script.chunks(50).for_each(|part| talk.write(part));
    let mut events = Vec::new();
    while let Some(event) = talk.server.poll(talk.now) {
        match &event {
            Event::Authenticate { .. } => talk.server.authenticated(Ok(())),
            Event::Open { .. } => talk.server.opened(Ok(())),
            Event::ChannelClosed(channel) => talk.server.channel_close_ok(*channel),
            _ => {}
        }
        events.push(event);
    }
    assert_eq!(events, run([&script[..]]).0);
}

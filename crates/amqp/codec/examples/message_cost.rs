//! What a message costs in the codec: `cargo run --release -p quelea-amqp-codec --example message_cost`.
//!
//! Parses a read buffer full of publishes and writes as many deliveries, on one core and without
//! sockets, and prints nanoseconds per message.

#![expect(clippy::disallowed_methods, reason = "it measures; the crate itself reads no clock")]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{channel, connection};
use quelea_amqp_codec::{ConnectionConfig, Event, Output, ServerConnection};
use quelea_model::{Message, Timestamp};

const NOW: Timestamp = Timestamp::ZERO;

fn main() {
    for body_len in [16, 256, 1_024, 4_096, 65_536] {
        let (parse_ns, deliver_ns) = measure(body_len);
        println!("{body_len:>6} bytes: parse {parse_ns:>6.0} ns, deliver {deliver_ns:>6.0} ns");
    }
}

/// Returns the nanoseconds per message to parse a publish and to write a delivery: the best of many
/// rounds.
fn measure(body_len: usize) -> (f64, f64) {
    let mut server = open_connection();
    let body = Bytes::from(vec![7; body_len]);
    let mut publishes = Output::new();
    let count = (256 * 1024 / (body_len + 64)).max(1);
    for _ in 0..count {
        publishes.publish(1, "", "orders", false, &[0x10, 0, 2], body.clone(), 131_072);
    }
    let publishes = publishes.to_bytes();
    let message = Message::new("", "orders", &[0x10, 0, 2], body);

    let (mut parse, mut deliver) = (f64::MAX, f64::MAX);
    for _ in 0..2_000 {
        let input = Bytes::copy_from_slice(&publishes);
        let started = Instant::now();
        server.receive(input, NOW);
        let mut published = 0;
        while let Some(Event::Publish { .. }) = server.poll(NOW) {
            published += 1;
        }
        parse = parse.min(started.elapsed().as_nanos() as f64 / f64::from(published));
        assert_eq!(published as usize, count, "every publish is an event");

        let started = Instant::now();
        for tag in 0..count {
            server.deliver(1, "amq.ctag-1", tag as u64, false, &message);
        }
        let waiting = server.output().len();
        server.output().advance(waiting);
        deliver = deliver.min(started.elapsed().as_nanos() as f64 / count as f64);
    }
    (parse, deliver)
}

/// Returns a server's connection that a client has opened, with channel 1.
fn open_connection() -> ServerConnection {
    let start_ok = connection::StartOk {
        mechanism: "PLAIN".into(),
        response: Bytes::from_static(b"\0guest\0guest"),
        locale: "en_US".into(),
        ..connection::StartOk::default()
    };
    let tune_ok = connection::TuneOk { channel_max: 100, frame_max: 131_072, heartbeat: 60 };
    let mut client = Output::new();
    client.put_slice(PROTOCOL_HEADER);
    client.method(0, &start_ok.into());
    client.method(0, &tune_ok.into());
    client.method(0, &connection::Open { virtual_host: "/".into() }.into());
    client.method(1, &channel::Open {}.into());

    let mut server = ServerConnection::new(Arc::new(ConnectionConfig::default()), NOW);
    server.receive(client.to_bytes(), NOW);
    while let Some(event) = server.poll(NOW) {
        match event {
            Event::Authenticate { .. } => server.authenticated(Ok(())),
            Event::Open { .. } => server.opened(Ok(())),
            _ => {}
        }
    }
    let waiting = server.output().len();
    server.output().advance(waiting);
    server
}

//! What a message costs inside the broker: `cargo bench -p quelea-broker`. Wall time of one thread,
//! without sockets and disk; the figure of docs/benchmarks/amqp.md is measured from outside.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use bytes::Bytes;
use quelea_broker::{
    Broker, BrokerConfig, ChannelId, ConnectionId, ConnectionInfo, Consume, DeclareQueue, Effect,
    Publish,
};
use quelea_model::Timestamp;
use quelea_store::MemStore;

/// Messages between two turns: what one read of the socket brings.
const BATCH: u64 = 500;
const MESSAGES: u64 = 2_000_000;

fn main() {
    let now = Timestamp::from_millis(1);
    measure("publish and deliver, 16 B, no_ack", now, |publisher, consumer, broker| {
        consume(broker, consumer, true);
        pump(broker, publisher, &[0, 0], |_, _| {});
    });
    measure("publish, deliver, ack each, 16 B", now, |publisher, consumer, broker| {
        consume(broker, consumer, false);
        pump(broker, publisher, &[0, 0], |broker, tag| {
            broker.ack(now, consumer, tag, false).expect("it was delivered");
        });
    });
    measure("publish, deliver, ack by the hundred, 16 B", now, |publisher, consumer, broker| {
        consume(broker, consumer, false);
        pump(broker, publisher, &[0, 0], |broker, tag| {
            if tag % 100 == 0 {
                broker.ack(now, consumer, tag, true).expect("it was delivered");
            }
        });
    });
}

fn measure(what: &str, now: Timestamp, run: impl Fn(ChannelId, ChannelId, &mut Broker)) {
    let store = MemStore::new();
    let recovered = store.recover();
    let mut broker = Broker::new(BrokerConfig::default(), Box::new(store), recovered, 1, now)
        .expect("nothing is stored yet");
    broker.bootstrap("");
    let publisher = open(&mut broker, now);
    let consumer = open(&mut broker, now);
    let request = DeclareQueue { name: String::from("q"), ..DeclareQueue::default() };
    broker.declare_queue(now, publisher, &request).expect("q is a name");
    let begun = Instant::now();
    run(publisher, consumer, &mut broker);
    let nanoseconds = begun.elapsed().as_nanos() as f64 / MESSAGES as f64;
    println!("{what}: {nanoseconds:.0} ns a message");
}

fn open(broker: &mut Broker, now: Timestamp) -> ChannelId {
    let info = ConnectionInfo {
        user: String::from("guest"),
        vhost: String::from("/"),
        loopback: true,
        ..ConnectionInfo::default()
    };
    let connection = broker.open_connection(now, info).expect("guest may");
    broker.open_channel(connection, 1).expect("the connection is open")
}

fn consume(broker: &mut Broker, channel: ChannelId, no_ack: bool) {
    let request = Consume { queue: String::from("q"), no_ack, ..Consume::default() };
    broker.consume(Timestamp::from_millis(1), channel, &request).expect("q is there");
}

fn pump(
    broker: &mut Broker,
    publisher: ChannelId,
    properties: &[u8],
    mut delivered: impl FnMut(&mut Broker, u64),
) {
    let now = Timestamp::from_millis(1);
    let body = Bytes::from_static(b"sixteen bytes...");
    for _ in 0..MESSAGES / BATCH {
        for _ in 0..BATCH {
            let publish = Publish {
                exchange: "",
                routing_key: "q",
                properties,
                body: body.clone(),
                mandatory: false,
                confirm: false,
            };
            broker.publish(now, publisher, publish).expect("it is permitted");
        }
        let mut written: Option<ConnectionId> = None;
        loop {
            let more = broker.run(now);
            while let Some(effect) = broker.poll_effect() {
                if let Effect::Deliver { connection, delivery_tag, .. } = effect {
                    written = Some(connection);
                    delivered(broker, delivery_tag);
                }
            }
            if !more {
                break;
            }
        }
        if let Some(connection) = written {
            broker.output_drained(now, connection, usize::MAX);
        }
    }
}

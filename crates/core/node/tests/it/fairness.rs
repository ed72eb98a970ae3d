//! One connection's load does not stop the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::queue;
use quelea_model::limits::OUTPUT_BYTES_MAX;
use quelea_model::{Table, Value};

use crate::client::{Client, PERSISTENT, TRANSIENT};
use crate::server::{Server, TestDir};

fn bounded_queue(name: &str) -> queue::Declare {
    queue::Declare {
        queue: ShortStr::from(name),
        arguments: Table::from_iter([("x-max-length", Value::I32(1_000))]),
        ..queue::Declare::default()
    }
}

#[test]
fn others_are_answered_while_one_publishes_as_fast_as_it_can() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (address, stop) = (server.address, Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let flood = std::thread::spawn(move || {
        let mut client = Client::connect(address);
        client.declare_with(bounded_queue("flood")).unwrap();
        let mut published = 0_u64;
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..1_000 {
                client.publish("flood", TRANSIENT, &b"sixteen bytes..."[..]);
            }
            client.flush().unwrap();
            published += 1_000;
        }
        published
    });
    let mut client = Client::connect(server.address);
    for n in 0..200 {
        client.declare(&format!("calm-{}", n % 10), false).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(flood.join().unwrap() > 0);
}

#[test]
fn a_consumer_that_never_reads_has_bounded_output() {
    const MESSAGES: usize = 20_000;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut publisher = Client::connect(server.address);
    publisher.declare("deaf", true).unwrap();
    publisher.declare("heard", true).unwrap();
    publisher.confirm_select().unwrap();
    let mut deaf = Client::connect(server.address);
    deaf.consume("deaf", true).unwrap();
    let mut listener = Client::connect(server.address);
    listener.consume("heard", true).unwrap();
    let mut confirmed = 0;
    for n in 1..=MESSAGES {
        publisher.publish("deaf", PERSISTENT, &[7; 1_000][..]);
        if n % 1_000 == 0 {
            publisher.publish("heard", PERSISTENT, n.to_string());
            confirmed += 1_001;
            publisher.until_confirmed(confirmed).unwrap();
            assert_eq!(listener.next().unwrap().body, n.to_string());
        }
    }
    let waiting = server.call(|core| {
        core.broker.connections().iter().map(|connection| connection.output_waiting_bytes).max()
    });
    let waiting = waiting.unwrap();
    assert!(waiting > 0, "the sockets took everything: the test needs more messages");
    assert!(waiting <= 2 * OUTPUT_BYTES_MAX, "{waiting} bytes wait for one connection");
    // It reads after all, and gets the rest.
    for _ in 0..MESSAGES {
        assert_eq!(deaf.next().unwrap().body.len(), 1_000);
    }
}

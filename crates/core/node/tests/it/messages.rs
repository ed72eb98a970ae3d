//! What a client sees of its messages.

use bytes::Bytes;
use quelea_amqp_codec::Output;
use quelea_amqp_codec::method::Method;

use crate::client::{Client, PERSISTENT, TRANSIENT};
use crate::server::{Server, TestDir};

#[test]
fn a_confirmed_message_is_delivered_and_gone_once_acknowledged() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    client.publish("orders", PERSISTENT, &b"hello"[..]);
    client.until_confirmed(1).unwrap();
    client.consume("orders", false).unwrap();
    let incoming = client.next().unwrap();
    assert_eq!(&incoming.body[..], b"hello");
    let Method::BasicDeliver(deliver) = incoming.method else { panic!("{incoming:?}") };
    client.ack(deliver.delivery_tag, false);
    client.close().unwrap();
    let mut client = Client::connect(server.address);
    assert_eq!(client.declare("orders", true).unwrap(), (0, 0));
}

#[test]
fn bodies_of_all_sizes_arrive_whole() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("bodies", false).unwrap();
    client.consume("bodies", true).unwrap();
    for len in [0, 1, 100, 4_000, 8_192, 65_536, 131_064, 131_065, 1_000_000, 5_000_000] {
        let body: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        client.publish("bodies", TRANSIENT, body.clone());
        let incoming = client.next().unwrap();
        assert!(incoming.body == body, "{len} bytes");
    }
}

#[test]
fn large_and_small_bodies_that_are_sent_at_once_arrive_whole_and_in_order() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (mut publisher, mut consumer) =
        (Client::connect(server.address), Client::connect(server.address));
    publisher.declare("bodies", false).unwrap();
    consumer.consume("bodies", true).unwrap();
    let sizes = [70_000, 10, 300_000, 40_000, 0, 20_000, 20_000, 131_064, 1_200_000, 5];
    let body = move |number: usize| -> Vec<u8> {
        let len = sizes[number % sizes.len()];
        (0..len).map(|at| ((at + number) % 251) as u8).collect()
    };
    let writer = std::thread::spawn(move || {
        (0..100).for_each(|number| publisher.publish("bodies", TRANSIENT, body(number)));
        publisher.flush().unwrap();
        publisher
    });
    for number in 0..100 {
        assert!(consumer.next().unwrap().body == body(number), "message {number}");
    }
    drop(writer.join().unwrap());
}

#[test]
fn who_vanishes_amid_a_large_body_publishes_nothing() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("bodies", false).unwrap();
    let mut vanishing = Client::connect(server.address);
    let mut out = Output::new();
    let body = Bytes::from(vec![7; 400_000]);
    out.publish(1, "", "bodies", false, TRANSIENT, body, 131_072);
    vanishing.write(&out.to_bytes()[..200_000]).unwrap();
    drop(vanishing);
    client.publish("bodies", TRANSIENT, vec![1; 100]);
    client.consume("bodies", true).unwrap();
    assert_eq!(client.next().unwrap().body.len(), 100);
}

#[test]
fn messages_of_many_connections_arrive_once_each() {
    const PUBLISHERS: usize = 8;
    const MESSAGES: usize = 2_000;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut consumer = Client::connect(server.address);
    consumer.declare("all", true).unwrap();
    consumer.consume("all", true).unwrap();
    let address = server.address;
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                client.confirm_select().unwrap();
                for n in 0..MESSAGES {
                    let properties = if n % 2 == 0 { PERSISTENT } else { TRANSIENT };
                    client.publish("all", properties, format!("{publisher} {n}"));
                }
                client.until_confirmed(MESSAGES as u64).unwrap();
            })
        })
        .collect();
    let mut next = [0; PUBLISHERS];
    for _ in 0..PUBLISHERS * MESSAGES {
        let body = consumer.next().unwrap().body;
        let text = std::str::from_utf8(&body).unwrap();
        let (publisher, n) = text.split_once(' ').unwrap();
        let expected = &mut next[publisher.parse::<usize>().unwrap()];
        assert_eq!(n.parse(), Ok(*expected), "publisher {publisher}");
        *expected += 1;
    }
    publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
}

#[test]
fn what_was_confirmed_is_there_after_a_restart() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    for n in 0..1_000 {
        client.publish("orders", PERSISTENT, format!("order {n}"));
    }
    client.until_confirmed(1_000).unwrap();
    // Otherwise the stop waits for it to close.
    drop(client);
    let _ = server.stop();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    for n in 0..1_000 {
        assert_eq!(client.get("orders").unwrap().unwrap(), format!("order {n}"));
    }
    assert_eq!(client.get("orders").unwrap(), None);
}

#[test]
fn what_a_vanished_consumer_held_goes_to_another() {
    const MESSAGES: usize = 5_000;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut publisher = Client::connect(server.address);
    publisher.declare("work", true).unwrap();
    publisher.confirm_select().unwrap();
    // It is given all that its socket takes, and reads nothing of it.
    let mut first = Client::connect(server.address);
    first.consume("work", false).unwrap();
    for n in 0..MESSAGES {
        publisher.publish("work", PERSISTENT, vec![n as u8; 1_000]);
    }
    publisher.until_confirmed(MESSAGES as u64).unwrap();
    let mut second = Client::connect(server.address);
    second.qos(1).unwrap();
    second.consume("work", false).unwrap();
    drop(first);
    for n in 0..MESSAGES {
        let incoming = second.next().unwrap();
        let Method::BasicDeliver(deliver) = incoming.method else { panic!("{incoming:?}") };
        second.ack(deliver.delivery_tag, false);
        assert_eq!(incoming.body.len(), 1_000, "message {n}");
    }
    let held = server.call(|core| core.broker.queue("/", "work").unwrap().messages_ready);
    assert_eq!(held, 0);
}

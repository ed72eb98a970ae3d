//! A queue that stores its messages; the test plays the keeper.

use std::net::TcpListener;

use quelea_elastic_proto::frame::{Acknowledge, Frame, Hello, Role, Welcome};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{ClientId, MessageSeq, parts};

use crate::client::Client;
use crate::relay::{QUEUE, TestRelay};

fn storing() -> (TcpListener, TestRelay) {
    let keeper = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = keeper.local_addr().expect("it is bound").to_string();
    let relay = TestRelay::with(|config| {
        config.settings.acknowledge = Acknowledge::Stored;
        config.settings.keep = (address, "vault".to_owned());
    });
    (keeper, relay)
}

fn accept(keeper: &TcpListener) -> Client {
    let (stream, _) = keeper.accept().expect("the relay connects");
    let mut relay = Client::over(stream);
    assert!(matches!(relay.next(), Frame::Hello(Hello { role: Role::Keeper, .. })));
    relay.send(&Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 5_000 }));
    let (queue, target) = (QUEUE.to_owned(), "vault".to_owned());
    assert_eq!(relay.next(), Frame::KeepOpen { queue, target });
    relay
}

/// Reads the next messages to keep, which must begin with this number. Returns their bodies.
fn kept(relay: &mut Client, mut next: u64, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        let Frame::Keep { producer: ClientId(9), first, messages } = relay.next() else {
            panic!("no KEEP came");
        };
        assert_eq!(first, MessageSeq(next));
        next += messages.len() as u64;
        let body = |message| parts::slices(message).nth(1).expect("two parts");
        bodies.extend(
            messages.iter().map(|message| String::from_utf8_lossy(&body(message)).into_owned()),
        );
    }
    bodies
}

#[test]
fn stored_means_kept_and_the_rest_is_sent_again() {
    let (keeper, relay) = storing();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 5);
    listener.started();
    for (sequence, body) in ["five", "six", "seven"].iter().enumerate() {
        producer.publish(slot, 5 + sequence as u64, &[b"t", body.as_bytes()]);
        // Each is a stretch of its own: a stretch is stored, or sent again, as a whole.
        producer.synchronise();
    }
    let mut line = accept(&keeper);
    assert_eq!(kept(&mut line, 5, 3), ["five", "six", "seven"]);
    assert_eq!(listener.sequences(3), [5, 6, 7]);
    listener.send(&Frame::Received(3));
    listener.synchronise();
    line.send(&Frame::Kept { producer: ClientId(9), below: MessageSeq(6) });
    producer.acknowledged(slot, 6);
    drop(line);
    let mut line = accept(&keeper);
    let again = kept(&mut line, 6, 2);
    assert_eq!(again, ["six", "seven"]);
    line.send(&Frame::Kept { producer: ClientId(9), below: MessageSeq(7) });
    producer.acknowledged(slot, 7);
    line.send(&Frame::Kept { producer: ClientId(9), below: MessageSeq(8) });
    producer.acknowledged(slot, 8);
}

#[test]
fn a_kept_answers_one_keep_even_after_lower_numbers() {
    let (keeper, relay) = storing();
    let mut producer = relay.client();
    // It moved here with a part of its messages under way elsewhere.
    let slot = producer.produce(9, 1, 2);
    producer.publish(slot, 2, &[b"t", b"two"]);
    producer.synchronise();
    let mut line = accept(&keeper);
    assert_eq!(kept(&mut line, 2, 1), ["two"]);
    // It was lost with its connection, and what it had elsewhere was lost there.
    drop(producer);
    let mut producer = relay.client();
    let slot = producer.produce(9, 2, 1);
    for (sequence, body) in [(1, "one"), (2, "two")] {
        producer.publish(slot, sequence, &[b"t", body.as_bytes()]);
        producer.synchronise();
    }
    assert_eq!(kept(&mut line, 1, 2), ["one", "two"]);
    let stored = |below| Frame::Kept { producer: ClientId(9), below: MessageSeq(below) };
    // The KEEP of before is stored: that says nothing of message 1, nor of what came behind it.
    line.send(&stored(3));
    // What fits none is not heeded.
    line.send(&stored(3));
    line.send(&stored(2));
    producer.acknowledged(slot, 2);
    line.send(&stored(3));
    producer.acknowledged(slot, 3);
}

#[test]
fn a_keeper_that_has_fallen_silent_is_asked_and_then_given_up() {
    let (keeper, relay) = storing();
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    producer.publish(slot, 0, &[b"t", b"body"]);
    // Whoever waits for so long has to give a sign of life, too.
    let producing = std::thread::spawn(move || {
        loop {
            match producer.next() {
                Frame::Ping(number) => producer.send(&Frame::Pong(number)),
                Frame::Credit { .. } => {}
                frame => return frame,
            }
        }
    });
    let mut first = accept(&keeper);
    assert_eq!(kept(&mut first, 0, 1), ["body"]);
    let Frame::Ping(number) = first.next() else { panic!("it is not asked") };
    first.send(&Frame::Pong(number));
    // Then it answers no more, though its connection stands.
    assert_eq!(first.next(), Frame::Ping(number));
    let mut second = accept(&keeper);
    assert_eq!(kept(&mut second, 0, 1), ["body"]);
    second.send(&Frame::Kept { producer: ClientId(9), below: MessageSeq(1) });
    let acknowledged = producing.join().expect("it does not panic");
    assert_eq!(acknowledged, Frame::Ack { slot, below: MessageSeq(1) });
}

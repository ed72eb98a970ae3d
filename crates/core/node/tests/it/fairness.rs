//! One connection's load does not stop the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use quelea_amqp_codec::method::{basic, channel, connection, queue};
use quelea_amqp_codec::{Output, ShortStr};
use quelea_broker::report::ExchangeReport;
use quelea_model::limits::{FRAME_BYTES_MIN, OUTPUT_BYTES_MAX};
use quelea_model::{Table, Value};
use quelea_node::NodeConfig;

use crate::client::{Client, PERSISTENT, TRANSIENT};
use crate::server::{Server, TestDir, config};

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

/// Nothing but the end of the deletion wakes it: the deletion's own answer has long been sent.
#[test]
fn a_declaration_that_waits_for_a_name_goes_on_when_the_name_is_free() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("q", true).unwrap();
    for n in 0..100_000 {
        let bind = queue::Bind {
            queue: ShortStr::from("q"),
            exchange: ShortStr::from("amq.direct"),
            routing_key: ShortStr::from(&*n.to_string()),
            no_wait: true,
            ..queue::Bind::default()
        };
        client.send(1, bind);
    }
    client.declare("q", true).unwrap();
    client.send(1, queue::Delete { queue: ShortStr::from("q"), ..queue::Delete::default() });
    client.send(
        1,
        queue::Declare { queue: ShortStr::from("q"), durable: true, ..queue::Declare::default() },
    );
    client.flush().unwrap();
    client.expect(1, "queue.delete-ok").unwrap();
    let is_removing = server.call(|core| core.broker.is_removing());
    assert!(is_removing, "it is gone already: more bindings are needed");
    client.expect(1, "queue.declare-ok").unwrap();
    assert!(!server.call(|core| core.broker.is_removing()));
}

/// Calls of other threads that cost a turn's steps each have a turn each, however many wait.
#[test]
fn calls_that_cost_a_lot_share_a_turn_with_no_other() {
    const CALLS: usize = 20;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (release, released) = mpsc::channel::<()>();
    let (turns, ran) = mpsc::channel();
    // So that all of them wait.
    assert!(server.handle().try_call(move |_| released.recv().unwrap()));
    for _ in 0..CALLS {
        let turns = turns.clone();
        assert!(server.handle().try_call(move |core| {
            let end = core.broker.work_done() + core.broker.steps_per_turn();
            while core.broker.work_done() < end {
                let keys = core.broker.list_keys::<ExchangeReport>(None);
                core.broker.list_page::<ExchangeReport>(&keys);
            }
            turns.send(core.counters().turns).unwrap();
        }));
    }
    release.send(()).unwrap();
    let ran: Vec<u64> = (0..CALLS).map(|_| ran.recv().unwrap()).collect();
    assert!(ran.is_sorted_by(|before, after| before < after), "{ran:?}");
}

#[test]
fn close_ok_comes_when_all_deliveries_are_back_in_their_queue() {
    const MESSAGES: usize = 20_000;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("q", false).unwrap();
    for is_channel in [true, false] {
        let mut holder = Client::connect(server.address);
        holder.consume("q", false).unwrap();
        if is_channel {
            (0..MESSAGES).for_each(|_| client.publish("q", TRANSIENT, &b"m"[..]));
            client.flush().unwrap();
        }
        (0..MESSAGES).for_each(|_| drop(holder.next().unwrap()));
        if is_channel {
            holder.send(1, channel::Close { reply_code: 200, ..channel::Close::default() });
            holder.expect(1, "channel.close-ok").unwrap();
        } else {
            holder.close().unwrap();
        }
        let (ready, _) = client.declare("q", false).unwrap();
        assert_eq!(ready as usize, MESSAGES);
    }
}

/// More turns than a core takes that has nothing to do, and far fewer than one that does not wait.
const TURNS_AT_REST_MAX: u64 = 100;

/// Returns how many turns the core takes while a password is hashed, of which it needs none.
fn turns_of_a_hash(server: &Server) -> u64 {
    let turns = || server.call(|core| core.counters().turns);
    let before = turns();
    let (done, hashed) = mpsc::channel();
    server.authenticator().hash("x".into(), move |_| done.send(()).unwrap());
    hashed.recv().unwrap();
    turns() - before
}

#[test]
fn the_core_rests_while_a_client_reads_no_answers() {
    let dir = TestDir::new();
    let server = Server::start_with(NodeConfig { stop_timeout_ms: 10, ..config(dir.path()) });
    let mut deaf = Client::connect(server.address);
    let mut output = Output::new();
    for _ in 0..1_000 {
        let body = Bytes::from_static(&[7; 1_000]);
        output.publish(1, "", "nobody", true, TRANSIENT, body, FRAME_BYTES_MIN);
    }
    let returned = output.to_bytes();
    let writer = std::thread::spawn(move || while deaf.write(&returned).is_ok() {});
    let received = || server.call(|core| core.counters().bytes_received);
    let turns = loop {
        let before = received();
        let turns = turns_of_a_hash(&server);
        // It is not read any more: more is returned already than its sockets hold.
        if before > OUTPUT_BYTES_MAX as u64 && received() == before {
            break turns;
        }
    };
    assert!(turns < TURNS_AT_REST_MAX, "{turns} turns");
    drop(server);
    writer.join().unwrap();
}

/// Returns a client that consumes from `q` with the tag `deaf` and reads none of the deliveries: its socket is full, and
/// further ones wait.
fn deaf_consumer(server: &Server) -> Client {
    let mut publisher = Client::connect(server.address);
    publisher.declare("q", false).unwrap();
    let mut deaf = Client::connect(server.address);
    let (queue, consumer_tag) = (ShortStr::from("q"), ShortStr::from("deaf"));
    deaf.send(1, basic::Consume { queue, consumer_tag, no_ack: true, ..Default::default() });
    deaf.expect(1, "basic.consume-ok").unwrap();
    (0..20_000).for_each(|_| publisher.publish("q", TRANSIENT, &[7; 1_000][..]));
    let (ready, _) = publisher.declare("q", false).unwrap();
    assert!(ready > 0, "the sockets took everything: the test needs more messages");
    publisher.close().unwrap();
    deaf
}

#[test]
fn the_core_rests_while_a_closed_connection_is_not_read() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut deaf = deaf_consumer(&server);
    deaf.send(0, connection::Close { reply_code: 200, ..connection::Close::default() });
    deaf.flush().unwrap();
    server.until("it is closed", |core| core.broker.connections().is_empty());
    let turns = turns_of_a_hash(&server);
    assert!(turns < TURNS_AT_REST_MAX, "{turns} turns");
    deaf.expect(0, "connection.close-ok").unwrap();
}

/// Cancel-ok waits behind deliveries; a client that writes before it reads would wait for us as we for it.
#[test]
fn what_comes_behind_a_cancel_waits_for_no_reader() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut deaf = deaf_consumer(&server);
    deaf.send(1, basic::Cancel { consumer_tag: ShortStr::from("deaf"), no_wait: false });
    let behind = ShortStr::from("behind");
    deaf.send(1, queue::Declare { queue: behind, ..queue::Declare::default() });
    deaf.flush().unwrap();
    server.until("it is declared", |core| core.broker.queue("/", "behind").is_some());
}

//! What the process keeps in memory.

use crate::broker::{Broker, DataDir};
use crate::client::{Client, PERSISTENT, TRANSIENT};

const MIB: u64 = 1024 * 1024;

#[test]
fn idle_connections_cost_little() {
    const CONNECTIONS: u64 = 1_000;
    quelea_node::raise_file_limit();
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    // The first login hashes a password, whose memory is given back later.
    let first = Client::connect(broker.amqp);
    let before = broker.resident_bytes();
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| Client::connect(broker.amqp)).collect();
    let each = broker.resident_bytes().saturating_sub(before) / CONNECTIONS;
    println!("{each} bytes per idle connection with a channel, {before} bytes before");
    assert!(each <= 20_000, "{each} bytes per idle connection");
    drop((first, clients));
}

#[test]
fn a_consumer_that_never_reads_costs_no_more_than_its_limit() {
    const MESSAGES: usize = 200_000;
    const BODY: [u8; 1_000] = [7; 1_000];
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[("limits.resident_bytes_max", "16MiB")]);
    let mut publisher = Client::connect(broker.amqp);
    publisher.declare("deaf", true).unwrap();
    publisher.declare("heard", true).unwrap();
    publisher.confirm_select().unwrap();
    // It asks for everything, and then never reads from its socket again.
    let mut deaf = Client::connect(broker.amqp);
    deaf.consume("deaf", true).unwrap();
    let mut listener = Client::connect(broker.amqp);
    listener.consume("heard", true).unwrap();
    let mut confirmed = 0;
    for n in 0..MESSAGES {
        let properties = if n % 2 == 0 { PERSISTENT } else { TRANSIENT };
        publisher.publish("deaf", properties, &BODY[..]);
        if n % 1_000 == 999 {
            publisher.publish("heard", PERSISTENT, &b"on we go"[..]);
            confirmed += 1_001;
            publisher.until_confirmed(confirmed).unwrap();
            assert_eq!(&listener.next().unwrap().body[..], b"on we go");
        }
    }
    let resident = broker.resident_bytes();
    println!("{} MiB resident after 200 MB for a consumer that never reads", resident / MIB);
    assert!(resident < 120 * MIB, "{} MiB resident", resident / MIB);
    drop(deaf);
}

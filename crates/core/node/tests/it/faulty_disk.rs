//! What clients see of a disk that is full or fails.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use quelea_amqp_codec::method::Method;
use quelea_node::Stopped;
use quelea_testkit::disk::{Call, FakeDisk};

use crate::client::{Client, PERSISTENT};
use crate::server::Server;

const MIB: u64 = 1024 * 1024;

#[test]
fn a_full_disk_blocks_publishers_and_consumers_go_on() {
    let disk = FakeDisk::new();
    let server = Server::start_on_disk(Arc::new(disk.clone()));
    let mut consumer = Client::connect(server.address);
    consumer.declare("orders", true).unwrap();
    let mut publisher = Client::connect(server.address);
    publisher.confirm_select().unwrap();
    for _ in 0..100 {
        publisher.publish("orders", PERSISTENT, vec![7; 1_000]);
    }
    publisher.until_confirmed(100).unwrap();
    disk.set_capacity(Some(0));
    // What fits into segments that are there already is still confirmed; then comes the word.
    let mut published = 100_u64;
    let blocked = loop {
        publisher.publish("orders", PERSISTENT, vec![7; 100_000]);
        published += 1;
        match publisher.next_within(Duration::from_millis(20)).unwrap().map(|i| i.method) {
            Some(Method::ConnectionBlocked(blocked)) => break blocked,
            Some(Method::BasicAck(_)) | None => {}
            Some(other) => panic!("{other:?}"),
        }
    };
    assert!(!blocked.reason.is_empty());
    consumer.consume("orders", false).unwrap();
    for tag in 1..=100 {
        assert_eq!(consumer.next().unwrap().body.len(), 1_000);
        consumer.ack(tag, false);
    }
    disk.set_capacity(Some(64 * MIB));
    publisher.expect(0, "connection.unblocked").unwrap();
    publisher.until_confirmed(published).unwrap();
}

#[test]
fn nothing_is_confirmed_after_a_failed_sync() {
    let disk = FakeDisk::new();
    let server = Server::start_on_disk(Arc::new(disk.clone()));
    let mut publisher = Client::connect(server.address);
    publisher.declare("orders", true).unwrap();
    publisher.confirm_select().unwrap();
    disk.fail(Call::Sync, 0, 1, ErrorKind::Other);
    publisher.publish("orders", PERSISTENT, &b"lost"[..]);
    publisher.expect(0, "connection.blocked").unwrap();
    server.until("the store has failed", |core| {
        core.broker.begin_overview().0.log_failed.is_some_and(|reason| !reason.is_empty())
    });
    assert_eq!(publisher.next_within(Duration::from_millis(50)).unwrap(), None);
    let told = std::thread::spawn(move || publisher.until_gone());
    assert_eq!(server.stop(), Stopped::Unclean);
    told.join().unwrap();
}

#[test]
fn a_slow_disk_gathers_what_waits_into_few_syncs() {
    const MESSAGES: u64 = 10_000;
    let disk = FakeDisk::new();
    let server = Server::start_on_disk(Arc::new(disk.clone()));
    let mut publisher = Client::connect(server.address);
    publisher.declare("orders", true).unwrap();
    publisher.confirm_select().unwrap();
    let before = disk.syncs();
    for _ in 0..MESSAGES {
        publisher.publish("orders", PERSISTENT, &b"x"[..]);
    }
    publisher.until_confirmed(MESSAGES).unwrap();
    let syncs = disk.syncs() - before;
    assert!(syncs < MESSAGES / 10, "{syncs} syncs for {MESSAGES} messages");
}

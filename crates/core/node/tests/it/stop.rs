//! The graceful stop.

use quelea_node::{CoreStopped, Stopped};

use crate::client::{Client, Gone, PERSISTENT};
use crate::server::{Server, TestDir, block_on, config};

#[test]
fn clients_are_told_and_unacknowledged_messages_are_there_at_the_next_start() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    client.publish("orders", PERSISTENT, &b"kept"[..]);
    client.until_confirmed(1).unwrap();
    client.consume("orders", false).unwrap();
    assert_eq!(&client.next().unwrap().body[..], b"kept");
    let told = std::thread::spawn(move || client.until_gone());
    assert_eq!(server.stop(), Stopped::Clean);
    assert!(matches!(told.join().unwrap(), Gone::Closed { code: 320, .. }));
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    assert_eq!(&client.get("orders").unwrap().unwrap()[..], b"kept");
}

#[test]
fn a_client_that_does_not_answer_is_left_behind() {
    let dir = TestDir::new();
    let impatient = quelea_node::NodeConfig { stop_timeout_ms: 10, ..config(dir.path()) };
    let server = Server::start_with(impatient);
    let silent = Client::connect(server.address);
    assert_eq!(server.stop(), Stopped::Clean);
    drop(silent);
}

#[test]
fn calls_after_the_stop_are_refused() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let handle = server.handle().clone();
    assert_eq!(server.stop(), Stopped::Clean);
    assert_eq!(block_on(handle.call(|_| ())), Err(CoreStopped));
}

#[test]
fn the_directory_is_free_again_after_the_stop_and_not_before() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    assert!(quelea_node::DataDir::lock(&config(dir.path()).data_dir).is_err());
    assert_eq!(server.stop(), Stopped::Clean);
    Server::start(&dir);
}

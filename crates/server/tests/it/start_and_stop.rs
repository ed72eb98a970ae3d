//! Ready line, signals, exit codes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::broker::{Broker, DataDir, refused, word};
use crate::client::{Client, Gone, PERSISTENT};

fn confirmed_publish(client: &mut Client, queue: &str, body: &'static str) {
    client.publish(queue, PERSISTENT, body);
    client.expect(1, "basic.ack").unwrap();
}

#[test]
fn the_ready_line_names_addresses_process_and_directory() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let line = &broker.ready_line;
    assert_eq!(word(line, "pid"), broker.pid().to_string());
    assert!(word(line, "http").starts_with("127.0.0.1:"), "{line}");
    let data_dir = dir.path().canonicalize().unwrap().join("data");
    assert_eq!(word(line, "data_dir"), data_dir.to_str().unwrap());
}

#[test]
fn the_management_api_listens_where_the_ready_line_says_unless_off() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let mut stream = TcpStream::connect(word(&broker.ready_line, "http")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(broker.terminate().0.code(), Some(0));
    let broker = Broker::start(&dir, &[("http.enabled", "false")]);
    assert_eq!(word(&broker.ready_line, "http"), "-");
    assert_eq!(broker.terminate().0.code(), Some(0));
}

#[test]
fn sigterm_tells_clients_keeps_the_data_and_exits_with_0() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let mut client = Client::connect(broker.amqp);
    client.declare("orders", true).unwrap();
    client.confirm_select().unwrap();
    confirmed_publish(&mut client, "orders", "first");
    let closed = std::thread::spawn(move || client.until_gone());
    let (status, lines) = broker.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(lines.iter().any(|line| line.starts_with("quelea stopped clean=true")), "{lines:?}");
    assert!(matches!(closed.join().unwrap(), Gone::Closed { code: 320, .. }));

    let broker = Broker::start(&dir, &[]);
    let mut client = Client::connect(broker.amqp);
    assert_eq!(client.get("orders").unwrap().as_deref(), Some(&b"first"[..]));
    assert_eq!(client.get("orders").unwrap(), None);
}

#[test]
fn sigint_stops_too_and_leaves_a_silent_client_behind() {
    let dir = DataDir::new();
    let mut broker = Broker::start(&dir, &[("stop_timeout_ms", "50")]);
    let silent = Client::connect(broker.amqp);
    broker.signal(Signal::INT);
    assert_eq!(broker.wait().code(), Some(0));
    drop(silent);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let dir = DataDir::new();
    let mut broker = Broker::start(&dir, &[("stop_timeout_ms", "86400000")]);
    let mut silent = Client::connect(broker.amqp);
    broker.signal(Signal::TERM);
    // Once it was notified, the stop has begun; without an answer it would wait for a day.
    assert_eq!(silent.until_told_to_close().unwrap(), 320);
    broker.signal(Signal::TERM);
    assert_eq!(broker.wait().code(), Some(1));
}

#[test]
fn a_second_broker_on_the_directory_is_refused_with_its_owner() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let (code, errors) = refused(&dir, &[]);
    assert_eq!(code, Some(1));
    assert!(errors.contains(&format!("in use by process {}", broker.pid())), "{errors}");
}

#[test]
fn a_wrong_configuration_is_refused_with_the_key_and_its_limits() {
    let dir = DataDir::new();
    let (code, errors) = refused(&dir, &[("amqp.frame_max", "1")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("amqp.frame_max = 1 is not within 4KiB to 16MiB"), "{errors}");
    let (code, errors) = refused(&dir, &[("amqp.lisen", "127.0.0.1:0")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("amqp.lisen"), "{errors}");
}

#[test]
fn an_address_in_use_is_named() {
    let dir = DataDir::new();
    let broker = Broker::start(&dir, &[]);
    let taken = broker.amqp.to_string();
    let (code, errors) = refused(&DataDir::new(), &[("amqp.listen", &taken)]);
    assert_eq!(code, Some(1));
    assert!(errors.contains(&format!("cannot listen on {taken}")), "{errors}");
}

#[test]
fn the_first_administrator_is_the_configured_one() {
    let dir = DataDir::new();
    let settings = [("access.bootstrap_user", "ada"), ("access.bootstrap_password", "lovelace")];
    let broker = Broker::start(&dir, &settings);
    assert!(Client::login(broker.amqp, "ada", "lovelace").is_ok());
    assert!(matches!(
        Client::login(broker.amqp, "guest", "guest"),
        Err(Gone::Closed { code: 403, .. })
    ));
}

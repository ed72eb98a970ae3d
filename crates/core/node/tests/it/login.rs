//! Who may in, and how long the door stays open.

use quelea_amqp_codec::method::connection;
use quelea_amqp_codec::{ConnectionConfig, Output};
use quelea_model::limits::EARLY_BYTES_MAX;
use quelea_net::Front;

use crate::client::{Client, Gone};
use crate::server::{Server, TestDir, config, session};

#[test]
fn a_wrong_password_and_an_unknown_user_get_the_same_refusal() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let refusal = |user, password| match Client::login(server.address, user, password) {
        Err(Gone::Closed { code, text }) => (code, text),
        Err(Gone::Disconnected) => panic!("disconnected without a word"),
        Ok(_) => panic!("{user} got in with {password}"),
    };
    let (code, text) = refusal("guest", "wrong");
    assert_eq!(code, 403);
    assert!(text.starts_with("ACCESS_REFUSED"), "{text}");
    assert_eq!(refusal("nobody", "wrong"), (code, text));
}

#[test]
fn many_logins_at_once_are_all_served() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let address = server.address;
    let logins: Vec<_> = (0..50)
        .map(|_| std::thread::spawn(move || Client::login(address, "guest", "guest").is_ok()))
        .collect();
    assert!(logins.into_iter().all(|login| login.join().unwrap()));
}

#[test]
fn a_client_that_says_nothing_is_shown_out() {
    let dir = TestDir::new();
    let connection = ConnectionConfig { handshake_timeout_ms: 20, ..ConnectionConfig::default() };
    let server = Server::start_with(quelea_node::NodeConfig {
        session: session(connection),
        ..config(dir.path())
    });
    let mut silent = Client::raw(server.address).unwrap();
    assert!(matches!(silent.until_gone(), Gone::Disconnected));
    drop(silent);
    server.until("the slot is free", |core| core.counters().connections == 0);
}

#[test]
fn a_client_that_misses_its_heartbeats_is_disconnected() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut dead = Client::login_with_heartbeat(server.address, 1).unwrap();
    assert!(matches!(dead.until_gone(), Gone::Disconnected | Gone::Closed { .. }));
    server.until("the slot is free", |core| core.counters().connections == 0);
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let dir = TestDir::new();
    let limited = quelea_node::NodeConfig { connections_max: 2, ..config(dir.path()) };
    let server = Server::start_with(limited);
    let first = Client::connect(server.address);
    let _second = Client::connect(server.address);
    assert!(matches!(Client::try_connect(server.address), Err(Gone::Disconnected)));
    assert_eq!(server.call(|core| core.counters().refused), 1);
    first.close().unwrap();
    server.until("the first is gone", |core| core.counters().connections == 1);
    Client::connect(server.address);
}

#[test]
fn wrong_passwords_of_clients_that_are_gone_cost_nobody_anything() {
    const GONE: u64 = 200;
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (held, hold) = std::sync::mpsc::channel();
    // Whatever a slow machine hashes: all of them come before the first is looked at.
    server.authenticator().hash("x".into(), move |_| hold.recv().unwrap());
    for number in 0..GONE {
        Client::try_password(server.address, "guest", &format!("guess {number}")).unwrap();
    }
    server.until("all of them are known to be gone", move |core| {
        let counters = core.counters();
        (counters.accepted, counters.connections) == (GONE, 0)
    });
    held.send(()).unwrap();
    assert!(Client::login(server.address, "guest", "guest").is_ok());
    assert_eq!(server.authenticator().verifications(), 1);
}

#[test]
fn a_failure_keeps_nobody_waiting_but_the_one_who_failed() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let here = server.address.ip();
    let failed = |user| server.authenticator().failures().add(Front::Amqp, here, user);
    for _ in 0..1_000 {
        let _ = failed("guest");
    }
    let mut wrong = Client::try_password(server.address, "guest", "wrong").unwrap();
    while server.authenticator().failures().count(Front::Amqp) < 1_001 {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        assert!(Client::login(server.address, "guest", "guest").is_ok());
    }
    assert!(matches!(wrong.until_gone(), Gone::Closed { code: 403, .. }));
    assert_eq!(server.authenticator().failures().count(Front::Amqp), 1_001);
    assert!(failed("guest").delay > failed("somebody else").delay);
}

#[test]
fn who_sends_on_while_its_password_is_checked_is_shown_out() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (held, hold) = std::sync::mpsc::channel();
    server.authenticator().hash("x".into(), move |_| hold.recv().unwrap());
    let mut talker = Client::try_password(server.address, "guest", "guest").unwrap();
    // The server may close before all of it is written.
    let _ = talker.write(&[0; 64 * 1024]);
    assert!(matches!(talker.until_gone(), Gone::Disconnected));
    held.send(()).unwrap();
}

#[test]
fn what_comes_in_one_read_with_a_password_is_counted_too() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let (held, hold) = std::sync::mpsc::channel();
    server.authenticator().hash("x".into(), move |_| hold.recv().unwrap());
    let early = [0; EARLY_BYTES_MAX + 1];
    let talker = Client::try_password_before(server.address, "guest", "guest", &early);
    assert!(matches!(talker.unwrap().until_gone(), Gone::Disconnected));
    held.send(()).unwrap();
}

#[test]
fn a_client_that_does_not_wait_for_its_login_gets_in() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut early = Output::new();
    let ConnectionConfig { channel_max, frame_max, .. } = ConnectionConfig::default();
    early.method(0, &connection::TuneOk { channel_max, frame_max, heartbeat: 0 }.into());
    early.method(0, &connection::Open { virtual_host: "/".into() }.into());
    let early = early.to_bytes();
    // The second time the password is known.
    for _ in 0..2 {
        let client = Client::try_password_before(server.address, "guest", "guest", &early);
        client.unwrap().expect(0, "connection.open-ok").unwrap();
    }
}

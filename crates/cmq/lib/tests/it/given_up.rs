//! What was given up is reported to all who wait, and a push without room ends in time.

use std::future::Future as _;
use std::net::UdpSocket;
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use quelea_cmq::endpoint::Unsettled;
use quelea_cmq::{
    Config, Dest, DestinationOptions, Endpoint, Event, Key, Mode, Outcome, PushError,
};

use crate::ends::*;
use crate::tasks::block_on;

/// Returns a socket that nobody reads, and a destination there that is given up soon.
fn mute(from: &Endpoint, dead_after: Duration) -> (UdpSocket, Dest) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let key = Key::new(socket.local_addr().unwrap(), 0);
    let options =
        DestinationOptions { dead_after: Some(dead_after), ..in_mode(Mode::ReliableOrdered) };
    let dest = from.dest(key, options).unwrap();
    (socket, dest)
}

const SOON: Duration = Duration::from_millis(50);

#[test]
fn what_a_dead_peer_never_got_is_not_acknowledged() {
    let a = endpoint();
    let (_socket, dest) = mute(&a, SOON);
    dest.push(b"to nobody").unwrap();
    assert_eq!(dest.wait_acknowledged(LONG), Outcome::Abandoned);
    // It stays so, for those who ask later too.
    assert_eq!(dest.wait_acknowledged(LONG), Outcome::Abandoned);
    let again = DestinationOptions { dead_after: Some(SOON), ..in_mode(Mode::ReliableOrdered) };
    let again = a.dest(dest.key(), again).unwrap();
    assert_eq!(again.wait_acknowledged(LONG), Outcome::Abandoned);
    assert_eq!(a.close(LONG), Err(Unsettled::Abandoned { messages: 1 }));
}

#[test]
fn a_task_hears_that_its_peer_was_given_up() {
    let a = endpoint();
    let (_socket, dest) = mute(&a, SOON);
    dest.push(b"to nobody").unwrap();
    assert_eq!(block_on(dest.wait_acknowledged_async()), Outcome::Abandoned);
}

#[test]
fn an_event_says_who_was_given_up_though_nothing_else_happens() {
    let a = endpoint();
    let (_socket, dest) = mute(&a, SOON);
    dest.push(b"to nobody").unwrap();
    let event = a.next_event(LONG);
    assert_eq!(event, Some(Event::Abandoned { to: dest.key(), messages: 1 }));
}

#[test]
fn whoever_waits_while_the_endpoint_is_closed_hears_that() {
    let a = endpoint();
    let (_socket, dest) = mute(&a, LONG);
    dest.push(b"to nobody").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| dest.wait_acknowledged(LONG));
        assert_eq!(a.clone().close(Duration::ZERO), Err(Unsettled::TimedOut));
        assert_eq!(waiting.join().unwrap(), Outcome::Closed);
    });
}

/// Returns a destination with someone at it, and no room for a message of this size.
fn without_room(dead_after: Duration) -> (Endpoint, Vec<UdpSocket>, Dest, Vec<u8>) {
    let config = Config { outbox_bytes_max: 4 << 20, ..Config::default() };
    let a = Endpoint::bind("127.0.0.1:0", config).unwrap();
    let large = vec![0; 1 << 20];
    let mut sockets = Vec::new();
    loop {
        let (socket, dest) = mute(&a, dead_after);
        sockets.push(socket);
        if dest.try_push(&large).is_err() {
            // Something small would have room.
            dest.try_push(b"small").unwrap();
            return (a, sockets, dest, large);
        }
    }
}

#[test]
fn a_large_push_without_room_waits_no_longer_than_told() {
    // Had it waited on, it would have found room.
    let (_a, _sockets, dest, large) = without_room(Duration::from_secs(3));
    let pushed = dest.push_timeout(&large, Duration::from_millis(20));
    assert_eq!(pushed, Err(PushError::WouldBlock));
}

#[test]
fn a_large_push_without_room_leaves_the_executor_to_others() {
    let (_a, _sockets, dest, large) = without_room(Duration::from_secs(3));
    let mut pushing = pin!(dest.push_async(&large));
    assert!(pushing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

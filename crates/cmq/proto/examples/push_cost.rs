//! What a message costs in the state machine: `cargo run --release -p quelea-cmq-proto --example
//! push_cost`.
//!
//! Pushes into batches and takes trains, on one core and without sockets, and prints nanoseconds per
//! message.

#![expect(clippy::disallowed_methods, reason = "it measures; the crate itself reads no clock")]

use std::net::SocketAddr;
use std::time::Instant;

use bytes::BytesMut;
use quelea_cmq_proto::{
    Config, DestinationId, DestinationOptions, Endpoint, Key, Mailbox, MailboxOptions, Time,
};

const MESSAGES: usize = 1 << 20;

fn main() {
    for path_bytes in [1_232, 8_972] {
        for len in [4, 64, 512, 1_024, 4_096] {
            let (push, take) = (push(1, len, path_bytes), take(len, path_bytes));
            println!("{path_bytes:>5} {len:>5} bytes: push {push:>6.1} ns, take {take:>6.1} ns");
        }
    }
    for destinations in [100, 10_000, 100_000] {
        let push = push(destinations, 64, 1_232);
        println!("{destinations:>6} destinations, 64 bytes: push {push:>6.1} ns");
    }
}

fn endpoint() -> Endpoint {
    Endpoint::new(Config::default(), [7; 32])
}

fn destinations(endpoint: &mut Endpoint, count: usize, path_bytes: usize) -> Vec<DestinationId> {
    let options = DestinationOptions { path_bytes, credit: false, ..DestinationOptions::default() };
    (0..count)
        .map(|at| {
            let address = SocketAddr::from(([127, 0, 0, 1], 4_711));
            endpoint
                .destination(Key::new(address, at as u64), options.clone())
                .expect("there is room")
        })
        .collect()
}

/// Returns the nanoseconds per push, with the trains that it fills; the best of some rounds.
fn push(count: usize, len: usize, path_bytes: usize) -> f64 {
    let mut endpoint = endpoint();
    let ids = destinations(&mut endpoint, count, path_bytes);
    let message = vec![7; len];
    let messages = (MESSAGES * 64 / len.max(64)).max(count);
    let mut best = f64::MAX;
    for _ in 0..10 {
        let mut at = 0;
        let started = Instant::now();
        for _ in 0..messages {
            let pushed = endpoint.push(ids[at], &message, || Time::ZERO);
            at = if at + 1 == count { 0 } else { at + 1 };
            if pushed.is_err() || endpoint.has_transmit() {
                drain(&mut endpoint);
            }
        }
        best = best.min(started.elapsed().as_nanos() as f64 / messages as f64);
        endpoint.flush_all();
        drain(&mut endpoint);
    }
    best
}

fn drain(endpoint: &mut Endpoint) {
    while let Some(transmit) = endpoint.poll_transmit(Time::ZERO) {
        if let Ok(buffer) = transmit.bytes.try_into_mut() {
            endpoint.recycle(buffer);
        }
    }
}

/// Returns the nanoseconds per message to take trains, deliver them and give their room back.
fn take(len: usize, path_bytes: usize) -> f64 {
    let mut sender = endpoint();
    let id = destinations(&mut sender, 1, path_bytes)[0];
    let message = vec![7; len];
    let from = SocketAddr::from(([127, 0, 0, 1], 4_711));
    let mut receiver = endpoint();
    receiver.open_mailbox(Mailbox(0), MailboxOptions::default()).expect("it is not open");
    let (mut best, mut sink) = (f64::MAX, 0_usize);
    for _ in 0..200 {
        let mut messages = 0;
        while !sender.has_transmit() {
            sender.push(id, &message, || Time::ZERO).expect("there is room");
        }
        let train = sender.poll_transmit(Time::ZERO).expect("a train is full");
        let segment_bytes = train.segment_bytes.unwrap_or(train.bytes.len());
        let bytes = BytesMut::from(&train.bytes[..]);
        let started = Instant::now();
        receiver.on_datagrams(from, bytes, segment_bytes, Time::ZERO);
        while let Some(delivery) = receiver.poll_delivery() {
            for message in delivery.messages() {
                sink += message.len();
                messages += 1;
            }
            receiver.popped(delivery.token, Time::ZERO);
        }
        best = best.min(started.elapsed().as_nanos() as f64 / f64::from(messages));
    }
    assert!(sink > 0);
    best
}

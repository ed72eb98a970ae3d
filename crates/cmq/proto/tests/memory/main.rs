//! What destinations cost in memory, counted by an allocator of this program's own.

#![allow(clippy::unwrap_used)]

mod receiving;

use std::net::SocketAddr;

use allocation_counter::measure;
use bytes::BytesMut;
use quelea_cmq_proto::{
    Config, DestinationId, DestinationOptions, Endpoint, Key, Mailbox, MailboxOptions, Mode, Time,
};

const DESTINATIONS: usize = 100_000;

/// Fewer where each is used, which takes time; half as many fill their tables as well.
const USED: usize = DESTINATIONS / 2;

/// What a destination may cost (issue 4), with its part of the map and of all tables.
const DESTINATION_BYTES_MAX: i64 = 200;

fn key(at: usize) -> Key {
    let address = SocketAddr::from(([10, 1, (at >> 8) as u8, at as u8], 4_711));
    Key::new(address, at as u64)
}

fn endpoint() -> Endpoint {
    Endpoint::new(Config::default(), [1; 32])
}

fn make_all(
    endpoint: &mut Endpoint,
    count: usize,
    options: &DestinationOptions,
) -> Vec<DestinationId> {
    (0..count).map(|at| endpoint.destination(key(at), options.clone()).unwrap()).collect()
}

#[test]
fn a_destination_that_was_never_used_costs_little() {
    let mut endpoint = endpoint();
    let mut ids = Vec::new();
    let used =
        measure(|| ids = make_all(&mut endpoint, DESTINATIONS, &DestinationOptions::default()));
    let handles = i64::try_from(ids.capacity() * size_of::<DestinationId>()).unwrap();
    let each = (used.bytes_current - handles) / DESTINATIONS as i64;
    println!("{each} bytes a destination");
    assert!((1..=DESTINATION_BYTES_MAX).contains(&each), "{each} bytes a destination");
}

#[test]
fn a_destination_that_is_idle_again_costs_little_in_every_mode() {
    for mode in [Mode::Lossy, Mode::ReliableOrdered] {
        let options = DestinationOptions { mode, ..DestinationOptions::default() };
        let mut receiver = endpoint();
        receiver.open_other_mailboxes(MailboxOptions::default()).unwrap();
        let mut sender = endpoint();
        let ids = make_all(&mut sender, USED, &options);
        let before = measure(|| drop(make_all(&mut endpoint(), USED, &options))).bytes_current;
        assert_eq!(before, 0, "all of an endpoint's memory goes with it");
        let mut now = Time::from_micros(1);
        let used = measure(|| {
            for (at, id) in ids.iter().enumerate() {
                sender.push(*id, b"message", || now).unwrap();
                sender.flush(*id);
                exchange(&mut sender, &mut receiver, key(at).address, &mut now);
            }
        });
        // The receiver's part is not the destinations'; its flows are bounded by their own number.
        drop(receiver);
        let after = measure(|| drop(sender)).bytes_current;
        let each = -after / USED as i64;
        println!("{mode:?}: {each} bytes a destination, {} while in use", used.bytes_max);
        assert!((1..=DESTINATION_BYTES_MAX).contains(&each), "{mode:?}: {each} bytes");
    }
}

/// Carries what the two have to say, until they are silent.
fn exchange(sender: &mut Endpoint, receiver: &mut Endpoint, to: SocketAddr, now: &mut Time) {
    let from = SocketAddr::from(([10, 0, 0, 1], 9_000));
    loop {
        let mut acted = false;
        while let Some(transmit) = sender.poll_transmit(*now) {
            acted = true;
            let bytes = BytesMut::from(&transmit.bytes[..]);
            receiver.on_datagrams(from, bytes, transmit.bytes.len(), *now);
        }
        while let Some(delivery) = receiver.poll_delivery() {
            receiver.popped(delivery.token, *now);
        }
        while let Some(transmit) = receiver.poll_transmit(*now) {
            acted = true;
            let bytes = BytesMut::from(&transmit.bytes[..]);
            sender.on_datagrams(to, bytes, transmit.bytes.len(), *now);
        }
        if acted {
            continue;
        }
        let due = [sender.next_deadline(), receiver.next_deadline()].into_iter().flatten().min();
        let Some(due) = due.filter(|due| due.since_us(*now) < 1_000_000) else { return };
        *now = (*now).max(due);
        sender.on_timer(*now);
        receiver.on_timer(*now);
    }
}

#[test]
fn an_idle_queue_costs_little() {
    let mut made = None;
    let used = measure(|| {
        let mut endpoint = endpoint();
        endpoint.open_mailbox(Mailbox(1), MailboxOptions::default()).unwrap();
        let options = DestinationOptions { credit: false, ..DestinationOptions::default() };
        let id = endpoint.destination(key(1), options).unwrap();
        for _ in 0..100_000 {
            let _ = endpoint.push(id, &[7; 64], || Time::ZERO);
            while let Some(transmit) = endpoint.poll_transmit(Time::ZERO) {
                if let Ok(buffer) = transmit.bytes.try_into_mut() {
                    endpoint.recycle(buffer);
                }
            }
        }
        endpoint.flush_all();
        while endpoint.poll_transmit(Time::ZERO).is_some() {}
        made = Some(endpoint);
    });
    println!("{} bytes", used.bytes_current);
    assert!(used.bytes_current <= 200_000, "{} bytes", used.bytes_current);
    drop(made);
}

#[test]
fn a_push_by_handle_allocates_nothing_but_its_trains() {
    let mut endpoint = endpoint();
    let options =
        DestinationOptions { credit: false, path_bytes: 8_972, ..DestinationOptions::default() };
    let id = endpoint.destination(key(1), options).unwrap();
    let mut trains = 0;
    let mut fill = |endpoint: &mut Endpoint| {
        for _ in 0..100_000 {
            endpoint.push(id, &[7; 64], || Time::ZERO).unwrap();
            while let Some(transmit) = endpoint.poll_transmit(Time::ZERO) {
                trains += 1;
                endpoint.recycle(transmit.bytes.try_into_mut().unwrap());
            }
        }
    };
    // The buffers are there after the first round.
    fill(&mut endpoint);
    let used = measure(|| fill(&mut endpoint));
    println!("{} allocations for {trains} trains of both rounds", used.count_total);
    assert!(used.count_total <= 3 * trains / 2, "{} for {trains}", used.count_total);
}

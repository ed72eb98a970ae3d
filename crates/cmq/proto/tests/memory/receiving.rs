//! What peers can make an endpoint keep: no more than its configuration says.

use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::inbox::{Arrived, Inbox};
use quelea_cmq_proto::limits::FLOWS_UNPROVEN_MAX;
use quelea_cmq_proto::wire::data::{Fragment, write_message};
use quelea_cmq_proto::wire::flags::{self, FlowMode};
use quelea_cmq_proto::wire::{HEADER_BYTES, Header, Kind};

use super::*;

const REASSEMBLY_BYTES: usize = 4 << 20;

fn config() -> Config {
    Config {
        reassembly_bytes_max: REASSEMBLY_BYTES,
        message_bytes_max: 100_000,
        flows_max: 100,
        pre_shared_key: Some(PreSharedKey([1; 32])),
        ..Config::default()
    }
}

fn inbox(bytes_max: usize) -> Inbox {
    let mut inbox = Inbox::new(&config(), 1, [1; 32]);
    let options = MailboxOptions { bytes_max, ..MailboxOptions::default() };
    inbox.open(Mailbox(7), &options).unwrap();
    inbox
}

fn header(session: u64, mode: FlowMode, sequence: u64, count: u16) -> Header {
    Header {
        kind: Kind::Data,
        flags: mode as u8 | flags::CREDIT,
        flow: 1,
        session,
        mailbox: Mailbox(7),
        sequence,
        count,
        first_message: sequence as u32,
    }
}

fn take(inbox: &mut Inbox, header: &Header, body: Vec<u8>) {
    // Another sender for each session.
    let from = SocketAddr::from(([127, 0, 0, 1], header.session as u16));
    let buffer = bytes::Bytes::from(body);
    let (body, bytes) = (0..buffer.len(), HEADER_BYTES + buffer.len());
    let now = Time::from_micros(1);
    inbox.on_data(&Arrived { from, header, buffer: &buffer, body, bytes, now }).unwrap();
    while inbox.poll_answer(now).is_some() {}
}

#[test]
fn a_flood_of_forged_flows_takes_a_bounded_part() {
    let mut inbox = inbox(1 << 20);
    let used = measure(|| {
        for session in 0..20_000 {
            // Each claims a long message, leaves gaps and wants an answer.
            let fragment = Fragment { index: 1, fragments: 80, total: 90_000 };
            let mut body = Vec::new();
            fragment.write(&mut body, &[0; 90_000]);
            let mut header = header(session, FlowMode::ReliableUnordered, 1, 0);
            header.flags |= flags::FRAGMENT | flags::STATUS_WANTED;
            take(&mut inbox, &header, body);
            for sequence in 100..102 {
                let mut body = Vec::new();
                write_message(&mut body, &[7; 1_000]);
                header.flags &= !flags::FRAGMENT;
                let header =
                    Header { sequence: sequence * 3, count: 1, first_message: 1, ..header };
                take(&mut inbox, &header, body);
            }
        }
    });
    assert_eq!(inbox.flow_count(), (0, FLOWS_UNPROVEN_MAX));
    // A window of sequences, gaps, a place in each table; and the mailbox, which they filled.
    let bound = FLOWS_UNPROVEN_MAX * 4_096 + REASSEMBLY_BYTES / 8 + (2 << 20);
    assert!(used.bytes_current as usize <= bound, "{} of {bound}", used.bytes_current);
}

#[test]
fn what_waits_for_something_missing_takes_what_was_configured() {
    let mut inbox = inbox(64 << 20);
    let used = measure(|| {
        for session in 0..20 {
            for sequence in 1..5_000 {
                let mut body = Vec::new();
                write_message(&mut body, &[7; 1_000]);
                // Sealed ones are believed at once.
                let mut header = header(session, FlowMode::ReliableOrdered, sequence, 1);
                header.flags |= flags::SEALED;
                take(&mut inbox, &header, body);
            }
        }
    });
    let waiting = inbox.waiting_bytes();
    assert!(waiting > REASSEMBLY_BYTES / 8 && waiting <= REASSEMBLY_BYTES, "{waiting}");
    let bound = REASSEMBLY_BYTES + REASSEMBLY_BYTES / 4;
    assert!(used.bytes_max as usize <= bound, "{} of {bound}", used.bytes_max);
}

#[test]
fn what_nobody_pops_takes_what_its_mailbox_may_hold() {
    let mut inbox = inbox(1 << 20);
    for length in [1, 100, 8_000] {
        let used = measure(|| {
            for sequence in 0..100_000 {
                let mut body = Vec::new();
                write_message(&mut body, &vec![7; length]);
                take(&mut inbox, &header(length as u64, FlowMode::Lossy, sequence, 1), body);
            }
            let mut held = Vec::new();
            while let Some(delivery) = inbox.poll_delivery() {
                held.push(delivery);
            }
            for delivery in held {
                inbox.popped(delivery.token, Time::from_micros(1));
            }
        });
        // Twice the list of deliveries as it grows, and their buffers' own overhead.
        assert!(used.bytes_max as usize <= 5 << 20, "{length}: {}", used.bytes_max);
        assert!(inbox.counters().mailbox_full > 0);
    }
}

#[test]
fn padding_is_not_kept_with_what_it_pads() {
    for datagram_bytes in [1_200, 9_000, 60_000] {
        let mut inbox = inbox(1 << 20);
        let used = measure(|| {
            for sequence in 0..4_000 {
                let mut body = vec![0; datagram_bytes];
                body[0] = 1; // A message of one byte.
                take(&mut inbox, &header(5, FlowMode::Lossy, sequence, 1), body);
            }
        });
        assert!(inbox.counters().messages > 3_000, "{:?}", inbox.counters());
        assert!(used.bytes_current < 2 << 20, "{datagram_bytes}: {} bytes", used.bytes_current);
    }
}

#[test]
fn flows_that_wait_for_room_and_are_forgotten_leave_nothing_behind() {
    let mut receiver = endpoint();
    let options = MailboxOptions { bytes_max: 1 << 20, ..MailboxOptions::default() };
    receiver.open_mailbox(Mailbox(7), options).unwrap();
    let mut now = Time::from_micros(1);
    let mut send = |session: u64, mode, sequence: u64| {
        let from = SocketAddr::from(([127, 0, 0, 1], session as u16));
        let mut datagram = BytesMut::zeroed(HEADER_BYTES);
        header(session, mode, sequence, 1).write(&mut datagram);
        write_message(&mut datagram, &[0; 60_000]);
        let bytes = datagram.len();
        now = now.after(core::time::Duration::from_millis(1));
        receiver.on_timer(now);
        receiver.on_datagrams(from, datagram, bytes, now);
        while receiver.poll_transmit(now).is_some() {}
    };
    // Nobody pops, so the mailbox is full.
    (0..20).for_each(|sequence| send(1, FlowMode::Lossy, sequence));
    let mut flood = |sessions: core::ops::Range<u64>| {
        sessions.for_each(|session| send(session, FlowMode::ReliableOrdered, 1));
    };
    // Until the tables have their size.
    flood(10..10_000);
    let used = measure(|| flood(10_000..20_000)).bytes_current;
    assert!(used < 10_000, "{used} bytes more");
}

#[test]
fn a_forged_datagram_of_a_group_allocates_next_to_nothing() {
    let mut receiver = Endpoint::new(config(), [1; 32]);
    receiver.open_mailbox(Mailbox(7), MailboxOptions::default()).unwrap();
    let from = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut buffers = (0..1_000).map(|session| {
        let mut forged = header(session, FlowMode::Lossy, 0, 0);
        forged.flags = flags::SEALED;
        let mut datagram = BytesMut::zeroed(HEADER_BYTES + 20);
        forged.write(&mut datagram);
        datagram
    });
    let made = measure(|| buffers.by_ref().take(500).for_each(drop)).bytes_total;
    let used = measure(|| {
        for datagram in buffers {
            let bytes = datagram.len();
            receiver.on_datagrams(from, datagram, bytes, Time::from_micros(1));
        }
    });
    assert_eq!(receiver.stats().dropped.not_authentic, 500);
    let each = (used.bytes_total - made) / 500;
    assert!(each < 100, "{each} bytes a datagram");
}

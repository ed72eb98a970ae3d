//! Mailboxes that nobody empties, and the windows that they close.

use std::time::Duration;

use quelea_cmq_proto::limits::WINDOW_DATAGRAMS_MAX;
use quelea_cmq_proto::{Key, Mailbox, MailboxOptions, PushError};

use super::*;
use crate::pair::{MAILBOX, messages};

const MODES: [Mode; 5] = [
    Mode::Lossy,
    Mode::LatestOnly,
    Mode::ReliableUnordered,
    Mode::ReliableOrdered,
    Mode::ReliableUntil(Duration::from_secs(3_600)),
];

/// Returns a pair whose server has a mailbox of so many bytes, which nobody pops.
fn unpopped(bytes_max: usize, receive_window_bytes: usize) -> EndpointPair {
    let config = Config { receive_window_bytes, ..Config::default() };
    let mut pair = EndpointPair::new(config);
    pair.server.close_mailbox(MAILBOX);
    let options = MailboxOptions { bytes_max, ..MailboxOptions::default() };
    pair.server.open_mailbox(MAILBOX, options).unwrap();
    pair.pops = false;
    pair
}

/// Pushes until the sender has no more room; returns how many it took.
fn push_until_full(
    pair: &mut EndpointPair,
    to: quelea_cmq_proto::DestinationId,
    all: &[Vec<u8>],
) -> usize {
    for (at, message) in all.iter().enumerate() {
        let mut waited = 0;
        while let Err(refused) = pair.push(to, message) {
            assert_eq!(refused, PushError::WouldBlock);
            pair.run_for(Duration::from_millis(1));
            waited += 1;
            if waited == 20 {
                return at;
            }
        }
    }
    all.len()
}

#[test]
fn a_mailbox_that_nobody_pops_closes_the_window_without_loss() {
    for mode in MODES {
        for bytes_max in [10_000, 100_000, 1_000_000] {
            let mut pair = unpopped(bytes_max, 1 << 20);
            let to = pair.destination(in_mode(mode));
            let all = messages(100_000, 1_000);
            let pushed = push_until_full(&mut pair, to, &all);
            let held: usize = pair.deliveries.iter().map(|delivery| delivery.batch.len()).sum();
            let first = if bytes_max < 64 << 10 { 64 << 10 } else { 0 };
            assert!(held <= bytes_max + first, "{mode:?}: {held} of {bytes_max}");
            assert!(pushed < all.len(), "{mode:?}, {bytes_max}: the window never closed");
            pair.run_for(Duration::from_secs(10));
            let before = pair.server.stats().received.mailbox_full;
            pair.run_for(Duration::from_secs(10));
            let after = pair.server.stats().received.mailbox_full;
            assert_eq!(after, before, "{mode:?}, {bytes_max}: sent against a closed window");
            pair.pops = true;
            pair.push_all(to, &all[pushed..pushed + 1_000]);
            pair.run();
            // A new sender may send a train unasked, for which a small mailbox has no room.
            let refused = pair.server.stats().received.mailbox_full_messages as usize;
            if mode.is_reliable() || bytes_max > 64 << 10 {
                assert_eq!(refused, 0, "{mode:?}, {bytes_max}");
            }
            assert_eq!(pair.received.len() + refused, pushed + 1_000, "{mode:?}, {bytes_max}");
            assert_eq!(pair.server.stats().received.lost_messages, 0);
        }
    }
}

#[test]
fn a_mailbox_that_nobody_pops_does_not_hold_back_another() {
    for mode in MODES {
        let mut pair = unpopped(100_000, 1 << 20);
        let other = Mailbox(8);
        pair.server.open_mailbox(other, MailboxOptions::default()).unwrap();
        let stuck = pair.destination(in_mode(mode));
        let all = messages(10_000, 1_000);
        push_until_full(&mut pair, stuck, &all);
        let key = Key { address: pair.server_address, mailbox: other };
        let free = pair.client.destination(key, in_mode(mode)).unwrap();
        let started = pair.now;
        pair.push_all(free, &all[..5_000]);
        pair.client.flush(free);
        pair.run_for(Duration::from_millis(50));
        let came = pair.deliveries.iter().filter(|delivery| delivery.mailbox == other);
        let count: u32 = came.map(|delivery| delivery.count).sum();
        assert_eq!(count, 5_000, "{mode:?}");
        assert!(pair.now.since_us(started) < 1_000_000, "{mode:?}");
    }
}

#[test]
fn what_is_popped_slowly_comes_slowly_and_whole() {
    for mode in MODES {
        let mut pair = unpopped(200_000, 1 << 20);
        let to = pair.destination(in_mode(mode));
        let all = messages(3_000, 1_000);
        let mut pushed = 0;
        for _ in 0..100_000 {
            while pushed < all.len() && pair.push(to, &all[pushed]).is_ok() {
                pushed += 1;
            }
            pair.run_for(Duration::from_micros(200));
            if let Some(delivery) = pair.deliveries.pop_front() {
                pair.received.extend(delivery.messages().map(<[u8]>::to_vec));
                pair.server.popped(delivery.token, pair.now);
            } else if pushed == all.len() && pair.client.is_settled(to) {
                break;
            }
        }
        assert!(pair.received == all, "{mode:?}: {} of {pushed}", pair.received.len());
        assert_eq!(pair.server.stats().received.mailbox_full, 0, "{mode:?}");
    }
}

#[test]
fn an_application_that_acknowledges_holds_the_sender_back_until_it_does() {
    let mut pair = EndpointPair::new(Config::default());
    pair.server.close_mailbox(MAILBOX);
    let options = MailboxOptions { acknowledged_by_application: true, ..MailboxOptions::default() };
    pair.server.open_mailbox(MAILBOX, options).unwrap();
    pair.pops = false;
    let to = pair.destination(in_mode(Mode::ReliableOrdered));
    pair.push_all(to, messages(500, 1_000));
    pair.client.flush(to);
    pair.run_for(Duration::from_millis(100));
    let tokens: Vec<_> = pair.deliveries.iter().map(|delivery| delivery.token).collect();
    let count: u32 = pair.deliveries.iter().map(|delivery| delivery.count).sum();
    assert_eq!(count, 500);
    for token in &tokens {
        pair.server.popped(*token, pair.now);
    }
    pair.run_for(Duration::from_secs(1));
    assert!(!pair.client.is_settled(to), "popped, and not acknowledged");
    pair.server.acknowledge(*tokens.last().unwrap(), pair.now);
    pair.run();
    assert!(pair.client.is_settled(to), "the last one stands for all before it");
    assert_eq!(pair.server.stats().received.duplicates, 0, "nothing was repeated meanwhile");
}

#[test]
fn what_is_never_acknowledged_takes_bounded_memory() {
    for mode in MODES.into_iter().filter(|mode| mode.is_reliable()) {
        let mut pair = EndpointPair::new(Config::default());
        pair.server.close_mailbox(MAILBOX);
        let acknowledged_by_application = true;
        let options = MailboxOptions { acknowledged_by_application, ..MailboxOptions::default() };
        pair.server.open_mailbox(MAILBOX, options).unwrap();
        pair.pops = false;
        let to = pair.destination(in_mode(mode));
        let all = messages(2 * WINDOW_DATAGRAMS_MAX, 700);
        let (mut rest, mut tokens) = (&all[..], Vec::new());
        // So long that each takes a datagram of its own; popped at once.
        let mut turn = |pair: &mut EndpointPair| {
            while let Some((message, others)) = rest.split_first()
                && pair.push(to, message).is_ok()
            {
                pair.client.flush(to);
                rest = others;
            }
            pair.run_for(Duration::from_millis(1));
            for delivery in std::mem::take(&mut pair.deliveries) {
                pair.received.extend(delivery.messages().map(<[u8]>::to_vec));
                pair.server.popped(delivery.token, pair.now);
                tokens.push(delivery.token);
            }
            tokens.last().copied()
        };
        for _ in 0..1_000 {
            turn(&mut pair);
        }
        // The last few places are not worth a window.
        let came = pair.received.len();
        assert!((WINDOW_DATAGRAMS_MAX - 2..=WINDOW_DATAGRAMS_MAX).contains(&came), "{came}");
        let before = pair.server.stats().received.datagrams;
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.server.stats().received.datagrams, before, "{mode:?}: the window is shut");
        for _ in 0..1_000 {
            if let Some(last) = turn(&mut pair) {
                pair.server.acknowledge(last, pair.now);
            }
        }
        pair.run();
        assert!(pair.client.is_settled(to));
        assert!(pair.received == all, "{mode:?}: {}", pair.received.len());
    }
}

#[test]
fn a_message_in_many_fragments_passes_a_smaller_mailbox() {
    for mode in MODES {
        let mut pair = unpopped(20_000, 1 << 20);
        pair.pops = true;
        let options = DestinationOptions { path_bytes: 128, ..in_mode(mode) };
        let to = pair.destination(options);
        let sent: Vec<Vec<u8>> = [16_000, 100, 12_000, 8_000].map(|len| vec![7; len]).into();
        pair.push_all(to, &sent);
        pair.run();
        let refused = pair.server.stats().received.mailbox_full;
        // A lossy sender may send a train unasked, for which this mailbox has no room.
        if mode.is_reliable() || refused == 0 {
            let sizes: Vec<_> = pair.received.iter().map(Vec::len).collect();
            assert!(pair.received == sent, "{mode:?}: {sizes:?}");
        }
    }
}

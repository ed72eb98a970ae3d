//! Whoever waits is woken, whoever reads the socket.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use quelea_cmq::endpoint::Backend;
use quelea_cmq::{
    Config, DestinationOptions, Endpoint, Event, Key, MailboxOptions, Mode, Outcome, PushError,
};

use crate::ends::*;

#[test]
fn a_popper_gets_what_another_one_reads_for_it() {
    const ROUNDS: u32 = 500;
    let (a, b) = (endpoint(), endpoint());
    let queues = [queue(&b, 1), queue(&b, 2)];
    let dests = [dest(&a, &b, 1, Mode::Lossy), dest(&a, &b, 2, Mode::Lossy)];
    let back = queue(&a, 0);
    thread::scope(|scope| {
        for queue in &queues {
            scope.spawn(|| {
                let back = dest(&b, &a, 0, Mode::Lossy);
                for _ in 0..ROUNDS {
                    back.push(&queue.pop_timeout(LONG).unwrap().bytes).unwrap();
                    back.flush();
                }
            });
        }
        // Each time one of the two waits beside the other, and either may be the one that reads.
        for round in 0..ROUNDS {
            for dest in &dests {
                dest.push(&round.to_le_bytes()).unwrap();
                dest.flush();
                assert_eq!(back.pop_timeout(LONG).unwrap().bytes[..], round.to_le_bytes());
            }
        }
    });
}

#[test]
fn poppers_of_one_queue_share_its_messages() {
    const MESSAGES: u32 = 20_000;
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 0);
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    let seen = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(message) = queue.pop() {
                    let number = u32::from_le_bytes(message.bytes[..].try_into().unwrap());
                    let mut seen = seen.lock().unwrap();
                    assert!(seen.insert(number), "{number} came twice");
                    if seen.len() == MESSAGES as usize {
                        queue.close();
                    }
                }
            });
        }
        for number in 0..MESSAGES {
            dest.push(&number.to_le_bytes()).unwrap();
        }
        dest.flush();
    });
    assert_eq!(seen.into_inner().unwrap().len(), MESSAGES as usize);
}

#[test]
fn what_is_popped_in_batches_is_whole_and_in_order() {
    const MESSAGES: u32 = 10_000;
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 0);
    let dest = dest(&a, &b, 0, Mode::Lossy);
    let messages: Vec<_> = (0..MESSAGES).map(u32::to_le_bytes).collect();
    assert_eq!(dest.push_batch(&messages), Ok(MESSAGES as usize));
    dest.flush();
    let mut popped = Vec::new();
    while popped.len() < messages.len() {
        // Batches end in the middle of datagrams too.
        let count = queue.pop_batch(333, LONG, |message| {
            popped.push(<[u8; 4]>::try_from(message.bytes).unwrap());
        });
        assert!((1..=333).contains(&count));
    }
    assert_eq!(popped, messages);
}

#[test]
fn waiting_ends_with_the_endpoint() {
    let b = endpoint();
    let queue = queue(&b, 0);
    thread::scope(|scope| {
        let popping = scope.spawn(|| queue.pop().is_none());
        let beside = scope.spawn(|| queue.pop().is_none());
        b.clone().close(LONG).unwrap();
        assert!(popping.join().unwrap() && beside.join().unwrap());
    });
    assert!(queue.is_closed());
    let dest = b.dest(Key::new(b.local_addr(), 0), DestinationOptions::default());
    assert_eq!(dest.unwrap().push(b"late"), Err(PushError::Closed));
}

#[test]
fn a_push_without_room_waits_no_longer_than_told() {
    let config = Config { outbox_bytes_max: 256 << 10, ..Config::default() };
    let a = Endpoint::bind("127.0.0.1:0", config).unwrap();
    let b = endpoint();
    // Nobody has opened the mailbox: nothing is acknowledged.
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    let refused = loop {
        if let Err(refused) = dest.push_timeout(&[0; 1_000], Duration::from_millis(20)) {
            break refused;
        }
    };
    assert_eq!(refused, PushError::WouldBlock);
    // Now there is somebody: the next push finds room.
    let queue = queue(&b, 0);
    thread::scope(|scope| {
        scope.spawn(|| queue.pop_timeout(LONG).unwrap());
        dest.push_timeout(&[1; 1_000], LONG).unwrap();
    });
}

#[test]
fn what_the_application_acknowledges_is_what_the_sender_hears_of() {
    let (a, b) = (endpoint(), endpoint());
    let options = MailboxOptions { acknowledged_by_application: true, ..MailboxOptions::default() };
    let queue = b.queue(0, options).unwrap();
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    dest.push(b"to be kept").unwrap();
    dest.flush();
    let message = queue.pop_timeout(LONG).unwrap();
    assert_eq!(dest.wait_acknowledged(Duration::from_millis(50)), Outcome::TimedOut);
    queue.acknowledge(message.receipt());
    assert!(dest.wait_acknowledged(LONG).is_acknowledged());
}

#[test]
fn the_end_of_a_sender_is_an_event_behind_its_messages() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 5);
    let dest = dest(&a, &b, 5, Mode::ReliableOrdered);
    dest.push(b"last words").unwrap();
    dest.close();
    assert_eq!(&queue.pop_timeout(LONG).unwrap().bytes[..], b"last words");
    let event = b.next_event(LONG).unwrap();
    assert!(
        matches!(event, Event::Ended { from, mailbox, .. }
            if from == a.local_addr() && mailbox.0 == 5),
        "{event:?}"
    );
}

#[test]
fn what_was_pushed_arrives_though_the_sender_is_gone() {
    let b = endpoint();
    let queue = queue(&b, 0);
    for mode in [Mode::Lossy, Mode::ReliableOrdered] {
        let a = endpoint();
        dest(&a, &b, 0, mode).push(b"bye").unwrap();
        drop(a);
        assert_eq!(&queue.pop_timeout(LONG).unwrap().bytes[..], b"bye");
    }
}

#[test]
fn a_receiver_that_closes_at_once_has_acknowledged_what_it_popped() {
    for _ in 0..20 {
        let (a, b) = (endpoint(), endpoint());
        let queue = queue(&b, 0);
        let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
        dest.push(b"hello").unwrap();
        dest.flush();
        assert!(queue.pop_timeout(LONG).is_some());
        drop(queue);
        b.close(LONG).unwrap();
        assert!(dest.wait_acknowledged(LONG).is_acknowledged());
    }
}

#[test]
fn what_was_popped_is_acknowledged_though_more_was_not() {
    const SENT: usize = 40;
    const POPPED: usize = 30;
    for closes_queue in [true, false] {
        let (a, b) = (endpoint(), endpoint());
        let queue = queue(&b, 0);
        let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
        for _ in 0..SENT {
            dest.push(b"a datagram of its own").unwrap();
            dest.flush();
        }
        let kept = || dest.stats().unwrap().kept_bytes;
        let all = kept();
        while b.stats().proto.received.messages < SENT as u64 {
            thread::yield_now();
        }
        (0..POPPED).for_each(|_| drop(queue.try_pop().unwrap()));
        if closes_queue {
            drop(queue);
        }
        b.close(Duration::ZERO).unwrap();
        // The rest is never acknowledged.
        let left = all / SENT * (SENT - POPPED);
        let acknowledged = (0..10_000).any(|_| {
            let _ = dest.wait_acknowledged(Duration::from_millis(1));
            kept() == left
        });
        assert!(acknowledged, "{} of {all} bytes are kept, not {left}", kept());
    }
}

#[test]
fn all_other_mailboxes_can_be_one_queue() {
    let (a, b) = (endpoint(), endpoint());
    let own = queue(&b, 1);
    let others = b.queue_of_others(MailboxOptions::default()).unwrap();
    assert!(b.queue_of_others(MailboxOptions::default()).is_err());
    for mailbox in [1, 2, u64::MAX] {
        let dest = dest(&a, &b, mailbox, Mode::ReliableOrdered);
        dest.push(&mailbox.to_le_bytes()).unwrap();
        dest.flush();
    }
    let mut mailboxes = [(); 2].map(|()| others.pop_timeout(LONG).unwrap().mailbox.0);
    mailboxes.sort_unstable();
    assert_eq!(mailboxes, [2, u64::MAX]);
    assert_eq!(own.pop_timeout(LONG).unwrap().mailbox.0, 1);
}

#[test]
fn the_portable_driver_and_ipv6_do_the_same() {
    const MESSAGES: u32 = 5_000;
    for address in ["127.0.0.1:0", "[::1]:0"] {
        for (one, other) in
            [(Backend::Portable, Backend::Native), (Backend::Native, Backend::Portable)]
        {
            let open = |backend| {
                let socket = std::net::UdpSocket::bind(address).unwrap();
                Endpoint::with_backend(socket, Config::default(), backend).unwrap()
            };
            let (a, b) = (open(one), open(other));
            let queue = queue(&b, 0);
            let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..MESSAGES {
                        dest.push(&[number.to_le_bytes(); 25].concat()).unwrap();
                    }
                    dest.flush();
                });
                for number in 0..MESSAGES {
                    let message = queue.pop_timeout(LONG).unwrap();
                    assert_eq!(message.bytes[..4], number.to_le_bytes());
                }
            });
        }
    }
}

#[test]
fn what_a_batch_leaves_over_goes_to_who_waits_meanwhile() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 1);
    let dest = dest(&a, &b, 1, Mode::ReliableOrdered);
    dest.push_batch((0..10_u8).map(|number| [number])).unwrap();
    dest.flush();
    thread::scope(|scope| {
        let mut other = None;
        let popped = queue.pop_batch(1, LONG, |_| {
            // The rest of the delivery is out of the ring while this runs: the other one has to wait.
            let waits = scope.spawn(|| queue.pop_timeout(LONG).map(|message| message.bytes[0]));
            (0..1_000).for_each(|_| thread::yield_now());
            other = Some(waits);
        });
        assert_eq!(popped, 1);
        assert_eq!(other.unwrap().join().unwrap(), Some(1));
    });
}

#[test]
fn a_function_that_panics_loses_only_the_message_that_it_was_given() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 1);
    let dest = dest(&a, &b, 1, Mode::ReliableOrdered);
    dest.push_batch((0..10_u8).map(|number| [number])).unwrap();
    dest.flush();
    for max in [3, 100] {
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            queue.pop_batch(max, LONG, |_| panic!("on purpose"))
        }));
        assert!(panics.is_err());
    }
    let rest: Vec<_> = std::iter::from_fn(|| queue.try_pop()).map(|each| each.bytes[0]).collect();
    assert_eq!(rest, (2..10).collect::<Vec<_>>());
}

//! What is pushed can be popped.

use std::thread;
use std::time::Duration;

use quelea_cmq::{Mode, PushError};

use crate::ends::*;

const MODES: [Mode; 5] = [
    Mode::Lossy,
    Mode::LatestOnly,
    Mode::ReliableUnordered,
    Mode::ReliableOrdered,
    Mode::ReliableUntil(Duration::from_secs(60)),
];

#[test]
fn a_message_goes_from_one_end_to_the_other() {
    for mode in MODES {
        let (a, b) = (endpoint(), endpoint());
        let queue = queue(&b, 7);
        let dest = dest(&a, &b, 7, mode);
        dest.push(b"hello").unwrap();
        let message = queue.pop_timeout(LONG).unwrap();
        assert_eq!(&message.bytes[..], b"hello", "{mode:?}");
        assert_eq!(message.from, a.local_addr());
        assert_eq!(message.mailbox.0, 7);
        assert_eq!(message.mode.is_reliable(), mode.is_reliable());
    }
}

#[test]
fn what_is_pushed_in_a_hurry_is_neither_lost_nor_reordered() {
    const MESSAGES: u64 = 200_000;
    for mode in [Mode::Lossy, Mode::ReliableOrdered] {
        let (a, b) = (endpoint(), endpoint());
        let queue = queue(&b, 0);
        let dest = dest(&a, &b, 0, mode);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    dest.push(&[number.to_le_bytes(); 8].concat()).unwrap();
                }
                assert!(dest.wait_acknowledged(LONG).is_acknowledged());
            });
            for number in 0..MESSAGES {
                let message = queue.pop_timeout(LONG).unwrap();
                assert_eq!(message.bytes[..8], number.to_le_bytes(), "{mode:?}");
            }
        });
        assert_eq!(b.stats().kernel_drops, 0);
    }
}

#[test]
fn what_is_too_large_for_ever_is_refused_with_the_limit() {
    let (a, b) = (endpoint(), endpoint());
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    let refused = dest.push(&vec![0; (1 << 20) + 1]);
    assert!(matches!(refused, Err(PushError::TooLarge { bytes: 1_048_577, limit: 1_048_576 })));
}

//! Receipts that nobody gave out. Their sum protects from typing errors only: whoever knows the format can make one of any numbers.

use std::collections::HashSet;

use quelea_sqs_protocol::{NewMessage, ReceiptOutcome, Receive};
use quelea_testkit::{Seed, seeds};
use uuid::Uuid;

use super::chaos::Chaos;
use super::standard_simulation::{StandardSimulation, in_virtual_time};
use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::VISIBILITY_MS_MAX;
use crate::standard::receipt::Receipt;

const MESSAGES: usize = 50;
const FORGED: usize = 400;

/// Returns a number near the genuine one, one at an end of what there are, or any.
fn number(rng: &mut fastrand::Rng, genuine: i64) -> i64 {
    let around = genuine.saturating_add(rng.i64(-2..=2));
    [i64::MIN, -1, 0, 1, i64::MAX, i64::MAX - 1, rng.i64(..), around][rng.usize(..8)]
}

/// Returns a receipt of the same queue, for a message that is not there.
fn forged(rng: &mut fastrand::Rng, genuine: &Receipt) -> Receipt {
    let entry = genuine.entry;
    let mut bucket = |of: Bucket| Bucket { start_s: number(rng, of.start_s), level: rng.i8(0..5) };
    let (body, bucket) = (bucket(entry.body), bucket(entry.bucket));
    let entry = Entry {
        message: Uuid::from_u128(rng.u128(..)),
        body,
        bucket,
        visible_at_us: number(rng, entry.visible_at_us),
        written_at_us: number(rng, entry.written_at_us),
        receive_count: number(rng, 1) as i32,
        first_received_at_ms: number(rng, entry.first_received_at_ms),
        bytes: number(rng, 4) as i32,
        group: number(rng, 0),
    };
    let received_at_ms = number(rng, genuine.received_at_ms);
    let generation =
        if rng.u8(..4) == 0 { Uuid::from_u128(rng.u128(..)) } else { genuine.generation };
    Receipt { entry, received_at_ms, generation, ..*genuine }
}

#[test]
fn receipts_of_any_numbers_break_nothing_and_hide_no_message() {
    seeds::for_each(0..10, |Seed(seed)| {
        in_virtual_time(async move {
            fastrand::seed(seed);
            let simulation = StandardSimulation::new(Chaos { front_ends: 1, ..Chaos::NONE }).await;
            let (standard, facts) =
                (simulation.any_front_end().standard.clone(), simulation.queue.clone());
            let new = || NewMessage { body: "body".into(), ..NewMessage::default() };
            let sent = standard.send(&facts, (0..MESSAGES).map(|_| new()).collect()).await.unwrap();
            let mut waiting: HashSet<String> =
                sent.into_iter().map(|sent| sent.unwrap().message_id).collect();
            let receive = Receive {
                max: 10,
                visibility_timeout_ms: VISIBILITY_MS_MAX,
                wait_ms: 0,
                attempt_id: None,
            };
            let first = standard.receive(&facts, Receive { max: 1, ..receive.clone() }).await;
            let first = first.unwrap().remove(0);
            assert!(waiting.remove(&first.message_id));
            let genuine = Receipt::decode(&first.delivery).unwrap();
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..FORGED {
                let bytes = forged(&mut rng, &genuine).encode();
                if rng.bool() {
                    standard.delete(&facts, vec![bytes]).await.unwrap();
                } else {
                    let timeout_ms = [0, 1, VISIBILITY_MS_MAX][rng.usize(..3)];
                    let outcome =
                        standard.change_visibility(&facts, vec![(bytes, timeout_ms)]).await;
                    assert_ne!(
                        outcome.unwrap(),
                        [ReceiptOutcome::Done],
                        "there is no such message"
                    );
                }
            }
            loop {
                let received = standard.receive(&facts, receive.clone()).await.unwrap();
                if received.is_empty() {
                    break;
                }
                for message in received {
                    assert!(waiting.remove(&message.message_id), "it was delivered once");
                }
            }
            assert!(waiting.is_empty(), "{} messages are hidden", waiting.len());
            assert_eq!(
                standard.delete(&facts, vec![first.delivery]).await.unwrap(),
                [ReceiptOutcome::Done]
            );
        });
    });
}

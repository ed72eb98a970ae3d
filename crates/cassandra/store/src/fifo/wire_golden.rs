//! The examples of docs/formats/fifo.md are what is sent, and what is sent is read. Their bytes were made by another program, from
//! that page alone.

use std::sync::Arc;

use bytes::Bytes;
use quelea_cassandra_fifo::{
    Content, MoveCall, MovedOut, PeekedRow, PeekedRows, RowKey, SegmentKey,
};
use quelea_sqs_protocol::{
    Backlog, Fault, MessageAttribute, PeekedState, QueueRef, ReceiptOutcome, Receive, Received,
    Sent,
};
use quelea_testkit::golden::examples;
use uuid::Uuid;

use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use super::proof::{digest, mac};
use super::wire::{PATH, decode_answer, decode_call, encode_answer, encode_call};

const PAGE: &str = include_str!("../../../../../docs/formats/fifo.md");

pub(super) fn named(name: &str) -> QueueRef {
    QueueRef { account: "000000000000".into(), name: name.into() }
}

pub(super) fn queue(redrive: Option<(QueueRef, u32)>) -> FifoQueue {
    FifoQueue {
        name: named("q.fifo"),
        id: Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        generation: Uuid::from_u128(2),
        retention_ms: 345_600_000,
        redrive,
    }
}

pub(super) fn content() -> Content {
    Content {
        body: Bytes::from_static(b"body"),
        attributes: vec![MessageAttribute {
            name: "a".into(),
            data_type: "Binary".into(),
            value: Bytes::from_static(&[0, 255]),
        }],
        sender: "sender".into(),
        trace_header: Some("trace".into()),
        group_id: "g".into(),
        deduplication_id: Some("id".into()),
        source: Some(named("q.fifo")),
        earlier_receives: 5,
    }
}

fn calls() -> Vec<(&'static str, FifoQueue, Operation)> {
    let full = Outgoing {
        id: Some(Uuid::from_u128(7)),
        content: Arc::new(content()),
        delay_ms: 8,
        ttl_s: 900,
        deduplication: Some(std::array::from_fn(|at| at as u8)),
    };
    let small = Content { body: "x".into(), group_id: "g".into(), ..Content::default() };
    let small = Outgoing {
        id: None,
        content: Arc::new(small),
        delay_ms: 0,
        ttl_s: 60,
        deduplication: None,
    };
    let receive = Receive {
        max: 10,
        visibility_timeout_ms: 30_000,
        wait_ms: 20_000,
        attempt_id: Some("attempt".into()),
    };
    let plain = [
        ("receive", Operation::Receive(receive)),
        ("delete", Operation::Delete(vec![vec![1, 2], vec![]])),
        ("change-visibility", Operation::ChangeVisibility(vec![(vec![3], 30_000)])),
        ("backlog", Operation::Backlog),
        ("move-out", Operation::MoveOut(MoveCall { max: 100, to: Some(named("to.fifo")) })),
        ("peek", Operation::Peek(20)),
    ];
    let send = Operation::Send(vec![full, small]);
    let mut all = vec![("send", queue(Some((named("dead.fifo"), 4))), send)];
    all.extend(plain.map(|(name, operation)| (name, queue(None), operation)));
    all
}

fn received() -> Received {
    let content = content();
    Received {
        delivery: vec![1],
        message_id: "m".into(),
        body: content.body,
        attributes: content.attributes,
        receive_count: 2,
        sent_at_ms: 1_700_000_000_000,
        first_received_at_ms: 1_700_000_000_001,
        sender_id: Some(content.sender),
        trace_header: content.trace_header,
        group_id: Some(content.group_id),
        deduplication_id: content.deduplication_id,
        sequence_number: Some("5".into()),
        dead_letter_source: content.source,
    }
}

fn peeked() -> PeekedRows {
    let row = |number, receive_count, state| PeekedRow {
        row: RowKey { segment: SegmentKey { epoch: 3, first: 1_000 }, number },
        id: Uuid::from_u128(4),
        bytes: 5,
        receive_count,
        first_received_at_ms: 7,
        state,
    };
    PeekedRows {
        messages: vec![
            row(1_001, Some(6), Some(PeekedState::Visible)),
            row(1_002, Some(6), Some(PeekedState::Delayed { until_ms: 8 })),
            row(1_003, Some(6), Some(PeekedState::InFlight { until_ms: 9 })),
            row(1_004, None, None),
        ],
        is_whole: false,
    }
}

fn answers() -> Vec<(&'static str, Answer)> {
    let sent = Sent { message_id: "m".into(), sequence_number: Some("6".into()) };
    let outcomes = [
        ReceiptOutcome::Done,
        ReceiptOutcome::Invalid,
        ReceiptOutcome::NotInFlight,
        ReceiptOutcome::NoSuchMessage,
        ReceiptOutcome::Expired,
        ReceiptOutcome::TooLong,
    ];
    let backlog = Backlog { visible: 1, in_flight: 200, delayed: 3, oldest_age_s: 40_000 };
    vec![
        ("sent", Answer::Sent(vec![Ok(sent), Err(Fault::Invalid("why".into()))])),
        ("received", Answer::Received(vec![received()])),
        ("settled", Answer::Settled(outcomes.to_vec())),
        ("backlog-is", Answer::Backlog(backlog)),
        ("failed", Answer::Failed(Fault::Unavailable("why".into()))),
        ("not-found", Answer::Failed(Fault::NotFound("why".into()))),
        ("not-owner", Answer::NotOwner),
        ("moved-out", Answer::MovedOut(MovedOut { moved: 100, is_empty: true })),
        ("peeked", Answer::Peeked(peeked())),
    ]
}

#[test]
fn the_examples_of_the_page_are_what_is_sent_and_read() {
    let (examples, calls, answers) = (examples(PAGE), calls(), answers());
    let names = calls.iter().map(|(name, ..)| *name).chain(answers.iter().map(|(name, _)| *name));
    assert_eq!(
        examples.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        names.collect::<Vec<_>>()
    );
    let (of_calls, of_answers) = examples.split_at(calls.len());
    for ((name, bytes), (_, queue, operation)) in of_calls.iter().zip(calls) {
        assert_eq!(encode_call(&queue, operation.clone()).as_ref(), Some(bytes), "{name}");
        assert_eq!(decode_call(bytes), Some((queue, operation)), "{name}");
    }
    for ((name, bytes), (_, answer)) in of_answers.iter().zip(answers) {
        assert_eq!(decode_answer(bytes).as_ref(), Some(&answer), "{name}");
        assert_eq!(encode_answer(answer).as_ref(), Some(bytes), "{name}");
    }
}

#[test]
fn the_page_has_the_path_and_a_proof() {
    assert!(PAGE.contains(&format!("POST {PATH}`")));
    let secret: [u8; 32] = std::array::from_fn(|at| at as u8);
    let digest = digest(b"body");
    let mac = mac(&secret, 1_700_000_000_000, "10.0.0.7:9333", &digest).unwrap();
    assert!(PAGE.contains(&digest) && PAGE.contains(&mac));
}

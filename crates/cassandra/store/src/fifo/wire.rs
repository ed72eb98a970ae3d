//! Calls and answers as bytes, in postcard's encoding, between front-ends. The path has the version: front-ends of another
//! one do not know it, and the caller waits until the queue's owner is one that it understands. The page of the format is
//! docs/formats/fifo.md; the order of fields and variants is part of it.

use std::sync::Arc;

use bytes::Bytes;
use quelea_cassandra_fifo::limits::BATCH_ROWS_MAX;
use quelea_cassandra_fifo::{Content, MoveCall, MovedOut, PeekedRows};
use quelea_sqs_protocol::{
    Backlog, Fault, MessageAttribute, PEEKED_MESSAGES_MAX, QueueRef, ReceiptOutcome, Receive,
    Received, Sent,
};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use super::peeked_row_wire::WirePeekedRow;

/// Where calls go.
pub(super) const PATH: &str = "/quelea/fifo/1";

/// Bytes of a call: a batch of the largest messages, and what they carry.
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of an answer: ten of the largest messages, though no receive gets more than two of them.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

type Name = (String, String);

#[derive(Serialize, Deserialize)]
struct WireCall {
    name: Name,
    id: u128,
    generation: u128,
    retention_ms: u64,
    redrive: Option<(Name, u32)>,
    operation: WireOperation,
}

#[derive(Serialize, Deserialize)]
enum WireOperation {
    Send(Vec<WireOutgoing>),
    Receive { max: u32, visibility_timeout_ms: u64, wait_ms: u64, attempt_id: Option<String> },
    Delete(Vec<Blob>),
    ChangeVisibility(Vec<(Blob, u64)>),
    Backlog,
    MoveOut { max: u32, to: Option<Name> },
    Peek { max: u32 },
}

#[derive(Serialize, Deserialize)]
struct WireOutgoing {
    id: Option<u128>,
    delay_ms: u64,
    ttl_s: i32,
    deduplication: Option<[u8; 16]>,
    content: WireContent,
}

#[derive(Serialize, Deserialize)]
struct WireContent {
    body: Blob,
    attributes: Vec<(String, String, Blob)>,
    sender: String,
    trace_header: Option<String>,
    group_id: String,
    deduplication_id: Option<String>,
    source: Option<Name>,
    earlier_receives: u32,
}

#[derive(Serialize, Deserialize)]
enum WireAnswer {
    Sent(Vec<Result<(String, Option<String>), WireFault>>),
    Received(Vec<WireReceived>),
    Settled(Vec<u8>),
    Backlog { visible: u64, in_flight: u64, delayed: u64, oldest_age_s: u64 },
    Failed(WireFault),
    NotOwner,
    MovedOut { moved: u64, is_empty: bool },
    Peeked { messages: Vec<WirePeekedRow>, is_whole: bool },
}

#[derive(Serialize, Deserialize)]
enum WireFault {
    Unavailable(String),
    Other(String),
    NotFound(String),
}

#[derive(Serialize, Deserialize)]
struct WireReceived {
    delivery: Blob,
    message_id: String,
    receive_count: u32,
    sent_at_ms: u64,
    first_received_at_ms: u64,
    sequence_number: Option<String>,
    content: WireContent,
}

/// Bytes as such, and not one number after the other.
struct Blob(Bytes);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytewise;
        impl Visitor<'_> for Bytewise {
            type Value = Blob;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(Bytes::copy_from_slice(bytes)))
            }
        }
        deserializer.deserialize_bytes(Bytewise)
    }
}

/// The outcomes that receipts have, by their numbers on the wire.
const OUTCOMES: [ReceiptOutcome; 6] = [
    ReceiptOutcome::Done,
    ReceiptOutcome::Invalid,
    ReceiptOutcome::NotInFlight,
    ReceiptOutcome::NoSuchMessage,
    ReceiptOutcome::Expired,
    ReceiptOutcome::TooLong,
];

/// Returns a call's bytes.
pub(super) fn encode_call(queue: &FifoQueue, operation: Operation) -> Option<Vec<u8>> {
    let call = WireCall {
        name: wire_name(&queue.name),
        id: queue.id.as_u128(),
        generation: queue.generation.as_u128(),
        retention_ms: queue.retention_ms,
        redrive: queue.redrive.as_ref().map(|(name, max)| (wire_name(name), *max)),
        operation: wire_operation(operation),
    };
    postcard::to_stdvec(&call).ok()
}

/// Returns the call of these bytes, if they are one.
pub(super) fn decode_call(bytes: &[u8]) -> Option<(FifoQueue, Operation)> {
    let call: WireCall = postcard::from_bytes(bytes).ok()?;
    let queue = FifoQueue {
        name: name(call.name),
        id: Uuid::from_u128(call.id),
        generation: Uuid::from_u128(call.generation),
        retention_ms: call.retention_ms,
        redrive: call.redrive.map(|(to, max)| (name(to), max)),
    };
    Some((queue, operation(call.operation)))
}

/// Returns an answer's bytes.
pub(super) fn encode_answer(answer: Answer) -> Option<Vec<u8>> {
    postcard::to_stdvec(&wire_answer(answer)).ok()
}

/// Returns the answer of these bytes, if they are one.
pub(super) fn decode_answer(bytes: &[u8]) -> Option<Answer> {
    let answer: WireAnswer = postcard::from_bytes(bytes).ok()?;
    Some(match answer {
        WireAnswer::Sent(outcomes) => {
            let outcome = |one: Result<(String, Option<String>), WireFault>| {
                one.map(|(message_id, sequence_number)| Sent { message_id, sequence_number })
                    .map_err(fault)
            };
            Answer::Sent(outcomes.into_iter().map(outcome).collect())
        }
        WireAnswer::Received(received) => {
            Answer::Received(received.into_iter().map(received_message).collect())
        }
        WireAnswer::Settled(outcomes) => {
            let outcome = |number: u8| OUTCOMES.get(usize::from(number)).copied();
            Answer::Settled(outcomes.into_iter().map(outcome).collect::<Option<_>>()?)
        }
        WireAnswer::Backlog { visible, in_flight, delayed, oldest_age_s } => {
            Answer::Backlog(Backlog { visible, in_flight, delayed, oldest_age_s })
        }
        WireAnswer::Failed(failed) => Answer::Failed(fault(failed)),
        WireAnswer::NotOwner => Answer::NotOwner,
        WireAnswer::MovedOut { moved, is_empty } => Answer::MovedOut(MovedOut { moved, is_empty }),
        WireAnswer::Peeked { messages, is_whole } => {
            let messages = messages.into_iter().map(WirePeekedRow::peeked_row).collect();
            Answer::Peeked(PeekedRows { messages, is_whole })
        }
    })
}

fn wire_name(name: &QueueRef) -> Name {
    (name.account.to_string(), name.name.to_string())
}

fn name((account, name): Name) -> QueueRef {
    QueueRef { account: account.into(), name: name.into() }
}

fn wire_operation(operation: Operation) -> WireOperation {
    match operation {
        Operation::Send(messages) => {
            let one = |one: Outgoing| WireOutgoing {
                id: one.id.map(|id| id.as_u128()),
                delay_ms: one.delay_ms,
                ttl_s: one.ttl_s,
                deduplication: one.deduplication,
                content: wire_content(&one.content),
            };
            WireOperation::Send(messages.into_iter().map(one).collect())
        }
        Operation::Receive(receive) => WireOperation::Receive {
            max: receive.max as u32,
            visibility_timeout_ms: receive.visibility_timeout_ms,
            wait_ms: receive.wait_ms,
            attempt_id: receive.attempt_id,
        },
        Operation::Delete(deliveries) => {
            WireOperation::Delete(deliveries.into_iter().map(|one| Blob(one.into())).collect())
        }
        Operation::ChangeVisibility(changes) => WireOperation::ChangeVisibility(
            changes.into_iter().map(|(delivery, ms)| (Blob(delivery.into()), ms)).collect(),
        ),
        Operation::Backlog => WireOperation::Backlog,
        Operation::MoveOut(MoveCall { max, to }) => {
            WireOperation::MoveOut { max: max as u32, to: to.as_ref().map(wire_name) }
        }
        Operation::Peek(max) => WireOperation::Peek { max: max as u32 },
    }
}

fn operation(operation: WireOperation) -> Operation {
    match operation {
        WireOperation::Send(messages) => {
            let one = |one: WireOutgoing| Outgoing {
                id: one.id.map(Uuid::from_u128),
                delay_ms: one.delay_ms,
                ttl_s: one.ttl_s.max(1),
                deduplication: one.deduplication,
                content: Arc::new(content(one.content)),
            };
            Operation::Send(messages.into_iter().map(one).collect())
        }
        WireOperation::Receive { max, visibility_timeout_ms, wait_ms, attempt_id } => {
            let max = max.clamp(1, 10) as usize;
            Operation::Receive(Receive { max, visibility_timeout_ms, wait_ms, attempt_id })
        }
        WireOperation::Delete(deliveries) => {
            Operation::Delete(deliveries.into_iter().map(|bytes| bytes.0.to_vec()).collect())
        }
        WireOperation::ChangeVisibility(changes) => Operation::ChangeVisibility(
            changes.into_iter().map(|(bytes, ms)| (bytes.0.to_vec(), ms)).collect(),
        ),
        WireOperation::Backlog => Operation::Backlog,
        WireOperation::MoveOut { max, to } => {
            let max = (max as usize).clamp(1, BATCH_ROWS_MAX);
            Operation::MoveOut(MoveCall { max, to: to.map(name) })
        }
        WireOperation::Peek { max } => {
            Operation::Peek((max as usize).clamp(1, PEEKED_MESSAGES_MAX))
        }
    }
}

fn wire_content(content: &Content) -> WireContent {
    let attribute =
        |one: &MessageAttribute| (one.name.clone(), one.data_type.clone(), Blob(one.value.clone()));
    WireContent {
        body: Blob(content.body.clone()),
        attributes: content.attributes.iter().map(attribute).collect(),
        sender: content.sender.clone(),
        trace_header: content.trace_header.clone(),
        group_id: content.group_id.clone(),
        deduplication_id: content.deduplication_id.clone(),
        source: content.source.as_ref().map(wire_name),
        earlier_receives: content.earlier_receives,
    }
}

fn content(content: WireContent) -> Content {
    let attribute = |(name, data_type, value): (String, String, Blob)| MessageAttribute {
        name,
        data_type,
        value: value.0,
    };
    Content {
        body: content.body.0,
        attributes: content.attributes.into_iter().map(attribute).collect(),
        sender: content.sender,
        trace_header: content.trace_header,
        group_id: content.group_id,
        deduplication_id: content.deduplication_id,
        source: content.source.map(name),
        earlier_receives: content.earlier_receives,
    }
}

fn wire_answer(answer: Answer) -> WireAnswer {
    match answer {
        Answer::Sent(outcomes) => WireAnswer::Sent(
            outcomes
                .into_iter()
                .map(|one| {
                    one.map(|sent| (sent.message_id, sent.sequence_number)).map_err(wire_fault)
                })
                .collect(),
        ),
        Answer::Received(received) => {
            WireAnswer::Received(received.into_iter().map(wire_received).collect())
        }
        Answer::Settled(outcomes) => {
            let number = |outcome: &ReceiptOutcome| {
                OUTCOMES.iter().position(|one| one == outcome).unwrap_or(0) as u8
            };
            WireAnswer::Settled(outcomes.iter().map(number).collect())
        }
        Answer::Backlog(Backlog { visible, in_flight, delayed, oldest_age_s }) => {
            WireAnswer::Backlog { visible, in_flight, delayed, oldest_age_s }
        }
        Answer::Failed(failed) => WireAnswer::Failed(wire_fault(failed)),
        Answer::NotOwner => WireAnswer::NotOwner,
        Answer::MovedOut(MovedOut { moved, is_empty }) => WireAnswer::MovedOut { moved, is_empty },
        Answer::Peeked(PeekedRows { messages, is_whole }) => {
            let messages = messages.into_iter().map(WirePeekedRow::of).collect();
            WireAnswer::Peeked { messages, is_whole }
        }
    }
}

fn wire_fault(fault: Fault) -> WireFault {
    match fault {
        Fault::Unavailable(why) => WireFault::Unavailable(why),
        Fault::NotFound(why) => WireFault::NotFound(why),
        other => WireFault::Other(other.to_string()),
    }
}

fn fault(fault: WireFault) -> Fault {
    match fault {
        WireFault::Unavailable(why) => Fault::Unavailable(why),
        WireFault::NotFound(why) => Fault::NotFound(why),
        WireFault::Other(why) => Fault::Invalid(why),
    }
}

fn wire_received(one: Received) -> WireReceived {
    WireReceived {
        delivery: Blob(one.delivery.into()),
        message_id: one.message_id,
        receive_count: one.receive_count,
        sent_at_ms: one.sent_at_ms,
        first_received_at_ms: one.first_received_at_ms,
        sequence_number: one.sequence_number,
        content: wire_content(&Content {
            body: one.body,
            attributes: one.attributes,
            sender: one.sender_id.unwrap_or_default(),
            trace_header: one.trace_header,
            group_id: one.group_id.unwrap_or_default(),
            deduplication_id: one.deduplication_id,
            source: one.dead_letter_source,
            earlier_receives: 0,
        }),
    }
}

fn received_message(one: WireReceived) -> Received {
    let content = content(one.content);
    Received {
        delivery: one.delivery.0.to_vec(),
        message_id: one.message_id,
        body: content.body,
        attributes: content.attributes,
        receive_count: one.receive_count,
        sent_at_ms: one.sent_at_ms,
        first_received_at_ms: one.first_received_at_ms,
        sender_id: Some(content.sender).filter(|sender| !sender.is_empty()),
        trace_header: content.trace_header,
        group_id: Some(content.group_id),
        deduplication_id: content.deduplication_id,
        sequence_number: one.sequence_number,
        dead_letter_source: content.source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire_golden::{content, named, queue};
    use super::*;

    #[test]
    fn every_call_survives() {
        let outgoing = Outgoing {
            id: Some(Uuid::from_u128(7)),
            content: Arc::new(content()),
            delay_ms: 8,
            ttl_s: 9,
            deduplication: Some([10; 16]),
        };
        let receive = Receive {
            max: 10,
            visibility_timeout_ms: 1,
            wait_ms: 2,
            attempt_id: Some("attempt".into()),
        };
        for operation in [
            Operation::Send(vec![outgoing]),
            Operation::Receive(receive),
            Operation::Delete(vec![vec![1, 2], vec![]]),
            Operation::ChangeVisibility(vec![(vec![3], 4)]),
            Operation::Backlog,
            Operation::MoveOut(MoveCall { max: 10, to: None }),
            Operation::MoveOut(MoveCall { max: 1, to: Some(named("to.fifo")) }),
            Operation::Peek(7),
        ] {
            let queue = queue(Some((named("dead.fifo"), 4)));
            let bytes = encode_call(&queue, operation.clone()).unwrap();
            assert_eq!(decode_call(&bytes), Some((queue, operation)));
            for end in 0..bytes.len() {
                assert_eq!(decode_call(&bytes[..end]), None, "a part of it is none");
            }
        }
    }

    #[test]
    fn every_answer_survives() {
        let content = content();
        let received = Received {
            delivery: vec![1],
            message_id: "m".into(),
            body: content.body,
            attributes: content.attributes,
            receive_count: 2,
            sent_at_ms: 3,
            first_received_at_ms: 4,
            sender_id: Some("sender".into()),
            trace_header: None,
            group_id: Some("g".into()),
            deduplication_id: Some("id".into()),
            sequence_number: Some("5".into()),
            dead_letter_source: content.source,
        };
        let sent = Sent { message_id: "m".into(), sequence_number: Some("6".into()) };
        let unavailable = || Fault::Unavailable("why".into());
        let backlog = Backlog { visible: 1, in_flight: 2, delayed: 3, oldest_age_s: 4 };
        for make in [
            || Answer::NotOwner,
            || Answer::Settled(OUTCOMES.to_vec()),
            || Answer::MovedOut(MovedOut { moved: 7, is_empty: true }),
            || Answer::Failed(Fault::NotFound("why".into())),
        ] {
            let bytes = encode_answer(make()).unwrap();
            assert_eq!(decode_answer(&bytes), Some(make()));
        }
        let bytes = encode_answer(Answer::Received(vec![received.clone()])).unwrap();
        assert_eq!(decode_answer(&bytes), Some(Answer::Received(vec![received])));
        let bytes =
            encode_answer(Answer::Sent(vec![Ok(sent.clone()), Err(unavailable())])).unwrap();
        assert_eq!(decode_answer(&bytes), Some(Answer::Sent(vec![Ok(sent), Err(unavailable())])));
        let bytes = encode_answer(Answer::Backlog(backlog)).unwrap();
        assert_eq!(decode_answer(&bytes), Some(Answer::Backlog(backlog)));
        assert_eq!(decode_answer(&[250, 1, 2]), None);
    }
}

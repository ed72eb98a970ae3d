//! A message of SQS as a message of AMQP, and the other way: docs/sqs/service.md, "One queue, two protocols".
//!
//! Message attributes are headers. What AMQP has no place for stands in headers that begin with
//! `x-sqs-`, those of the broker's own in `x-message-group-id`, `x-redrive-source` and
//! `x-redrive-receives`. An attribute whose name is one of those is kept apart from them, so that it comes back and steers nothing.

use std::sync::Arc;

use bytes::Bytes;
use quelea_broker::{
    GROUP_HEADER, REDRIVE_RECEIVES_HEADER, REDRIVE_SOURCE_HEADER, ReceivedMessage, Send,
};
use quelea_model::{Properties, Table, Value};
use quelea_sqs_protocol::{MessageAttribute, NewMessage, QueueRef, Received, sequence_number};
use uuid::Uuid;

use crate::receipt;
use crate::receipt::uuid_of;

const SENT_AT: &str = "x-sqs-sent-timestamp";
const SENDER: &str = "x-sqs-sender-id";
const TRACE: &str = "x-sqs-trace-header";
const DEDUPLICATION: &str = "x-sqs-deduplication-id";
/// A table: the data types of attributes that are not what their header's type says.
const TYPES: &str = "x-sqs-attribute-types";

/// A table: the attributes whose names are those of headers that mean something to the broker.
const ATTRIBUTES: &str = "x-sqs-attributes";

/// Returns a message as the broker sends it.
pub(crate) fn outgoing(new: NewMessage, id: Uuid, now_ms: u64) -> Send {
    let mut headers = Table::new();
    let (mut types, mut apart) = (Table::new(), Table::new());
    for attribute in new.attributes {
        let is_binary = attribute.data_type.starts_with("Binary");
        let plain = if is_binary { "Binary" } else { "String" };
        if attribute.data_type != plain {
            types.set(&attribute.name, Value::text(&attribute.data_type));
        }
        let value = match is_binary {
            true => Value::ByteArray(attribute.value),
            false => Value::LongString(attribute.value),
        };
        let table = if is_reserved(&attribute.name) { &mut apart } else { &mut headers };
        table.set(&attribute.name, value);
    }
    if !apart.is_empty() {
        headers.set(ATTRIBUTES, Value::Table(apart));
    }
    if !types.is_empty() {
        headers.set(TYPES, Value::Table(types));
    }
    headers.set(SENT_AT, Value::I64(now_ms as i64));
    headers.set(SENDER, Value::text(&new.sender_id));
    let texts = [
        (TRACE, &new.trace_header),
        (GROUP_HEADER, &new.group_id),
        (DEDUPLICATION, &new.deduplication_id),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            headers.set(name, Value::text(text));
        }
    }
    let properties = Properties {
        headers: Some(headers),
        delivery_mode: Some(2),
        message_id: Some(id.to_string().into()),
        timestamp: Some(now_ms / 1000),
        ..Properties::default()
    };
    Send {
        properties: properties.to_bytes(),
        body: new.body,
        delay_ms: new.delay_ms,
        group: new.group_id.map(String::into_boxed_str),
        deduplication: new.deduplication_id.map(String::into_boxed_str),
        message_id: id.into_bytes(),
    }
}

/// Returns what a receiver sees: of a message that came by AMQP, its own message id if that is a
/// UUID.
pub(crate) fn incoming(received: &ReceivedMessage, account: &Arc<str>, is_fifo: bool) -> Received {
    let message = &received.message;
    // Properties were checked when they came in.
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    let headers = properties.headers.take().unwrap_or_default();
    let text = |name: &str| headers.get(name).and_then(Value::as_text).map(str::to_owned);
    let received_at_ms = received.first_received_at.as_millis();
    let sent_at_ms = match headers.get(SENT_AT) {
        Some(Value::I64(ms)) => *ms as u64,
        // A publisher says it, who may say anything.
        _ => properties.timestamp.map_or(u64::MAX, |s| s.saturating_mul(1000)).min(received_at_ms),
    };
    let id = properties.message_id.filter(|id| Uuid::try_parse(id).is_ok());
    let message_id = match id {
        Some(id) => id.into(),
        None => uuid_of(received.receipt).to_string(),
    };
    let source = text(REDRIVE_SOURCE_HEADER);
    Received {
        delivery: receipt::encode(received.receipt),
        message_id,
        body: message.body_bytes(),
        attributes: attributes(&headers),
        receive_count: receives_before(&headers)
            .saturating_add(u32::from(received.receipt.receive_count)),
        sent_at_ms,
        // Two clocks: the system's stamps what is sent, and the core's, which is read once a turn, what
        // is received. No message was received before it was sent. When it was sent is the same in
        // each queue that it comes to, so that the other gives way.
        first_received_at_ms: received_at_ms.max(sent_at_ms),
        sender_id: text(SENDER).or_else(|| properties.user_id.map(Into::into)),
        trace_header: text(TRACE),
        group_id: text(GROUP_HEADER),
        deduplication_id: text(DEDUPLICATION),
        sequence_number: is_fifo.then(|| sequence_number(received.receipt.seq.0)),
        dead_letter_source: source
            .map(|name| QueueRef { account: Arc::clone(account), name: name.into() }),
    }
}

/// Returns how often a message was received in queues that it was redriven from.
fn receives_before(headers: &Table) -> u32 {
    let count = headers.get(REDRIVE_RECEIVES_HEADER).and_then(Value::as_integer);
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// Returns the attributes among the headers, sorted by name.
fn attributes(headers: &Table) -> Vec<MessageAttribute> {
    let none = Table::new();
    let mut types: Vec<_> = match headers.get(TYPES) {
        Some(Value::Table(types)) => types.iter().collect(),
        _ => Vec::new(),
    };
    // A publisher may have written very many, too many to look for each from the beginning. Of one name the first stays
    // the first.
    types.sort_by_key(|(name, _)| *name);
    let apart = match headers.get(ATTRIBUTES) {
        Some(Value::Table(apart)) => apart,
        _ => &none,
    };
    let plain = headers.iter().filter(|(name, _)| !is_own(name));
    // Others may write what they like into the table; each name has one place.
    let mut attributes: Vec<_> = plain
        .chain(apart.iter().filter(|(name, _)| is_reserved(name)))
        .filter_map(|(name, value)| {
            let (plain, value) = attribute_value(value)?;
            let at = types.partition_point(|(other, _)| *other < name);
            let given = types.get(at).filter(|(other, _)| *other == name);
            let given = given.and_then(|(_, value)| value.as_text());
            let data_type = given.unwrap_or(plain).to_owned();
            Some(MessageAttribute { name: name.to_owned(), data_type, value })
        })
        .collect();
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    attributes
}

/// Returns whether a header is not the sender's attribute.
fn is_own(name: &str) -> bool {
    name.starts_with("x-sqs-")
        || name == GROUP_HEADER
        || name == REDRIVE_SOURCE_HEADER
        || name == REDRIVE_RECEIVES_HEADER
        || name == "x-death"
        || name.starts_with("x-first-death-")
        || name.starts_with("x-last-death-")
}

/// Returns whether an attribute of that name is no header of its own: the broker would take it for
/// its own, or lose it when it dead-letters the message.
fn is_reserved(name: &str) -> bool {
    is_own(name) || matches!(name, "CC" | "BCC" | "x-delivery-count")
}

/// Returns a header as an attribute's type and value; `None` of a type that SQS has not.
fn attribute_value(value: &Value) -> Option<(&'static str, Bytes)> {
    let number = |text: String| Some(("Number", Bytes::from(text)));
    match value {
        Value::LongString(bytes) if bytes.is_empty() => None,
        Value::LongString(bytes) => {
            let plain = if std::str::from_utf8(bytes).is_ok() { "String" } else { "Binary" };
            Some((plain, bytes.clone()))
        }
        Value::ByteArray(bytes) => Some(("Binary", bytes.clone())),
        Value::Bool(flag) => Some(("String", Bytes::from(flag.to_string()))),
        Value::I8(n) => number(n.to_string()),
        Value::U8(n) => number(n.to_string()),
        Value::I16(n) => number(n.to_string()),
        Value::U16(n) => number(n.to_string()),
        Value::I32(n) => number(n.to_string()),
        Value::U32(n) => number(n.to_string()),
        Value::I64(n) => number(n.to_string()),
        Value::F32(n) => number(n.to_string()),
        Value::F64(n) => number(n.to_string()),
        Value::Timestamp(s) => number(s.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use quelea_broker::Receipt;
    use quelea_model::{Message, QueueId, Seq, Timestamp};

    use super::*;

    fn received(message: Message) -> ReceivedMessage {
        let receipt = Receipt { queue: QueueId(1), seq: Seq(7), receive_count: 2 };
        let first_received_at = Timestamp::from_millis(5_000);
        ReceivedMessage { receipt, first_received_at, message: Arc::new(message) }
    }

    fn attribute(name: &str, data_type: &str, value: &'static [u8]) -> MessageAttribute {
        let (name, data_type) = (name.to_owned(), data_type.to_owned());
        MessageAttribute { name, data_type, value: Bytes::from_static(value) }
    }

    #[test]
    fn what_was_sent_is_what_is_received() {
        let new = NewMessage {
            body: Bytes::from_static(b"hello"),
            attributes: vec![
                attribute("a", "String", b"x"),
                attribute("b", "Number.int", b"12"),
                attribute("c", "Binary", b"\xff\0"),
                attribute("d", "Binary.gif", b"text"),
            ],
            trace_header: Some("Root=1".to_owned()),
            sender_id: "ada".into(),
            group_id: Some("g".to_owned()),
            deduplication_id: Some("d".to_owned()),
            delay_ms: None,
        };
        let id = Uuid::from_u128(99);
        let sent = outgoing(new.clone(), id, 1_234);
        let message = Message::new("", "q", &sent.properties, sent.body.clone());
        let back = incoming(&received(message), &"000000000000".into(), true);
        assert_eq!(back.message_id, id.to_string());
        assert_eq!((back.body, back.attributes), (new.body, new.attributes));
        assert_eq!((back.sent_at_ms, back.first_received_at_ms), (1_234, 5_000));
        assert_eq!(back.receive_count, 2);
        let texts = [back.sender_id, back.trace_header, back.group_id, back.deduplication_id];
        assert_eq!(texts.map(Option::unwrap), ["ada", "Root=1", "g", "d"]);
        assert_eq!(back.sequence_number.unwrap(), "10000000000000000007");
    }

    #[test]
    fn no_message_is_received_before_it_was_sent() {
        let new = || NewMessage { sender_id: "ada".into(), ..NewMessage::default() };
        for (sent_at_ms, received_at_ms) in [(4_999, 5_000), (5_000, 5_000), (5_001, 5_001)] {
            let sent = outgoing(new(), Uuid::from_u128(99), sent_at_ms);
            let message = Message::new("", "q", &sent.properties, sent.body);
            let back = incoming(&received(message), &"000000000000".into(), false);
            assert_eq!((back.sent_at_ms, back.first_received_at_ms), (sent_at_ms, received_at_ms));
        }
    }

    #[test]
    fn receptions_go_on_being_counted_in_a_dead_letter_queue() {
        for (before, count) in [(Value::I64(3), 5), (Value::I64(-1), 2), (Value::text("3"), 2)] {
            let headers = Table::from_iter([(REDRIVE_RECEIVES_HEADER, before)]);
            let properties = Properties { headers: Some(headers), ..Properties::default() };
            let message = Message::new("", "q", &properties.to_bytes(), Bytes::from_static(b"b"));
            let back = incoming(&received(message), &"000000000000".into(), false);
            assert_eq!((back.receive_count, back.attributes), (count, Vec::new()));
        }
    }

    #[test]
    fn an_attribute_of_any_allowed_name_comes_back_and_steers_nothing() {
        let longest = "n".repeat(255);
        let names = [
            GROUP_HEADER,
            REDRIVE_SOURCE_HEADER,
            REDRIVE_RECEIVES_HEADER,
            SENDER,
            SENT_AT,
            TYPES,
            ATTRIBUTES,
            "x-death",
            "x-first-death-queue",
            "x-last-death-reason",
            "CC",
            "BCC",
            "x-delivery-count",
            "x-plain",
            &longest,
            &format!("x-sqs-{}", "n".repeat(249)),
        ];
        for name in names {
            let attributes =
                vec![attribute("b", "Number", b"1"), attribute(name, "String.odd", b"victim")];
            let mut expected = attributes.clone();
            expected.sort_by(|a, b| a.name.cmp(&b.name));
            let new = NewMessage { attributes, sender_id: "ada".into(), ..NewMessage::default() };
            let sent = outgoing(new, Uuid::from_u128(99), 1_234);
            assert_eq!(sent.group, None, "{name}");
            let headers = Properties::decode(&sent.properties).unwrap().headers.unwrap();
            assert_eq!(
                headers.get(name).is_some_and(|value| value == &Value::text("victim")),
                !is_reserved(name),
                "{name}"
            );
            let message = Message::new("", "q", &sent.properties, sent.body.clone());
            let back = incoming(&received(message), &"000000000000".into(), false);
            assert_eq!(back.attributes, expected, "{name}");
            assert_eq!((back.group_id, back.dead_letter_source), (None, None), "{name}");
            assert_eq!((back.sender_id.as_deref(), back.sent_at_ms), (Some("ada"), 1_234));
        }
    }

    #[test]
    fn each_of_very_many_headers_has_the_first_type_of_its_name() {
        const HEADERS: usize = 8_000;
        let name = |n: usize| format!("{n:04}");
        let headers = (0..HEADERS).map(|n| (name(n), Value::text("v")));
        let types = (0..HEADERS).rev().filter(|n| n % 2 == 0);
        let types = types.map(|n| (name(n), Value::text(&format!("String.{n}"))));
        let twice = [("0002", "String.later"), ("0001", "String.late")];
        let twice = twice.map(|(name, text)| (name.to_owned(), Value::text(text)));
        let types = Value::Table(table_of(types.chain(twice)));
        let table = table_of(headers.chain([(TYPES.to_owned(), types)]));
        let attributes = attributes(&table);
        assert_eq!(attributes.len(), HEADERS);
        for (n, attribute) in attributes.iter().enumerate() {
            let data_type = match n {
                1 => "String.late".to_owned(),
                n if n % 2 == 0 => format!("String.{n}"),
                _ => "String".to_owned(),
            };
            assert_eq!((&attribute.name, &attribute.data_type), (&name(n), &data_type));
        }
    }

    /// Returns a table as a publisher may write it: with names that occur twice.
    fn table_of(entries: impl Iterator<Item = (String, Value)>) -> Table {
        let mut content = Vec::new();
        for entry in entries {
            let mut one = BytesMut::new();
            Table::from_iter([entry]).encode(&mut one);
            content.extend_from_slice(&one[4..]);
        }
        Table::decode(&content).unwrap()
    }

    #[test]
    fn headers_of_amqp_are_attributes_where_sqs_has_their_type() {
        let headers = Table::from_iter([
            ("n", Value::I32(-3)),
            ("t", Value::text("x")),
            ("nested", Value::Table(Table::new())),
            ("x-death", Value::Array(Vec::new())),
        ]);
        let properties = Properties { headers: Some(headers), ..Properties::default() };
        let message = Message::new("", "q", &properties.to_bytes(), Bytes::from_static(b"b"));
        let back = incoming(&received(message), &"000000000000".into(), false);
        let expected = [attribute("n", "Number", b"-3"), attribute("t", "String", b"x")];
        assert_eq!(back.attributes, expected);
        assert!(Uuid::try_parse(&back.message_id).is_ok());
        assert_eq!(back.sequence_number, None);
    }
}

//! A message on both sides: parts with a topic key there, properties, routing key and body here.
//!
//! The first part is the topic and becomes the routing key. One part more is the body as it is; of
//! several the body is all of them, framed as ZMTP frames them, and the header `x-elastic-parts` says
//! how many. A message of one part has it as topic and as body; its `x-elastic-parts` is 0.
//!
//! The other way the routing key is the topic and the body the second part; what came out of another
//! elastic queue by a delivery has its parts again.

use bytes::{Bytes, BytesMut};
use quelea_elastic_client::{Error, Producer};
use quelea_elastic_proto::parts::{self, PartsError};
use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_model::{Message, Properties, Table, Value};

/// The elastic queue that a message came from.
const QUEUE: &str = "x-elastic-queue";
/// The whole topic: a routing key is shorter, and text.
const TOPIC: &str = "x-elastic-topic";
/// The producer, in hexadecimal digits.
const PRODUCER: &str = "x-elastic-producer";
/// The producer's number of the message.
const SEQUENCE: &str = "x-elastic-sequence";
/// How many parts the body holds, if it is not one: 0 if it repeats the topic.
const PARTS: &str = "x-elastic-parts";

/// A message of an elastic queue as the broker publishes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outgoing {
    /// The topic, as far as it is a routing key.
    pub(crate) routing_key: String,
    /// Wire-shaped.
    pub(crate) properties: Bytes,
    pub(crate) body: Bytes,
}

impl Outgoing {
    /// Creates what the broker publishes from a message whose parts were checked when it was read.
    pub(crate) fn new(
        queue: &str,
        producer: ClientId,
        sequence: MessageSeq,
        message: &Bytes,
    ) -> Self {
        let mut following = parts::slices(message);
        let topic = following.next().unwrap_or_default();
        let (second, third) = (following.next(), following.next());
        let count = match third {
            Some(_) => 2 + following.count(),
            None => second.is_some() as usize,
        };
        let body = match (second, third) {
            (None, _) => topic.clone(),
            (Some(body), None) => body,
            // What follows the topic, as it stands.
            (Some(_), Some(_)) => parts::rest(message).unwrap_or_default(),
        };
        let sequence = i64::try_from(sequence.0).unwrap_or(i64::MAX);
        let mut headers = vec![
            (QUEUE, Value::text(queue)),
            (TOPIC, Value::LongString(topic.clone())),
            (PRODUCER, Value::text(&format!("{:032x}", producer.0))),
            (SEQUENCE, Value::I64(sequence)),
        ];
        if count != 1 {
            headers.push((PARTS, Value::I64(count as i64)));
        }
        let properties = Properties {
            headers: Some(Table::from_iter(headers)),
            delivery_mode: Some(2),
            ..Properties::default()
        };
        Self { routing_key: routing_key(&topic), properties: properties.to_bytes(), body }
    }
}

/// A message of the broker as an elastic queue takes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// Topic and body.
    Two { topic: Bytes, body: Bytes },
    /// The topic alone.
    One { topic: Bytes },
    /// The topic, and the other parts as they are framed.
    More { topic: Bytes, framed: Bytes },
}

/// Why a message is not fed into the elastic queue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfeedable {
    /// Feeding it would go round in circles.
    #[error("it came out of this elastic queue")]
    Repeated,
    #[error(transparent)]
    Parts(#[from] PartsError),
}

impl Incoming {
    /// Creates what is to be fed into this elastic queue from a message of the broker.
    pub(crate) fn new(queue: &str, message: &Message) -> Result<Self, Unfeedable> {
        // Properties were checked when they came in.
        let properties = Properties::decode(message.properties()).unwrap_or_default();
        let headers = properties.headers.unwrap_or_default();
        if headers.get(QUEUE).and_then(Value::as_text) == Some(queue) {
            return Err(Unfeedable::Repeated);
        }
        let key = message.routing_key();
        let topic = match headers.get(TOPIC) {
            // It was too long for a routing key, or is no text.
            Some(Value::LongString(topic)) if routing_key(topic) == key => topic.clone(),
            _ => Bytes::copy_from_slice(key.as_bytes()),
        };
        let body = message.body_bytes();
        let count = headers.get(PARTS).and_then(Value::as_integer);
        // Whoever writes this header without the parts has written a body.
        let incoming = match count {
            Some(0) if body == topic => Self::One { topic },
            Some(2..) if parts::check(&body).ok().map(|parts| parts as i64) == count => {
                Self::More { topic, framed: body }
            }
            _ => Self::Two { topic, body },
        };
        incoming.check()?;
        Ok(incoming)
    }

    fn check(&self) -> Result<(), PartsError> {
        match self {
            Self::One { topic } => parts::check_sizes(&[topic]),
            Self::Two { topic, body } => parts::check_sizes(&[topic, body]),
            Self::More { .. } => parts::check(&self.framed()).map(drop),
        }
    }

    /// Returns all parts, as ZMTP frames.
    fn framed(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::One { topic } => parts::put_part(&mut out, topic, false),
            Self::Two { topic, body } => {
                parts::put_part(&mut out, topic, true);
                parts::put_part(&mut out, body, false);
            }
            Self::More { topic, framed } => {
                parts::put_part(&mut out, topic, true);
                out.extend_from_slice(framed);
            }
        }
        out.freeze()
    }

    /// Publishes it if there is room.
    pub(crate) fn publish(&self, producer: &Producer) -> Result<MessageSeq, Error> {
        match self {
            Self::One { topic } => producer.try_publish(&[topic]),
            Self::Two { topic, body } => producer.try_publish(&[topic, body]),
            Self::More { .. } => producer.try_publish_framed(&self.framed()),
        }
    }
}

/// Returns the longest beginning of a topic that is text and fits a routing key.
fn routing_key(topic: &[u8]) -> String {
    let short = &topic[..topic.len().min(SHORT_STRING_BYTES_MAX)];
    let text = match std::str::from_utf8(short) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&short[..error.valid_up_to()]).unwrap_or_default(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(parts: &[&[u8]]) -> Outgoing {
        let framed = parts::encode(parts).unwrap();
        Outgoing::new("prices", ClientId(0xab), MessageSeq(7), &framed)
    }

    #[test]
    fn topic_and_body_become_routing_key_and_body() {
        let message = outgoing(&[b"eur.usd", b"1.08"]);
        assert_eq!(message.routing_key, "eur.usd");
        assert_eq!(message.body, "1.08");
        let headers = Properties::decode(&message.properties).unwrap().headers.unwrap();
        assert_eq!(headers.get(QUEUE).unwrap().as_text(), Some("prices"));
        assert_eq!(headers.get(SEQUENCE), Some(&Value::I64(7)));
        let producer = headers.get(PRODUCER).unwrap().as_text();
        assert_eq!(producer, Some("000000000000000000000000000000ab"));
        assert!(headers.get(PARTS).is_none());
    }

    fn fed(queue: &str, outgoing: &Outgoing) -> Result<Incoming, Unfeedable> {
        let Outgoing { routing_key, properties, body } = outgoing;
        Incoming::new(queue, &Message::new("x", routing_key, properties, body.clone()))
    }

    #[test]
    fn a_message_keeps_its_parts_on_the_way_from_queue_to_queue() {
        let long = [b't'; 300];
        for parts in [
            &[&b"alarm"[..]][..],
            &[b"eur.usd", b"1.08"],
            &[b"eur.usd", b""],
            &[b"", b"1.08"],
            &[b"\xff\x00", b"binary topic"],
            &[&long, b"long topic"],
            &[b"topic", b"a", b"", &[7; 70_000]],
        ] {
            let incoming = fed("other", &outgoing(parts)).unwrap();
            assert_eq!(incoming.framed(), parts::encode(parts).unwrap());
        }
    }

    #[test]
    fn a_short_topic_with_a_long_header_is_not_body() {
        let (topic, rest) = (b"\x03\0\0\0\0\0\0\0\x05alarm", b"\x03\0\0\0\0\0\0\0\x01a\0\x01b");
        let framed = Bytes::from([&topic[..], &rest[..]].concat());
        assert_eq!(parts::check(&framed), Ok(3));
        let message = Outgoing::new("prices", ClientId(0xab), MessageSeq(7), &framed);
        assert_eq!((message.routing_key.as_str(), &*message.body), ("alarm", &rest[..]));
        let topic = Bytes::from_static(b"alarm");
        let framed = Bytes::from_static(rest);
        assert_eq!(fed("other", &message).unwrap(), Incoming::More { topic, framed });
    }

    #[test]
    fn what_came_out_of_a_queue_does_not_go_into_it_again() {
        assert!(matches!(fed("prices", &outgoing(&[b"t", b"b"])), Err(Unfeedable::Repeated)));
    }

    #[test]
    fn what_the_headers_say_wrongly_is_a_body() {
        for (count, body) in [(0, &b"not the topic"[..]), (3, b"no parts"), (-1, b""), (2, b"\0\0")]
        {
            let headers = Table::from_iter([(PARTS, Value::I64(count))]);
            let properties = Properties { headers: Some(headers), ..Properties::default() };
            let body = Bytes::from_static(body);
            let message = Message::new("", "key", &properties.to_bytes(), body.clone());
            let incoming = Incoming::new("q", &message).unwrap();
            assert_eq!(incoming, Incoming::Two { topic: Bytes::from_static(b"key"), body });
        }
    }

    #[test]
    fn what_is_too_large_is_refused_by_its_size() {
        let body = Bytes::from(vec![0; quelea_elastic_proto::limits::MESSAGE_BYTES_MAX]);
        let properties = Properties::default().to_bytes();
        let refused = Incoming::new("q", &Message::new("", "key", &properties, body));
        let Err(Unfeedable::Parts(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(
            error.to_string(),
            "message: 16777230 bytes with all its parts are more than the limit of 16777216"
        );
    }

    #[test]
    fn a_message_of_one_part_is_its_own_topic() {
        let message = outgoing(&[b"alarm in hall 3"]);
        assert_eq!(
            (message.routing_key.as_str(), &*message.body),
            ("alarm in hall 3", &b"alarm in hall 3"[..])
        );
    }
}

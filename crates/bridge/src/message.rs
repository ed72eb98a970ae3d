//! A message on both sides: parts with a topic key there, properties, routing key and body here.
//!
//! The first part is the topic and becomes the routing key. One part more is the body as it is; of
//! several the body is all of them, framed as ZMTP frames them, and the header `x-elastic-parts` says
//! how many. A message of one part has it as topic and as body.

use bytes::Bytes;
use quelea_elastic_proto::parts;
use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_model::{Properties, Table, Value};

/// The elastic queue that a message came from.
const QUEUE: &str = "x-elastic-queue";
/// The whole topic: a routing key is shorter, and text.
const TOPIC: &str = "x-elastic-topic";
/// The producer, in hexadecimal digits.
const PRODUCER: &str = "x-elastic-producer";
/// The producer's number of the message.
const SEQUENCE: &str = "x-elastic-sequence";
/// How many parts the body holds, if it is not one.
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
    /// Of a message whose parts were checked when it was read.
    pub(crate) fn new(
        queue: &str,
        producer: ClientId,
        sequence: MessageSeq,
        message: &Bytes,
    ) -> Self {
        let mut following = parts::slices(message);
        let topic = following.next().unwrap_or_default();
        let (second, third) = (following.next(), following.next());
        let count = 1 + third.is_some() as usize + following.count();
        let body = match (second, third) {
            (None, _) => topic.clone(),
            (Some(body), None) => body,
            // What follows the topic, as it stands.
            (Some(_), Some(_)) => message.slice(parts::part_bytes(topic.len())..),
        };
        let sequence = i64::try_from(sequence.0).unwrap_or(i64::MAX);
        let mut headers = vec![
            (QUEUE, Value::text(queue)),
            (TOPIC, Value::LongString(topic.clone())),
            (PRODUCER, Value::text(&format!("{:032x}", producer.0))),
            (SEQUENCE, Value::I64(sequence)),
        ];
        if count > 1 {
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

/// The longest beginning of a topic that is text and fits a routing key.
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

    #[test]
    fn a_message_of_one_part_is_its_own_topic() {
        let message = outgoing(&[b"alarm in hall 3"]);
        assert_eq!(
            (message.routing_key.as_str(), &*message.body),
            ("alarm in hall 3", &b"alarm in hall 3"[..])
        );
    }
}

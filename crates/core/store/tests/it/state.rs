//! What a store should hold: the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::{Deduplication, Entry, Recovered, Visibility};

/// All durable messages and the topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) messages: BTreeMap<(QueueId, Seq), Held>,
    pub(crate) topology: BTreeMap<Vec<u8>, Vec<u8>>,
    /// From when messages may be received, and how often they were: of those only of which it was
    /// ever said.
    pub(crate) visibility: BTreeMap<(QueueId, Seq), Visibility>,
    /// By key; of two the later one.
    pub(crate) deduplications: BTreeMap<(QueueId, [u64; 2]), Deduplication>,
}

/// What is known of a message in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) body_bytes: u32,
    pub(crate) delivery_count: u16,
    pub(crate) priority: u8,
    pub(crate) expires_at: Option<Timestamp>,
}

impl State {
    pub(crate) fn put(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>) {
        let held = Held {
            body_bytes: entry.body_bytes,
            delivery_count: entry.delivery_count,
            priority: entry.priority,
            expires_at,
        };
        self.messages.insert((queue, entry.seq), held);
    }

    /// What was recovered besides the messages.
    pub(crate) fn note(&mut self, recovered: &Recovered) {
        for (queue, noted) in &recovered.visibility {
            let noted = noted.values().map(|noted| ((*queue, noted.seq), *noted));
            self.visibility.extend(noted);
        }
        for (queue, sent) in &recovered.deduplications {
            self.deduplications.extend(sent.iter().map(|sent| ((*queue, sent.key), *sent)));
        }
    }

    pub(crate) fn remove(&mut self, queue: QueueId, seq: Seq) {
        self.messages.remove(&(queue, seq));
        self.visibility.remove(&(queue, seq));
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(QueueId, Seq) -> bool) {
        self.messages.retain(|(queue, seq), _| keep(*queue, *seq));
        self.visibility.retain(|(queue, seq), _| keep(*queue, *seq));
    }
}

/// Returns the message of a number: its content tells whose it is.
pub(crate) fn message(seq: Seq, body_bytes: u32) -> Arc<Message> {
    let body: Vec<u8> = (0..body_bytes).map(|at| (seq.0 * 31 + u64::from(at)) as u8).collect();
    let key = format!("key.{}", seq.0);
    Arc::new(Message::new("exchange", &key, &[0x10, 0, 2], Bytes::from(body)))
}

/// Whether a message is that of the number.
pub(crate) fn assert_is(found: &Message, seq: Seq, body_bytes: u32) {
    let expected = message(seq, body_bytes);
    assert_eq!(found.exchange(), expected.exchange());
    assert_eq!(found.routing_key(), expected.routing_key());
    assert_eq!(found.properties(), expected.properties());
    assert!(found.body() == expected.body(), "the body of {seq:?} is another");
}

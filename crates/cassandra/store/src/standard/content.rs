//! What is stored of a message, and of an entry of the index.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_sqs_protocol::{MessageAttribute, QueueRef};
use uuid::Uuid;

use crate::bucket::Bucket;

/// What keys and columns of a message's row take beside what it carries.
const MESSAGE_BYTES: usize = 128;

/// What is stored of a message beside its places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) body: Bytes,
    pub(crate) attributes: Vec<MessageAttribute>,
    pub(crate) sender: String,
    pub(crate) trace_header: Option<String>,
    pub(crate) group_id: Option<String>,
    pub(crate) deduplication_id: Option<String>,
    pub(crate) source: Option<QueueRef>,
    /// How often it was received in the queue that it came from as a dead letter.
    pub(crate) earlier_receives: i32,
}

/// A row to be written: of which partition, until when.
#[derive(Clone, Debug)]
pub(crate) struct Timed<T> {
    pub(crate) row: T,
    pub(crate) ttl_s: i32,
}

/// A message's row to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewRow {
    pub(crate) bucket: Bucket,
    pub(crate) id: Uuid,
    pub(crate) written_at_us: i64,
    pub(crate) content: Content,
    pub(crate) ttl_s: i32,
}

/// A message's row, as it is read.
#[derive(Clone, Debug)]
pub(crate) struct StoredMessage {
    pub(crate) content: Content,
    /// The timestamp of the last entry that somebody asked for by changing the visibility; 0: nobody did.
    pub(crate) lease_written_at_us: i64,
}

impl Content {
    /// Returns its size, as the row counts in a batch.
    pub(crate) fn bytes(&self) -> usize {
        let attributes =
            self.attributes.iter().map(|a| a.name.len() + a.data_type.len() + a.value.len() + 16);
        MESSAGE_BYTES + self.body.len() + attributes.sum::<usize>()
    }
}

/// Attributes as they are stored: by their names, types with values.
pub(crate) type Attributes = BTreeMap<String, (String, Bytes)>;

pub(crate) fn stored_attributes(
    attributes: impl IntoIterator<Item = MessageAttribute>,
) -> Attributes {
    attributes.into_iter().map(|one| (one.name, (one.data_type, one.value))).collect()
}

pub(crate) fn read_attributes(stored: Attributes) -> Vec<MessageAttribute> {
    let one = |(name, (data_type, value))| MessageAttribute { name, data_type, value };
    stored.into_iter().map(one).collect()
}

//! Messages, and where their rows are.

use std::sync::Arc;

use bytes::Bytes;
use quelea_sqs_protocol::{MessageAttribute, QueueRef};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What keys and columns of a message's rows take beside what it carries, in bytes.
const ROW_BYTES: usize = 192;

/// A partition of messages: whose epoch it belongs to, and the number of its first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    /// The epoch in which it was written.
    pub epoch: u64,
    /// The smallest number that may be in it.
    pub first: u64,
}

/// Where a message's row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// Its partition.
    pub segment: SegmentKey,
    /// Its sequence number. It is the timestamp of the row too, and one more that of its deletion.
    pub number: u64,
}

/// What is stored of a message beside its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The body.
    pub body: Bytes,
    /// Its attributes, sorted by name.
    pub attributes: Vec<MessageAttribute>,
    /// Who sent it.
    pub sender: String,
    /// AWSTraceHeader.
    pub trace_header: Option<String>,
    /// Its group.
    pub group_id: String,
    /// Its deduplication id.
    pub deduplication_id: Option<String>,
    /// Of a dead letter: where it comes from.
    pub source: Option<QueueRef>,
    /// How often it was received there.
    pub earlier_receives: u32,
}

impl Content {
    /// Returns its size, as the row counts in a batch.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let attributes =
            self.attributes.iter().map(|a| a.name.len() + a.data_type.len() + a.value.len() + 16);
        ROW_BYTES + self.body.len() + attributes.sum::<usize>()
    }
}

/// A message that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its id, which says when it was sent.
    pub id: Uuid,
    /// What is stored of it.
    pub content: Arc<Content>,
    /// From when on it is visible, in ms since 1970; 0: at once.
    pub visible_at_ms: u64,
    /// For how long its row lives.
    pub ttl_s: i32,
    /// Stands for its deduplication id; `None`: it is no duplicate, whatever was sent before.
    pub deduplication: Option<[u8; 16]>,
}

/// What is read of a message to have it in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its sequence number.
    pub number: u64,
    /// Its id.
    pub id: Uuid,
    /// Its group.
    pub group_id: String,
    /// [`Content::bytes`].
    pub bytes: usize,
    /// From when on it is visible, in ms since 1970; 0: at once.
    pub visible_at_ms: u64,
}

/// A deduplication id that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Stands for the id.
    pub key: [u8; 16],
    /// The number of the message that used it.
    pub number: u64,
    /// That message.
    pub id: Uuid,
    /// When it was sent, in ms since 1970.
    pub sent_at_ms: u64,
}

/// Returns when a message was sent, in ms since 1970, by its id of version 7.
#[must_use]
pub fn sent_at_ms(id: Uuid) -> u64 {
    (id.as_u128() >> 80) as u64
}

/// Returns what stands for a deduplication id in its scope, so that two never share it by chance or
/// by design.
#[must_use]
pub fn deduplication_key(id: &str, group_id: Option<&str>) -> [u8; 16] {
    let mut hash = Sha256::new();
    if let Some(group_id) = group_id {
        hash.update(group_id.as_bytes());
        // No text has this byte.
        hash.update([0xff]);
    }
    hash.update(id.as_bytes());
    first_half(hash)
}

/// Returns what stands for a message that comes from a row of another queue: sent again, since
/// nobody has heard that it was there, it is the same. One that has come round, and is in another
/// row, is another one.
#[must_use]
pub fn moved_key(from_generation: Uuid, from: RowKey) -> [u8; 16] {
    let mut hash = Sha256::new();
    // No text has this byte.
    hash.update([0xfe]);
    hash.update(from_generation.as_bytes());
    hash.update(from.segment.epoch.to_be_bytes());
    hash.update(from.number.to_be_bytes());
    first_half(hash)
}

fn first_half(hash: Sha256) -> [u8; 16] {
    let digest = hash.finalize();
    std::array::from_fn(|at| digest[at])
}

/// Returns the number that stands for a group: FNV-1a of 64 bits. Two ids that share one only wait
/// for each other.
pub(crate) fn group_of_id(id: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    id.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deduplication_id_is_another_one_in_another_scope() {
        let keys = [
            deduplication_key("a", None),
            deduplication_key("b", None),
            deduplication_key("a", Some("g")),
            deduplication_key("a", Some("h")),
            deduplication_key("ga", None),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        // It is in rows that another version reads.
        assert_eq!(deduplication_key("a", None)[..4], [0xca, 0x97, 0x81, 0x12]);
    }
}

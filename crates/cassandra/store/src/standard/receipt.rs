//! What a receipt handle stands for: all that finds the message again, so that any front-end can act on it.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version: 4 of a message with a group, 2 of one without (1 is a receipt of the embedded log, 3 one of a FIFO queue) |
//! | 1 | 16 | queue |
//! | 17 | 16 | its generation, which a purge changes |
//! | 33 | 16 | message |
//! | 49 | 8 | start of the body's bucket, in s |
//! | 57 | 1 | its level |
//! | 58 | 8 | start of the entry's bucket, in s |
//! | 66 | 1 | its level |
//! | 67 | 8 | when the entry becomes visible, in µs |
//! | 75 | 8 | the entry's timestamp, in µs |
//! | 83 | 4 | which of the message's receptions |
//! | 87 | 8 | when it was first received, in ms |
//! | 95 | 8 | when it was received, in ms |
//! | 103 | 4 | the body's size |
//! | 107 | 8 | its message's group, as a number: of version 4, not of 2 |
//! | 107 or 115 | 4 | CRC32C of what is before it (against typing errors, not against forgery: whoever has a receipt for a queue may delete from it) |
//!
//! Numbers are little-endian, UUIDs as they are written.

use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;

const VERSION: u8 = 2;
const VERSION_WITH_GROUP: u8 = 4;
const SUMMED_BYTES: usize = 107;
const GROUP_BYTES: usize = 8;
const SUM_BYTES: usize = 4;

/// One reception of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The queue it was received from.
    pub(crate) queue: Uuid,
    /// The generation of that queue's messages.
    pub(crate) generation: Uuid,
    /// Where the message was put when it was received.
    pub(crate) entry: Entry,
    /// When, in ms since 1970.
    pub(crate) received_at_ms: i64,
}

impl Receipt {
    /// Returns its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { queue, generation, entry, received_at_ms } = self;
        let mut bytes = Vec::with_capacity(SUMMED_BYTES + GROUP_BYTES + SUM_BYTES);
        bytes.push(if entry.group == 0 { VERSION } else { VERSION_WITH_GROUP });
        for id in [queue, generation, &entry.message] {
            bytes.extend_from_slice(id.as_bytes());
        }
        for bucket in [entry.body, entry.bucket] {
            bytes.extend_from_slice(&bucket.start_s.to_le_bytes());
            bytes.extend_from_slice(&bucket.level.to_le_bytes());
        }
        bytes.extend_from_slice(&entry.visible_at_us.to_le_bytes());
        bytes.extend_from_slice(&entry.written_at_us.to_le_bytes());
        bytes.extend_from_slice(&entry.receive_count.to_le_bytes());
        bytes.extend_from_slice(&entry.first_received_at_ms.to_le_bytes());
        bytes.extend_from_slice(&received_at_ms.to_le_bytes());
        bytes.extend_from_slice(&entry.bytes.to_le_bytes());
        if entry.group != 0 {
            bytes.extend_from_slice(&entry.group.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Returns the receipt of these bytes, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (summed, sum) = bytes.split_last_chunk::<SUM_BYTES>()?;
        let has_group = match (bytes[0], summed.len().checked_sub(SUMMED_BYTES)?) {
            (VERSION, 0) => false,
            (VERSION_WITH_GROUP, GROUP_BYTES) => true,
            _ => return None,
        };
        if crc32c::crc32c(summed).to_le_bytes() != *sum {
            return None;
        }
        let mut fields = Fields(&summed[1..]);
        let (queue, generation, message) = (fields.uuid()?, fields.uuid()?, fields.uuid()?);
        let (body, bucket) = (fields.bucket()?, fields.bucket()?);
        let (visible_at_us, written_at_us) = (fields.i64()?, fields.i64()?);
        let receive_count = i32::from_le_bytes(fields.take()?);
        let (first_received_at_ms, received_at_ms) = (fields.i64()?, fields.i64()?);
        let size = i32::from_le_bytes(fields.take()?);
        let group = if has_group { fields.i64()? } else { 0 };
        let entry = Entry {
            bytes: size,
            visible_at_us,
            message,
            bucket,
            body,
            receive_count,
            first_received_at_ms,
            group,
            written_at_us,
        };
        Some(Self { queue, generation, entry, received_at_ms })
    }
}

/// What is left of the bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn uuid(&mut self) -> Option<Uuid> {
        self.take().map(Uuid::from_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    fn bucket(&mut self) -> Option<Bucket> {
        let start_s = self.i64()?;
        Bucket::stored(start_s, i8::from_le_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;

    fn receipt() -> Receipt {
        Receipt {
            queue: Uuid::from_u128(7),
            generation: Uuid::from_u128(8),
            entry: Entry {
                receive_count: 3,
                first_received_at_ms: 5,
                ..entry_for_tests(1 << 50, 9)
            },
            received_at_ms: 1 << 40,
        }
    }

    #[test]
    fn a_receipt_survives_and_any_other_bytes_are_none() {
        for group in [0, 9, i64::MIN] {
            let receipt = Receipt { entry: Entry { group, ..receipt().entry }, ..receipt() };
            let bytes = receipt.encode();
            assert_eq!(Receipt::decode(&bytes), Some(receipt));
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert_eq!(Receipt::decode(&other), None);
                assert_eq!(Receipt::decode(&bytes[..at]), None);
            }
            assert_eq!(Receipt::decode(&bytes[1..]), None);
        }
        assert_eq!(Receipt::decode(b""), None);
    }

    #[test]
    fn the_bytes_of_a_receipt_never_change() {
        let bytes = receipt().encode();
        assert_eq!(bytes.len(), SUMMED_BYTES + SUM_BYTES);
        assert_eq!((bytes[0], bytes[16], bytes[32], bytes[48]), (2, 7, 8, 9));
        assert_eq!(bytes[103..], [100, 0, 0, 0, 46, 195, 66, 112]);
    }
}

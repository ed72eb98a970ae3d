//! The bytes of a delivery: what a receipt handle stands for. They hold all that finds the message
//! again, so nothing has to be kept, and they are good after a restart.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 4 | queue |
//! | 5 | 8 | number of the message |
//! | 13 | 2 | which of its receptions |
//! | 15 | 4 | CRC32C of what is before it, which is the same in every version (against typing errors, not against forgery: whoever has a receipt for a queue may delete from it) |
//!
//! Numbers are little-endian.

use quelea_broker::Receipt;
use quelea_model::{QueueId, Seq};
use quelea_sqs_protocol::Delivery;
use uuid::Uuid;

const VERSION: u8 = 1;
const SUMMED_BYTES: usize = 15;
const BYTES: usize = 19;

/// Encodes a receipt.
pub(crate) fn encode(receipt: Receipt) -> Delivery {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.push(VERSION);
    bytes.extend_from_slice(&receipt.queue.0.to_le_bytes());
    bytes.extend_from_slice(&receipt.seq.0.to_le_bytes());
    bytes.extend_from_slice(&receipt.receive_count.to_le_bytes());
    let sum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Decodes a receipt, if these bytes are one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Receipt> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let (summed, sum) = bytes.split_at(SUMMED_BYTES);
    if bytes[0] != VERSION || crc32c::crc32c(summed).to_le_bytes() != *sum {
        return None;
    }
    Some(Receipt {
        queue: QueueId(u32::from_le_bytes(bytes[1..5].try_into().ok()?)),
        seq: Seq(u64::from_le_bytes(bytes[5..13].try_into().ok()?)),
        receive_count: u16::from_le_bytes(bytes[13..15].try_into().ok()?),
    })
}

/// Returns a message id for a message that has none of its own: always the same.
pub(crate) fn uuid_of(receipt: Receipt) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&receipt.queue.0.to_be_bytes());
    bytes[8..].copy_from_slice(&receipt.seq.0.to_be_bytes());
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_receipt_never_change() {
        let receipt = Receipt { queue: QueueId(7), seq: Seq(1 << 40), receive_count: 3 };
        let bytes = [1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0x07, 0x32, 0x8e, 0x91];
        assert_eq!(encode(receipt), bytes);
    }

    #[test]
    fn a_receipt_survives_and_any_other_bytes_are_none() {
        let receipt = Receipt { queue: QueueId(7), seq: Seq(1 << 40), receive_count: 3 };
        let bytes = encode(receipt);
        assert_eq!(decode(&bytes), Some(receipt));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(decode(&other), None);
        }
        assert_eq!(decode(&bytes[1..]), None);
        assert_eq!(decode(b""), None);
    }
}

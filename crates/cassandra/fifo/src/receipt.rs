//! What a receipt handle of a replicated FIFO queue stands for.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version, 3 (1 is a receipt of the embedded log, 2 of a replicated standard queue) |
//! | 1 | 16 | queue |
//! | 17 | 16 | its generation, which a purge changes |
//! | 33 | 8 | the epoch of the owner that delivered it |
//! | 41 | 8 | the message's sequence number |
//! | 49 | 8 | which of that owner's receptions |
//! | 57 | 8 | when it was received, in ms |
//! | 65 | 4 | CRC32C of what is before it (against typing errors, not against forgery) |
//!
//! Numbers are little-endian, UUIDs as they are written.

use uuid::Uuid;

const VERSION: u8 = 3;
const SUMMED_BYTES: usize = 65;
const BYTES: usize = SUMMED_BYTES + 4;

/// One reception of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The queue it was received from.
    pub queue: Uuid,
    /// The generation of that queue's messages.
    pub generation: Uuid,
    /// The epoch of the owner that delivered it.
    pub epoch: u64,
    /// The message's sequence number.
    pub number: u64,
    /// Which of that owner's receptions.
    pub reception: u64,
    /// When, in ms since 1970.
    pub received_at_ms: u64,
}

impl Receipt {
    /// Returns its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { queue, generation, epoch, number, reception, received_at_ms } = self;
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(queue.as_bytes());
        bytes.extend_from_slice(generation.as_bytes());
        for number in [epoch, number, reception, received_at_ms] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Returns the receipt of these bytes, if they are one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let (summed, sum) = bytes.split_at(SUMMED_BYTES);
        if bytes[0] != VERSION || crc32c::crc32c(summed).to_le_bytes() != *sum {
            return None;
        }
        let uuid = |at: usize| Uuid::from_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Some(Self {
            queue: uuid(1),
            generation: uuid(17),
            epoch: number(33),
            number: number(41),
            reception: number(49),
            received_at_ms: number(57),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_survives_and_any_other_bytes_are_none() {
        let receipt = Receipt {
            queue: Uuid::from_u128(7),
            generation: Uuid::from_u128(8),
            epoch: 9,
            number: 10,
            reception: 11,
            received_at_ms: 12,
        };
        let bytes = receipt.encode();
        assert_eq!((bytes.len(), bytes[16], bytes[32]), (BYTES, 7, 8));
        assert_eq!((bytes[33], bytes[41], bytes[49], bytes[57]), (9, 10, 11, 12));
        assert_eq!(Receipt::decode(&bytes), Some(receipt));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(Receipt::decode(&other), None);
        }
        assert_eq!(Receipt::decode(&bytes[1..]), None);
        assert_eq!(Receipt::decode(b""), None);
    }
}

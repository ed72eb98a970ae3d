//! What an owner that lets go of a queue tells the next one of messages that were received and are still there: which are in
//! flight, until when, and how often each was received. One that ends without a word tells nothing.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 8 | the epoch of the owner that says it: said by another one than the last, it does not hold any more |
//!
//! and then of each message, little-endian: number (8), the epoch (8) and the reception (8) that have it, until when it is in flight
//! (8; 0: it is visible), when it was received (8) and first received (8), in ms since 1970, and how often (4).

/// Who has a message: the owner's epoch, and which of its receptions.
pub(crate) type Holder = (u64, u64);

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 9;
const BYTES: usize = 52;

/// Messages that are handed over, the oldest; the others are visible, and are counted anew.
pub(crate) const RECEPTIONS_MAX: usize = 2_000;

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reception {
    pub(crate) number: u64,
    pub(crate) holder: Holder,
    pub(crate) until_ms: u64,
    pub(crate) received_at_ms: u64,
    pub(crate) first_received_at_ms: u64,
    pub(crate) receive_count: u32,
}

/// Encodes receptions as an owner of that epoch stores them; no bytes if there are none.
pub(crate) fn encode(epoch: u64, all: &[Reception]) -> Vec<u8> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut bytes = Vec::with_capacity(HEAD_BYTES + all.len() * BYTES);
    bytes.push(VERSION);
    bytes.extend_from_slice(&epoch.to_le_bytes());
    for one in all {
        let numbers = [
            one.number,
            one.holder.0,
            one.holder.1,
            one.until_ms,
            one.received_at_ms,
            one.first_received_at_ms,
        ];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&one.receive_count.to_le_bytes());
    }
    bytes
}

/// Decodes the receptions that an owner of that epoch has stored; none of other bytes, since a
/// message that nothing is known of is visible.
pub(crate) fn decode(epoch: u64, bytes: &[u8]) -> Vec<Reception> {
    let Some((&VERSION, rest)) = bytes.split_first() else { return Vec::new() };
    let Some((said_in, rest)) = rest.split_first_chunk::<8>() else { return Vec::new() };
    if u64::from_le_bytes(*said_in) != epoch {
        return Vec::new();
    }
    let (all, left) = rest.as_chunks::<BYTES>();
    if !left.is_empty() {
        return Vec::new();
    }
    all.iter().take(RECEPTIONS_MAX).map(one).collect()
}

fn one(bytes: &[u8; BYTES]) -> Reception {
    let (numbers, _) = bytes.as_chunks::<8>();
    let number = |at: usize| numbers.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let count = bytes.last_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    Reception {
        number: number(0),
        holder: (number(1), number(2)),
        until_ms: number(3),
        received_at_ms: number(4),
        first_received_at_ms: number(5),
        receive_count: count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_and_other_bytes_tell_nothing() {
        let received = |number| Reception {
            number,
            holder: (number + 1, number + 2),
            until_ms: number + 3,
            received_at_ms: number + 4,
            first_received_at_ms: number + 5,
            receive_count: 6,
        };
        let all = [received(10), received(20)];
        let bytes = encode(7, &all);
        assert_eq!((bytes.len(), decode(7, &bytes)), (HEAD_BYTES + 2 * BYTES, all.to_vec()));
        assert_eq!((encode(7, &[]), decode(7, &[])), (Vec::new(), Vec::new()));
        assert_eq!(decode(8, &bytes), [], "another one has owned the queue since");
        for end in 1..bytes.len() {
            let whole = end.checked_sub(HEAD_BYTES).filter(|bytes| bytes % BYTES == 0);
            let expected = whole.map_or(Vec::new(), |bytes| all[..bytes / BYTES].to_vec());
            assert_eq!(decode(7, &bytes[..end]), expected, "{end}");
        }
        assert_eq!(decode(7, &[&[2], &bytes[1..]].concat()), []);
    }
}

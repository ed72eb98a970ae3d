//! What front-ends tell each other, in bytes. Nothing depends on its arrival, and whatever cannot be read is dropped.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | kind: 1 interest, 2 nudge, 3 claim, 4 release, 6 changed, 7 noted, 8 change count, 9 listed (5 was a change that nobody acknowledged) |
//! | 2 | 16 | the front-end that says it |
//! | 18 | | what it says |
//!
//! *Interest*: generations of queues that are polled there, 16 bytes each; none: a greeting. *Nudge*: generation (16), then the
//! bucket with the new entry: start (8), level (1). *Claim* and *release*: generation (16), then entries: message (16) and
//! timestamp (8), of which the highest bit says that the message was delivered.
//! *Changed*: the notice's number (8), the length of an account's name (1), that name, and the name of a queue in it. *Noted*: the
//! number of the notice that is acknowledged (8). *Change count*: the number of the last notice of whoever says it (8), 0 before the
//! first. *Listed*: generation (16), then buckets as in a nudge, 9 bytes each. Numbers are little-endian.

use std::sync::Arc;

use quelea_sqs_protocol::QueueRef;
use uuid::Uuid;

use crate::bucket::Bucket;

const VERSION: u8 = 1;
const INTEREST: u8 = 1;
const NUDGE: u8 = 2;
const CLAIM: u8 = 3;
const RELEASE: u8 = 4;
const CHANGED: u8 = 6;
const NOTED: u8 = 7;
const CHANGE_COUNT: u8 = 8;
const LISTED: u8 = 9;

/// Things of one datagram: so it fits into a packet of any network.
pub(crate) const THINGS_MAX: usize = 40;

const DELIVERED: u64 = 1 << 63;

/// An entry of a queue's index, as front-ends name it to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryName {
    pub(crate) message: Uuid,
    pub(crate) written_at_us: i64,
}

/// A claim of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) entry: EntryName,
    pub(crate) is_delivered: bool,
}

/// What one front-end sends to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerMessage {
    /// These queues are polled here.
    Interest(Vec<Uuid>),
    /// Something was stored there that can be received at once.
    Nudge { generation: Uuid, bucket: Bucket },
    /// These entries are being taken, or were.
    Claim { generation: Uuid, claims: Vec<Claim> },
    /// What was remembered of that queue does not hold any more. Whoever hears it acknowledges the notice by its number.
    Changed { notice: u64, queue: QueueRef },
    /// What was remembered by what that notice says is forgotten.
    Noted { notice: u64 },
    /// The others were notified of so many changes so far, and none is under way.
    ChangeCount { changes: u64 },
    /// An entry was put into each of these buckets, the first of whoever says so.
    Listed { generation: Uuid, buckets: Vec<Bucket> },
    /// These are not taken after all.
    Release { generation: Uuid, entries: Vec<EntryName> },
}

/// A message, and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) from: Uuid,
    pub(crate) message: PeerMessage,
}

impl Datagram {
    /// Returns its bytes. What is more than [`THINGS_MAX`] is left out.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match &self.message {
            PeerMessage::Interest(_) => INTEREST,
            PeerMessage::Nudge { .. } => NUDGE,
            PeerMessage::Claim { .. } => CLAIM,
            PeerMessage::Release { .. } => RELEASE,
            PeerMessage::Changed { .. } => CHANGED,
            PeerMessage::Noted { .. } => NOTED,
            PeerMessage::ChangeCount { .. } => CHANGE_COUNT,
            PeerMessage::Listed { .. } => LISTED,
        };
        let mut bytes = vec![VERSION, kind];
        bytes.extend_from_slice(self.from.as_bytes());
        match &self.message {
            PeerMessage::Interest(generations) => {
                for generation in generations.iter().take(THINGS_MAX) {
                    bytes.extend_from_slice(generation.as_bytes());
                }
            }
            PeerMessage::Nudge { generation, bucket } => {
                bytes.extend_from_slice(generation.as_bytes());
                put_bucket(&mut bytes, *bucket);
            }
            PeerMessage::Listed { generation, buckets } => {
                bytes.extend_from_slice(generation.as_bytes());
                buckets.iter().take(THINGS_MAX).for_each(|bucket| put_bucket(&mut bytes, *bucket));
            }
            PeerMessage::Claim { generation, claims } => {
                bytes.extend_from_slice(generation.as_bytes());
                for claim in claims.iter().take(THINGS_MAX) {
                    put_entry(&mut bytes, &claim.entry, claim.is_delivered);
                }
            }
            PeerMessage::Changed { notice, queue: QueueRef { account, name } } => {
                bytes.extend_from_slice(&notice.to_le_bytes());
                // No account has a longer name.
                let length = u8::try_from(account.len()).unwrap_or(u8::MAX);
                bytes.push(length);
                bytes.extend_from_slice(account.as_bytes());
                bytes.extend_from_slice(name.as_bytes());
            }
            PeerMessage::Noted { notice: number }
            | PeerMessage::ChangeCount { changes: number } => {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            PeerMessage::Release { generation, entries } => {
                bytes.extend_from_slice(generation.as_bytes());
                for entry in entries.iter().take(THINGS_MAX) {
                    put_entry(&mut bytes, entry, false);
                }
            }
        }
        bytes
    }

    /// Returns the datagram of these bytes, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([VERSION, kind], rest) = bytes.split_first_chunk::<2>()? else { return None };
        let (from, rest) = take_id(rest)?;
        let message = match *kind {
            INTEREST => PeerMessage::Interest(things(rest, take_id)?),
            NUDGE => {
                let (generation, rest) = take_id(rest)?;
                let (bucket, []) = take_bucket(rest)? else { return None };
                PeerMessage::Nudge { generation, bucket }
            }
            LISTED => {
                let (generation, rest) = take_id(rest)?;
                PeerMessage::Listed { generation, buckets: things(rest, take_bucket)? }
            }
            CHANGED => {
                let (notice, rest) = rest.split_first_chunk::<8>()?;
                let notice = u64::from_le_bytes(*notice);
                let (length, rest) = rest.split_first()?;
                let (account, name) = rest.split_at_checked(usize::from(*length))?;
                let (account, name) = (text(account)?, text(name)?);
                PeerMessage::Changed { notice, queue: QueueRef { account, name } }
            }
            NOTED => PeerMessage::Noted { notice: u64::from_le_bytes(rest.try_into().ok()?) },
            CHANGE_COUNT => {
                PeerMessage::ChangeCount { changes: u64::from_le_bytes(rest.try_into().ok()?) }
            }
            CLAIM => {
                let (generation, rest) = take_id(rest)?;
                PeerMessage::Claim { generation, claims: things(rest, take_claim)? }
            }
            RELEASE => {
                let (generation, rest) = take_id(rest)?;
                let claims = things(rest, take_claim)?;
                let entries = claims.into_iter().map(|claim| claim.entry).collect();
                PeerMessage::Release { generation, entries }
            }
            _ => return None,
        };
        Some(Self { from, message })
    }
}

fn put_entry(bytes: &mut Vec<u8>, entry: &EntryName, is_delivered: bool) {
    bytes.extend_from_slice(entry.message.as_bytes());
    let flag = if is_delivered { DELIVERED } else { 0 };
    let time = entry.written_at_us.max(0).unsigned_abs() & !DELIVERED;
    bytes.extend_from_slice(&(time | flag).to_le_bytes());
}

fn put_bucket(bytes: &mut Vec<u8>, bucket: Bucket) {
    bytes.extend_from_slice(&bucket.start_s.to_le_bytes());
    bytes.extend_from_slice(&bucket.level.to_le_bytes());
}

fn take_bucket(bytes: &[u8]) -> Option<(Bucket, &[u8])> {
    let (start_s, rest) = bytes.split_first_chunk::<8>()?;
    let (level, rest) = rest.split_first_chunk::<1>()?;
    let bucket = Bucket::stored(i64::from_le_bytes(*start_s), i8::from_le_bytes(*level))?;
    Some((bucket, rest))
}

fn text(bytes: &[u8]) -> Option<Arc<str>> {
    std::str::from_utf8(bytes).ok().map(Arc::from)
}

fn take_id(bytes: &[u8]) -> Option<(Uuid, &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    Some((Uuid::from_bytes(*id), rest))
}

fn take_claim(bytes: &[u8]) -> Option<(Claim, &[u8])> {
    let (message, rest) = take_id(bytes)?;
    let (time, rest) = rest.split_first_chunk::<8>()?;
    let time = u64::from_le_bytes(*time);
    let entry = EntryName { message, written_at_us: (time & !DELIVERED) as i64 };
    Some((Claim { entry, is_delivered: time & DELIVERED != 0 }, rest))
}

/// Takes things to the end of the bytes; `None`: there are too many, or the last is not whole.
fn things<T>(
    mut bytes: &[u8],
    take: impl for<'a> Fn(&'a [u8]) -> Option<(T, &'a [u8])>,
) -> Option<Vec<T>> {
    let mut things = Vec::new();
    while !bytes.is_empty() {
        let (thing, rest) = take(bytes)?;
        if things.len() == THINGS_MAX {
            return None;
        }
        things.push(thing);
        bytes = rest;
    }
    Some(things)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(number: u128) -> EntryName {
        EntryName { message: Uuid::from_u128(number), written_at_us: 1 << 50 | number as i64 }
    }

    fn datagrams() -> Vec<Datagram> {
        let generation = Uuid::from_u128(7);
        let claims = (0..THINGS_MAX as u128)
            .map(|number| Claim { entry: entry(number), is_delivered: number % 2 == 0 });
        let messages = [
            PeerMessage::Interest(vec![]),
            PeerMessage::Interest((0..THINGS_MAX as u128).map(Uuid::from_u128).collect()),
            PeerMessage::Nudge { generation, bucket: Bucket::holding(1 << 50, 2) },
            PeerMessage::Claim { generation, claims: claims.collect() },
            PeerMessage::Release { generation, entries: vec![entry(1), entry(2)] },
            PeerMessage::Changed {
                notice: u64::MAX,
                queue: QueueRef { account: "a".repeat(255).into(), name: "q".repeat(80).into() },
            },
            PeerMessage::Noted { notice: 1 << 40 },
            PeerMessage::ChangeCount { changes: 0 },
            PeerMessage::Listed {
                generation,
                buckets: (0..THINGS_MAX as i64)
                    .map(|bucket| Bucket::holding(bucket << 50, (bucket % 4) as i8))
                    .collect(),
            },
        ];
        messages.into_iter().map(|message| Datagram { from: Uuid::from_u128(9), message }).collect()
    }

    #[test]
    fn a_datagram_survives_and_part_of_one_is_no_panic() {
        for datagram in datagrams() {
            let bytes = datagram.encode();
            assert!(bytes.len() <= 1_000, "{} bytes", bytes.len());
            assert_eq!(Datagram::decode(&bytes), Some(datagram.clone()));
            for cut in 0..bytes.len() {
                assert_ne!(Datagram::decode(&bytes[..cut]), Some(datagram.clone()));
            }
        }
    }

    #[test]
    fn what_is_too_much_or_of_another_version_is_dropped() {
        let mut bytes = datagrams()[1].encode();
        bytes.extend_from_slice(&[0; 16]);
        assert_eq!(Datagram::decode(&bytes), None);
        let mut bytes = datagrams()[0].encode();
        bytes[0] = 2;
        assert_eq!(Datagram::decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_datagram_or_none(bytes in prop::collection::vec(any::<u8>(), 0..1_200)) {
            if let Some(datagram) = Datagram::decode(&bytes) {
                prop_assert_eq!(datagram.encode(), bytes);
            }
        }
    }
}

//! The records of the log, byte by byte: docs/formats/log.md, "Records".

mod encode;

use std::sync::Arc;

use bytes::Bytes;
use quelea_model::{Message, QueueId, Seq, Timestamp};

use crate::{Deduplication, Entry, EntryFlags, Location, NEVER, NewMessage, Visibility};

pub(crate) use encode::*;

/// Checksum, length, type.
pub(crate) const RECORD_HEADER_BYTES: usize = 9;
/// Smallest record: a checksum, a length, a type and three bytes of flags or zeros.
pub(crate) const RECORD_BYTES_MIN: usize = 12;
/// A commit record.
pub(crate) const COMMIT_BYTES: usize = 40;
/// The same in segments of format version 1.
pub(crate) const COMMIT_BYTES_V1: usize = 32;
/// A visibility record.
pub(crate) const VISIBILITY_BYTES: usize = 40;
/// A deduplication record.
pub(crate) const DEDUPLICATION_BYTES: usize = 64;
/// The fixed part of a message record.
pub(crate) const MESSAGE_FIXED_BYTES: usize = 40;

const TYPE_MESSAGE: u8 = 1;
const TYPE_COPY: u8 = 2;
const TYPE_ACKS: u8 = 3;
const TYPE_REQUEUE: u8 = 4;
const TYPE_PURGE: u8 = 5;
const TYPE_QUEUE_DELETED: u8 = 6;
const TYPE_TOPOLOGY_PUT: u8 = 7;
const TYPE_TOPOLOGY_DELETE: u8 = 8;
const TYPE_SEGMENT_FREED: u8 = 9;
const TYPE_COMMIT: u8 = 10;
const TYPE_VISIBILITY: u8 = 11;
const TYPE_DEDUPLICATION: u8 = 12;

const MESSAGE_DURABLE: u8 = 1;
const MESSAGE_ONE_EXPIRY: u8 = 2;
const MESSAGE_EACH_EXPIRY: u8 = 4;
const MESSAGE_VISIBLE_AT: u8 = 8;

const COMMIT_CONTINUED: u8 = 1;
const COMMIT_SEGMENT_END: u8 = 2;

const FREED_PREFIX: u8 = 1;

/// What a checksum starts from in one segment. The salt is that of the opening in which the segment
/// was begun, so neither a record of the file's former life nor one of an attempt at this segment
/// that a crash undid has the right checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u32);

impl Seed {
    pub(crate) fn new(salt: u64, segment: u32) -> Self {
        Self(crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &segment.to_le_bytes()))
    }

    /// Returns the checksum over a record's bytes from its length field on.
    pub(crate) fn checksum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
}

/// Adds a record's checksum to that of its group, which the commit record carries: so a group that
/// mixes sectors of two attempts is not taken for one.
pub(crate) const fn chain(chain: u32, checksum: u32) -> u32 {
    (chain.rotate_left(5) ^ checksum).wrapping_mul(0x9E37_79B1)
}

/// A record as it lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Message(MessageRecord<'a>),
    /// A message that was copied forward; moves entries, never makes one.
    Copy(MessageRecord<'a>),
    Acks(AckGroups<'a>),
    Requeue {
        queue: QueueId,
        entry: Entry,
        expires_at: Option<Timestamp>,
    },
    Purge {
        queue: QueueId,
        kept: Seqs<'a>,
    },
    QueueDeleted(QueueId),
    TopologyPut {
        key: &'a [u8],
        value: &'a [u8],
    },
    TopologyDelete(&'a [u8]),
    Visibility(QueueId, Visibility),
    Deduplication(QueueId, Deduplication),
    /// The segment's file may have been taken for another; with `prefix` all before it too.
    SegmentFreed {
        segment: u32,
        prefix: bool,
    },
    Commit(Commit),
}

/// The end of a group of records that is valid as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The group goes on in the next segment.
    pub(crate) continued: bool,
    /// Nothing follows in this segment.
    pub(crate) segment_end: bool,
    /// Records of the group in this segment, this one not counted.
    pub(crate) records: u32,
    /// Always greater than that of the commit before.
    pub(crate) number: u64,
    /// Where the group begins in this segment.
    pub(crate) start: u32,
    /// [`chain`] over the group's records in this segment.
    pub(crate) chain: u32,
    /// All commits up to this one were on the disk when this one was made. Unknown in format version 1.
    pub(crate) synced: Option<u64>,
}

/// Returns whether a commit may begin with these bytes: to be asked before [`parse`] where records are
/// looked for in what is damaged.
pub(crate) fn may_be_commit(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&TYPE_COMMIT)
        && matches!(u32_at(bytes, 4) as usize, COMMIT_BYTES | COMMIT_BYTES_V1)
}

/// A message record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRecord<'a> {
    pub(crate) seq: Seq,
    pub(crate) durable: bool,
    pub(crate) priority: u8,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) visible_at: Option<Timestamp>,
    /// 8 bytes each: none, one for all queues, or one for each.
    expiries: &'a [u8],
    /// 4 bytes each.
    queues: &'a [u8],
    pub(crate) exchange: &'a [u8],
    pub(crate) routing_key: &'a [u8],
    pub(crate) properties: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("there is no record")]
    End,
    #[error("the record is cut off, it needs {needed} bytes")]
    Truncated { needed: usize },
    #[error("a length of {length} is not that of a record")]
    Length { length: u32 },
    #[error("the checksum is wrong")]
    Checksum,
    #[error("{what}")]
    Malformed { what: &'static str },
}

/// A record and where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) len: usize,
    pub(crate) checksum: u32,
}

/// Returns the length that a record at the start of `bytes` claims.
pub(crate) fn record_len(bytes: &[u8]) -> Result<usize, RecordError> {
    let Some(field) = bytes.get(4..8) else {
        return Err(RecordError::Truncated { needed: RECORD_BYTES_MIN });
    };
    let length = u32_at(field, 0);
    match length {
        0 => Err(RecordError::End),
        length if (length as usize) < RECORD_BYTES_MIN || length > i32::MAX as u32 => {
            Err(RecordError::Length { length })
        }
        length => Ok(length as usize),
    }
}

/// Reads the record at the start of `bytes`.
pub(crate) fn parse(bytes: &[u8], seed: Seed) -> Result<Parsed<'_>, RecordError> {
    let len = record_len(bytes)?;
    let Some(bytes) = bytes.get(..len) else {
        return Err(RecordError::Truncated { needed: len });
    };
    let checksum = u32_at(bytes, 0);
    if seed.checksum(&bytes[4..]) != checksum {
        return Err(RecordError::Checksum);
    }
    Ok(Parsed { record: Record::decode(bytes)?, len, checksum })
}

/// Decodes a whole record whose checksum is wrong: any of what it says may be false.
pub(crate) fn decode_damaged(bytes: &[u8]) -> Option<Record<'_>> {
    if bytes.len() < RECORD_BYTES_MIN { None } else { Record::decode(bytes).ok() }
}

impl<'a> Record<'a> {
    /// Decodes a whole record whose checksum is right.
    fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let fixed = match bytes[8] {
            TYPE_MESSAGE | TYPE_COPY => MESSAGE_FIXED_BYTES,
            TYPE_REQUEUE => 48,
            TYPE_PURGE => 20,
            TYPE_QUEUE_DELETED | TYPE_TOPOLOGY_PUT | TYPE_TOPOLOGY_DELETE | TYPE_SEGMENT_FREED => {
                16
            }
            TYPE_COMMIT => COMMIT_BYTES_V1,
            TYPE_VISIBILITY => VISIBILITY_BYTES,
            TYPE_DEDUPLICATION => DEDUPLICATION_BYTES,
            _ => RECORD_BYTES_MIN,
        };
        if bytes.len() < fixed {
            return Err(RecordError::Malformed { what: "the record is too short for its type" });
        }
        Ok(match bytes[8] {
            TYPE_MESSAGE => Self::Message(MessageRecord::decode(bytes)?),
            TYPE_COPY => Self::Copy(MessageRecord::decode(bytes)?),
            TYPE_ACKS => Self::Acks(AckGroups::checked(&bytes[RECORD_BYTES_MIN..])?),
            TYPE_REQUEUE => decode_requeue(bytes),
            TYPE_PURGE => {
                let kept = &bytes[20..];
                if kept.len() != 8 * u32_at(bytes, 16) as usize {
                    return Err(RecordError::Malformed { what: "the list of kept messages lies" });
                }
                Self::Purge { queue: QueueId(u32_at(bytes, 12)), kept: Seqs(kept) }
            }
            TYPE_QUEUE_DELETED => Self::QueueDeleted(QueueId(u32_at(bytes, 12))),
            TYPE_TOPOLOGY_PUT => {
                let (key, value) = key_of(bytes)?;
                Self::TopologyPut { key, value }
            }
            TYPE_TOPOLOGY_DELETE => Self::TopologyDelete(key_of(bytes)?.0),
            TYPE_SEGMENT_FREED => Self::SegmentFreed {
                segment: u32_at(bytes, 12),
                prefix: bytes[9] & FREED_PREFIX != 0,
            },
            TYPE_VISIBILITY => decode_visibility(bytes),
            TYPE_DEDUPLICATION => decode_deduplication(bytes),
            TYPE_COMMIT => Self::Commit(Commit {
                continued: bytes[9] & COMMIT_CONTINUED != 0,
                segment_end: bytes[9] & COMMIT_SEGMENT_END != 0,
                records: u32_at(bytes, 12),
                number: u64_at(bytes, 16),
                start: u32_at(bytes, 24),
                chain: u32_at(bytes, 28),
                synced: (bytes.len() >= COMMIT_BYTES).then(|| u64_at(bytes, 32)),
            }),
            _ => return Err(RecordError::Malformed { what: "no such record type" }),
        })
    }
}

fn decode_requeue(bytes: &[u8]) -> Record<'_> {
    let expiry = Timestamp::from_millis(u64_at(bytes, 40));
    Record::Requeue {
        queue: QueueId(u32_at(bytes, 16)),
        entry: Entry {
            seq: Seq(u64_at(bytes, 24)),
            location: Location { segment: u32_at(bytes, 32), offset: u32_at(bytes, 36) },
            body_bytes: u32_at(bytes, 20),
            delivery_count: u16::from_le_bytes([bytes[12], bytes[13]]),
            priority: bytes[10],
            flags: EntryFlags::from_bits(bytes[9]),
        },
        expires_at: Some(expiry).filter(|e| *e != NEVER),
    }
}

fn decode_visibility(bytes: &[u8]) -> Record<'_> {
    Record::Visibility(
        QueueId(u32_at(bytes, 12)),
        Visibility {
            seq: Seq(u64_at(bytes, 16)),
            visible_at: Timestamp::from_millis(u64_at(bytes, 24)),
            first_received_at: Timestamp::from_millis(u64_at(bytes, 32)),
            receive_count: u16::from_le_bytes([bytes[10], bytes[11]]),
        },
    )
}

fn decode_deduplication(bytes: &[u8]) -> Record<'_> {
    let mut message_id = [0; 16];
    message_id.copy_from_slice(&bytes[48..64]);
    Record::Deduplication(
        QueueId(u32_at(bytes, 12)),
        Deduplication {
            seq: Seq(u64_at(bytes, 16)),
            sent_at: Timestamp::from_millis(u64_at(bytes, 24)),
            key: [u64_at(bytes, 32), u64_at(bytes, 40)],
            message_id,
        },
    )
}

fn key_of(bytes: &[u8]) -> Result<(&[u8], &[u8]), RecordError> {
    bytes[16..]
        .split_at_checked(u32_at(bytes, 12) as usize)
        .ok_or(RecordError::Malformed { what: "the key is longer than its record" })
}

impl<'a> MessageRecord<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        const SHORT: RecordError =
            RecordError::Malformed { what: "the message's parts are longer than its record" };
        let flags = bytes[9];
        let queue_count = u32_at(bytes, 32) as usize;
        let expiry_count = match flags & (MESSAGE_ONE_EXPIRY | MESSAGE_EACH_EXPIRY) {
            0 => 0,
            MESSAGE_ONE_EXPIRY => 1,
            MESSAGE_EACH_EXPIRY => queue_count,
            _ => return Err(RecordError::Malformed { what: "two kinds of expiry" }),
        };
        if queue_count == 0 {
            return Err(RecordError::Malformed { what: "a message for no queue" });
        }
        let mut rest = &bytes[MESSAGE_FIXED_BYTES..];
        let mut take = |len: usize| -> Result<&'a [u8], RecordError> {
            let (part, after) = rest.split_at_checked(len).ok_or(SHORT)?;
            rest = after;
            Ok(part)
        };
        let visible_at = if flags & MESSAGE_VISIBLE_AT == 0 {
            None
        } else {
            Some(Timestamp::from_millis(u64_at(take(8)?, 0)))
        };
        Ok(Self {
            seq: Seq(u64_at(bytes, 16)),
            durable: flags & MESSAGE_DURABLE != 0,
            priority: bytes[10],
            enqueued_at: Timestamp::from_millis(u64_at(bytes, 24)),
            visible_at,
            expiries: take(expiry_count.checked_mul(8).ok_or(SHORT)?)?,
            queues: take(queue_count.checked_mul(4).ok_or(SHORT)?)?,
            exchange: take(usize::from(bytes[11]))?,
            routing_key: take(usize::from(bytes[12]))?,
            properties: take(u32_at(bytes, 36) as usize)?,
            body: rest,
        })
    }

    /// Returns the queues in their order, each with its expiry or [`NEVER`].
    pub(crate) fn queues(&self) -> impl Iterator<Item = (QueueId, Timestamp)> + 'a {
        let (queues, expiries) = (self.queues, self.expiries);
        queues.chunks_exact(4).enumerate().map(move |(at, queue)| {
            let expiry = match expiries.len() {
                0 => NEVER,
                8 => Timestamp::from_millis(u64_at(expiries, 0)),
                _ => Timestamp::from_millis(u64_at(expiries, 8 * at)),
            };
            (QueueId(u32_at(queue, 0)), expiry)
        })
    }

    pub(crate) const fn queue_count(&self) -> u32 {
        (self.queues.len() / 4) as u32
    }

    /// Returns the expiry that the message has in a queue, if it is there.
    pub(crate) fn expiry_in(&self, queue: QueueId) -> Option<Timestamp> {
        self.queues().find(|(q, _)| *q == queue).map(|(_, expiry)| expiry)
    }

    /// Returns the entry that the record makes in a queue where it has this expiry.
    pub(crate) fn entry(&self, location: Location, expiry: Timestamp) -> Entry {
        let mut flags = EntryFlags::STORED;
        if self.durable {
            flags = flags.with(EntryFlags::DURABLE);
        }
        if expiry != NEVER {
            flags = flags.with(EntryFlags::HAS_EXPIRY);
        }
        Entry {
            seq: self.seq,
            location,
            body_bytes: self.body.len() as u32,
            delivery_count: 0,
            priority: self.priority,
            flags,
        }
    }

    /// Returns the message itself, in memory of its own.
    pub(crate) fn message(&self) -> Result<Arc<Message>, RecordError> {
        let text = |bytes: &'a [u8]| {
            std::str::from_utf8(bytes)
                .map_err(|_| RecordError::Malformed { what: "a name is not UTF-8" })
        };
        let body = Bytes::copy_from_slice(self.body);
        let (exchange, key) = (text(self.exchange)?, text(self.routing_key)?);
        Ok(Arc::new(Message::new(exchange, key, self.properties, body)))
    }
}

/// Numbers of messages, 8 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seqs<'a>(&'a [u8]);

impl<'a> Seqs<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = Seq> + 'a {
        self.0.chunks_exact(8).map(|seq| Seq(u64_at(seq, 0)))
    }
}

/// The content of an acks record: groups of `queue, count, first seq, differences`, all varints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckGroups<'a>(&'a [u8]);

impl<'a> AckGroups<'a> {
    /// Walks the groups once, so that nobody behind has to check them.
    fn checked(bytes: &'a [u8]) -> Result<Self, RecordError> {
        const BAD: RecordError =
            RecordError::Malformed { what: "the acknowledgements are garbled" };
        let mut rest = bytes;
        while !rest.is_empty() {
            let queue = varint(&mut rest).ok_or(BAD)?;
            let count = varint(&mut rest).ok_or(BAD)?;
            if queue > u64::from(u32::MAX) || count == 0 || count > rest.len() as u64 {
                return Err(BAD);
            }
            let mut seq = 0_u64;
            for _ in 0..count {
                seq = seq.checked_add(varint(&mut rest).ok_or(BAD)?).ok_or(BAD)?;
            }
        }
        Ok(Self(bytes))
    }

    pub(crate) fn for_each(self, mut f: impl FnMut(QueueId, Seq)) {
        let mut rest = self.0;
        while let (Some(queue), Some(count)) = (varint(&mut rest), varint(&mut rest)) {
            let mut seq = 0_u64;
            for _ in 0..count {
                seq += varint(&mut rest).unwrap_or(0);
                f(QueueId(queue as u32), Seq(seq));
            }
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut array = [0; 4];
    array.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(array)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(array)
}

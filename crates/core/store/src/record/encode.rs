//! Writing records: docs/formats/log.md, "Records".

use quelea_model::{QueueId, Seq, Timestamp};

use super::*;

/// Appends the content of an acks record; sorts the list.
pub(crate) fn encode_acks(acks: &mut [(QueueId, Seq)], out: &mut Vec<u8>) {
    acks.sort_unstable();
    out.extend_from_slice(&[TYPE_ACKS, 0, 0, 0]);
    for group in acks.chunk_by(|a, b| a.0 == b.0) {
        put_varint(out, u64::from(group[0].0.0));
        put_varint(out, group.len() as u64);
        let mut before = 0;
        for (_, seq) in group {
            put_varint(out, seq.0 - before);
            before = seq.0;
        }
    }
}

/// Returns the bytes of the acks record for so many acknowledgements, at most.
pub(crate) const fn acks_bytes_max(count: usize) -> usize {
    // 5 for a queue, 5 for a count, 10 for a number, each in a group of its own.
    RECORD_BYTES_MIN + 20 * count
}

/// Returns the bytes of a message's record.
pub(crate) fn message_bytes(new: &NewMessage<'_>) -> usize {
    MESSAGE_FIXED_BYTES
        + 8 * (new.expiries.len() + usize::from(new.visible_at.is_some()))
        + 4 * new.queues.len()
        + new.message.head().len()
        + new.message.body().len()
}

/// Appends a message's record from its type on, without the body.
pub(crate) fn encode_message(new: &NewMessage<'_>, out: &mut Vec<u8>) {
    let head = new.message.head();
    let names = [new.message.exchange_len(), new.message.routing_key_len()];
    let properties_len = head.len() - usize::from(names[0]) - usize::from(names[1]);
    let mut flags = 0;
    if new.durable {
        flags |= MESSAGE_DURABLE;
    }
    match new.expiries.len() {
        0 => {}
        1 => flags |= MESSAGE_ONE_EXPIRY,
        _ => flags |= MESSAGE_EACH_EXPIRY,
    }
    if new.visible_at.is_some() {
        flags |= MESSAGE_VISIBLE_AT;
    }
    let mut fixed = [0; MESSAGE_FIXED_BYTES - 8];
    fixed[0] = TYPE_MESSAGE;
    fixed[1] = flags;
    fixed[2] = new.priority;
    fixed[3] = names[0];
    fixed[4] = names[1];
    fixed[8..16].copy_from_slice(&new.seq.0.to_le_bytes());
    fixed[16..24].copy_from_slice(&new.enqueued_at.as_millis().to_le_bytes());
    fixed[24..28].copy_from_slice(&(new.queues.len() as u32).to_le_bytes());
    fixed[28..32].copy_from_slice(&(properties_len as u32).to_le_bytes());
    out.extend_from_slice(&fixed);
    for time in new.visible_at.iter().chain(new.expiries) {
        out.extend_from_slice(&time.as_millis().to_le_bytes());
    }
    for queue in new.queues {
        out.extend_from_slice(&queue.0.to_le_bytes());
    }
    out.extend_from_slice(head);
}

/// Appends a copy of a message's record, from its type on; `record` is the whole old one.
pub(crate) fn encode_copy(record: &[u8], out: &mut Vec<u8>) {
    out.push(TYPE_COPY);
    out.extend_from_slice(&record[RECORD_HEADER_BYTES..]);
}

pub(crate) fn encode_requeue(
    queue: QueueId,
    entry: &Entry,
    expires_at: Option<Timestamp>,
    out: &mut Vec<u8>,
) {
    let mut bytes = [0; 40];
    bytes[0] = TYPE_REQUEUE;
    bytes[1] = entry.flags.bits();
    bytes[2] = entry.priority;
    bytes[4..6].copy_from_slice(&entry.delivery_count.to_le_bytes());
    bytes[8..12].copy_from_slice(&queue.0.to_le_bytes());
    bytes[12..16].copy_from_slice(&entry.body_bytes.to_le_bytes());
    bytes[16..24].copy_from_slice(&entry.seq.0.to_le_bytes());
    bytes[24..28].copy_from_slice(&entry.location.segment.to_le_bytes());
    bytes[28..32].copy_from_slice(&entry.location.offset.to_le_bytes());
    let expiry = expires_at.unwrap_or(NEVER);
    bytes[32..40].copy_from_slice(&expiry.as_millis().to_le_bytes());
    out.extend_from_slice(&bytes);
}

pub(crate) fn encode_purge(queue: QueueId, kept: &[Seq], out: &mut Vec<u8>) {
    out.extend_from_slice(&[TYPE_PURGE, 0, 0, 0]);
    out.extend_from_slice(&queue.0.to_le_bytes());
    out.extend_from_slice(&(kept.len() as u32).to_le_bytes());
    for seq in kept {
        out.extend_from_slice(&seq.0.to_le_bytes());
    }
}

pub(crate) fn encode_queue_deleted(queue: QueueId, out: &mut Vec<u8>) {
    out.extend_from_slice(&[TYPE_QUEUE_DELETED, 0, 0, 0]);
    out.extend_from_slice(&queue.0.to_le_bytes());
}

/// A put with a value, a delete without.
pub(crate) fn encode_topology(key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
    let kind = if value.is_some() { TYPE_TOPOLOGY_PUT } else { TYPE_TOPOLOGY_DELETE };
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value.unwrap_or_default());
}

pub(crate) fn encode_visibility(queue: QueueId, visibility: &Visibility, out: &mut Vec<u8>) {
    let mut bytes = [0; VISIBILITY_BYTES - 8];
    bytes[0] = TYPE_VISIBILITY;
    bytes[2..4].copy_from_slice(&visibility.receive_count.to_le_bytes());
    bytes[4..8].copy_from_slice(&queue.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&visibility.seq.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&visibility.visible_at.as_millis().to_le_bytes());
    bytes[24..32].copy_from_slice(&visibility.first_received_at.as_millis().to_le_bytes());
    out.extend_from_slice(&bytes);
}

pub(crate) fn encode_deduplication(queue: QueueId, sent: &Deduplication, out: &mut Vec<u8>) {
    let mut bytes = [0; DEDUPLICATION_BYTES - 8];
    bytes[0] = TYPE_DEDUPLICATION;
    bytes[4..8].copy_from_slice(&queue.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&sent.seq.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&sent.sent_at.as_millis().to_le_bytes());
    bytes[24..32].copy_from_slice(&sent.key[0].to_le_bytes());
    bytes[32..40].copy_from_slice(&sent.key[1].to_le_bytes());
    bytes[40..56].copy_from_slice(&sent.message_id);
    out.extend_from_slice(&bytes);
}

pub(crate) fn encode_segment_freed(segment: u32, prefix: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&[TYPE_SEGMENT_FREED, if prefix { FREED_PREFIX } else { 0 }, 0, 0]);
    out.extend_from_slice(&segment.to_le_bytes());
}

/// Appends a whole commit record: of format version 1 if nothing is said of what is synced.
pub(crate) fn encode_commit(commit: &Commit, seed: Seed, out: &mut Vec<u8>) {
    let mut flags = 0;
    if commit.continued {
        flags |= COMMIT_CONTINUED;
    }
    if commit.segment_end {
        flags |= COMMIT_SEGMENT_END;
    }
    let len = if commit.synced.is_some() { COMMIT_BYTES } else { COMMIT_BYTES_V1 };
    let mut bytes = [0; COMMIT_BYTES];
    bytes[4..8].copy_from_slice(&(len as u32).to_le_bytes());
    bytes[8] = TYPE_COMMIT;
    bytes[9] = flags;
    bytes[12..16].copy_from_slice(&commit.records.to_le_bytes());
    bytes[16..24].copy_from_slice(&commit.number.to_le_bytes());
    bytes[24..28].copy_from_slice(&commit.start.to_le_bytes());
    bytes[28..32].copy_from_slice(&commit.chain.to_le_bytes());
    bytes[32..40].copy_from_slice(&commit.synced.unwrap_or(0).to_le_bytes());
    let checksum = seed.checksum(&bytes[4..len]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&bytes[..len]);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

//! Sending straight to a queue, with what AMQP has no words for: delays, groups, deduplication.

use std::sync::Arc;

use quelea_model::limits::DEDUPLICATIONS_PER_QUEUE_MAX;
use quelea_model::{Message, PropertyView, QueueId, Timestamp};
use quelea_store::{Deduplication, Durability, Ticket};

use crate::error::{LimitReached, NoSuchQueueId, SendError};
use crate::messaging::{MessageOptions, Messaging};
use crate::queues::Queues;
use crate::queues::queue::groups::{NO_GROUP, group_of_id};
use crate::reply::SentMessage;
use crate::request::Send;
use crate::work::STEPS_PER_TARGET;

impl Messaging {
    /// Sends messages to a queue, in order; an outcome for each. Who reports that they were sent
    /// waits for the ticket.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        id: QueueId,
        messages: Vec<Send>,
    ) -> Result<(Vec<Result<SentMessage, SendError>>, Ticket), NoSuchQueueId> {
        let Some(queue) = self.queues.get(id) else {
            return Err(NoSuchQueueId { queue: id });
        };
        let (durability, name) = (queue.rules.durability, queue.name.clone());
        let keeps = queue.keeps_messages();
        self.steps += (messages.len() as u64).saturating_sub(1) * STEPS_PER_TARGET;
        let is_grouped = messages.iter().any(|message| message.group.is_some());
        if is_grouped && queue.groups.is_none() {
            self.queues.begin_fairness(&mut self.log, id);
        }
        let sent =
            messages.into_iter().map(|send| self.send_one(now, id, name.as_str(), send)).collect();
        let ticket = self.ticket(if keeps { durability } else { Durability::None });
        Ok((sent, ticket))
    }

    fn send_one(
        &mut self,
        now: Timestamp,
        id: QueueId,
        name: &str,
        send: Send,
    ) -> Result<SentMessage, SendError> {
        let by_group = self.queues.get(id).and_then(|queue| queue.settings().fifo);
        let by_group = by_group.is_some_and(|fifo| fifo.deduplicates_by_group);
        let scope = send.group.as_deref().filter(|_| by_group);
        let key = send.deduplication.as_deref().map(|id| deduplication_key(id, scope));
        if let Some(key) = key
            && let Some(first) = find_duplicate(&mut self.queues, now, id, key)?
        {
            return Ok(first);
        }
        let message = Arc::new(Message::new("", name, &send.properties, send.body));
        let options = MessageOptions {
            persistent: true,
            visible_at: send.delay_ms.map(|ms| now.plus_ms(ms)),
            group: Some(send.group.as_deref().map_or(NO_GROUP, group_of_id)),
            priority: PropertyView::new(&send.properties).priority().unwrap_or(0),
            ..MessageOptions::default()
        };
        let seq = self.queues.next_seq();
        let sent = SentMessage { seq, message_id: send.message_id };
        self.log.store.begin_atomic();
        let enqueued = self.enqueue(now, &[id], &message, options);
        if enqueued.taken > 0
            && let Some(key) = key
        {
            let noted = Deduplication { seq, sent_at: now, key, message_id: send.message_id };
            self.log.store.append_deduplication(id, &noted);
            if let Some(queue) = self.queues.get_mut(id) {
                queue.deduplications.get_or_insert_default().add(noted);
            }
        }
        self.log.store.end_atomic();
        self.counters.publish += 1;
        self.counters.enqueued += enqueued.taken as u64;
        if enqueued.rejected { Err(SendError::QueueFull) } else { Ok(sent) }
    }
}

/// Returns the message that was sent with this id lately, if there was one.
fn find_duplicate(
    queues: &mut Queues,
    now: Timestamp,
    id: QueueId,
    key: [u64; 2],
) -> Result<Option<SentMessage>, SendError> {
    let Some(queue) = queues.get_mut(id) else {
        return Ok(None);
    };
    let known = queue.deduplications.get_or_insert_default();
    if let Some(first) = known.find(key, now) {
        return Ok(Some(SentMessage { seq: first.seq, message_id: first.message_id }));
    }
    if known.is_full() {
        let what = String::from("another deduplication id within five minutes");
        return Err(LimitReached { what, limit: DEDUPLICATIONS_PER_QUEUE_MAX }.into());
    }
    Ok(None)
}

/// Returns what stands for a deduplication id in its scope: FNV-1a of 128 bits, so that two ids
/// never share them by chance. It is in the log, so it stays the same in every version.
fn deduplication_key(id: &str, scope: Option<&str>) -> [u64; 2] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    // No text has this byte, so a scope and an id are not taken for others that read the same.
    let separator: &[u8] = if scope.is_some() { &[0xff] } else { &[] };
    let bytes = scope.unwrap_or_default().bytes().chain(separator.iter().copied());
    let hash = bytes
        .chain(id.bytes())
        .fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    [hash as u64, (hash >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deduplication_key_never_changes() {
        // The published test vectors of FNV-1a, 128 bits.
        assert_eq!(deduplication_key("", None), [0x62b8_2175_6295_c58d, 0x6c62_272e_07bb_0142]);
        assert_eq!(deduplication_key("a", None), [0x7891_2b70_4e4a_8964, 0xd228_cb69_6f1a_8caf]);
        assert_ne!(deduplication_key("b", Some("a")), deduplication_key("ab", None));
        assert_ne!(deduplication_key("c", Some("ab")), deduplication_key("bc", Some("a")));
    }
}

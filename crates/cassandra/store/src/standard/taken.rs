//! What becomes of an entry whose message was asked for.

use quelea_sqs_protocol::{Consistency, Fault, QueueFacts};
use uuid::Uuid;

use crate::entry::Entry;
use crate::message_id::sent_at_ms;
use crate::standard::Standard;
use crate::standard::content::StoredMessage;
use crate::standard::rows::{Found, Rows};

/// What was found of an entry's message.
pub(super) enum Taken {
    /// It is there.
    Message(Box<StoredMessage>),
    /// Its message is gone, or was moved by somebody.
    Stale,
    /// Its message is there, and is older than its queue keeps messages.
    Expired,
    /// Its message was sent a moment ago and is not there yet, or Cassandra did not answer.
    Later,
    /// Its message's row cannot be read.
    Unreadable,
}

impl Standard {
    /// Returns what was found of an entry's message.
    pub(super) fn classify(
        &self,
        facts: &QueueFacts,
        rows: &Rows<'_>,
        entry: &Entry,
        message: Result<Found, Fault>,
        now_us: i64,
    ) -> Taken {
        match message {
            Ok(Found::Message(message)) => {
                if message.lease_written_at_us > entry.written_at_us {
                    Taken::Stale
                } else if is_expired(facts, entry.message, now_us) {
                    Taken::Expired
                } else {
                    Taken::Message(Box::new(message))
                }
            }
            Ok(Found::Nothing) if !self.may_come(rows, entry, now_us) => Taken::Stale,
            Ok(Found::Unreadable) => Taken::Unreadable,
            Ok(Found::Nothing) | Err(_) => Taken::Later,
        }
    }

    /// Returns whether an entry's message that is not there may still be on its way, to the replicas that were asked for it. Whoever
    /// has received it has read it: where that takes a quorum, a quorum had it, and it was deleted.
    fn may_come(&self, rows: &Rows<'_>, entry: &Entry, now_us: i64) -> bool {
        let was_there = entry.receive_count > 0 && rows.of.consistency == Consistency::LocalQuorum;
        !was_there && now_us.saturating_sub(entry.written_at_us) < self.grace_us(rows)
    }
}

/// Returns whether a message is older than its queue keeps messages.
pub(super) fn is_expired(facts: &QueueFacts, message: Uuid, now_us: i64) -> bool {
    let expires_at_ms = sent_at_ms(message).saturating_add(facts.settings.retention_ms);
    expires_at_ms < (now_us / 1_000).max(0).unsigned_abs()
}

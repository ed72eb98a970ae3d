//! What calls ask for, while it waits to be carried out with that of others.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, QueueFacts, ReceiptOutcome, Receive, Received, SendOutcome};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::entry::Entry;
use crate::limits::WAITING_MS_MAX;
use crate::message_id::sent_at_ms;
use crate::standard::content::Content;
use crate::standard::receipt::Receipt;

/// How much longer than its message an entry lives, in seconds.
pub(crate) const ENTRY_OUTLIVES_S: i32 = 3_600;

/// One call's messages.
pub(crate) struct SendJob {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) messages: Vec<Outgoing>,
    pub(crate) since: Instant,
    /// Their bytes, of those that may wait in all.
    pub(crate) room: OwnedSemaphorePermit,
    pub(crate) reply: oneshot::Sender<Vec<SendOutcome>>,
}

/// A message on its way, to a queue it has never been in or to one that it is moved to.
pub(crate) struct Outgoing {
    pub(crate) id: Uuid,
    pub(crate) content: Content,
    pub(crate) delay_ms: u64,
    pub(crate) ttl_s: i32,
    /// A timestamp that the message's rows have to be later than; 0: any.
    pub(crate) after_us: i64,
}

/// One call's entries.
pub(crate) struct DeleteJob {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) since: Instant,
    pub(crate) reply: oneshot::Sender<Vec<Result<(), Fault>>>,
}

/// One call's changes of visibility: receipts of the queue, each with the time from now on, in ms.
pub(crate) struct VisibilityJob {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) changes: Vec<(Receipt, u64)>,
    pub(crate) since: Instant,
    /// Of the changes that may wait in all.
    pub(crate) room: OwnedSemaphorePermit,
    pub(crate) reply: oneshot::Sender<Result<Vec<ReceiptOutcome>, Fault>>,
}

/// One call that waits for messages.
pub(crate) struct ReceiveJob {
    pub(crate) facts: Arc<QueueFacts>,
    pub(crate) receive: Receive,
    pub(crate) until: Instant,
    pub(crate) reply: oneshot::Sender<Result<Vec<Received>, Fault>>,
}

/// Returns what those hear whose call has waited here for too long already; `None`: it has not.
pub(crate) fn waited_too_long(since: Instant) -> Option<Fault> {
    let is_late = since.elapsed() >= Duration::from_millis(WAITING_MS_MAX);
    is_late.then(|| Fault::Unavailable("Cassandra takes too long for what waits here".to_owned()))
}

/// Returns for how long a queue keeps a message that is sent to it, in s.
pub(crate) fn kept_s(to: &QueueFacts) -> i32 {
    ((to.settings.retention_ms / 1_000) as i32).max(1)
}

/// Returns for how long a queue keeps a message that comes from another one, in s: its age counts.
pub(crate) fn time_left_s(to: &QueueFacts, message: Uuid, now_ms: u64) -> i32 {
    let age_ms = now_ms.saturating_sub(sent_at_ms(message));
    ((to.settings.retention_ms.saturating_sub(age_ms) / 1_000) as i32).max(1)
}

/// Returns for how long an entry of that message lives that is written now, in s.
pub(crate) fn entry_ttl_s(facts: &QueueFacts, message: Uuid, now_us: i64) -> i32 {
    let age_ms = ((now_us / 1_000).max(0).unsigned_abs()).saturating_sub(sent_at_ms(message));
    let left_s = facts.settings.retention_ms.saturating_sub(age_ms) / 1_000;
    (left_s as i32).saturating_add(ENTRY_OUTLIVES_S)
}

//! A message on its way into the log.

use quelea_model::{Message, QueueId, Seq, Timestamp};

/// A message to append, once for all the queues that it was routed to.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// Its place in the order of publication. Appended in rising order, but for spilled messages.
    pub seq: Seq,
    /// The queues; not empty, none twice.
    pub queues: &'a [QueueId],
    /// Whether it survives a restart. One that does not is a transient message that is spilled.
    pub durable: bool,
    /// When it was published.
    pub enqueued_at: Timestamp,
    /// From when it may be received, if not at once.
    pub visible_at: Option<Timestamp>,
    /// When it expires: empty if nowhere, one time if everywhere alike, else a time for each queue
    /// in their order ([`crate::NEVER`] where it does not).
    pub expiries: &'a [Timestamp],
    /// Its priority before any queue caps it; 0 if it has none.
    pub priority: u8,
    /// The message.
    pub message: &'a Message,
}

//! What operations answer.

use std::sync::Arc;

use quelea_model::{Message, QueueId, QueueName, Seq, Timestamp};
use quelea_store::Ticket;

use crate::request::BrowsePlace;

/// What came of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Confirm when the store has reached it.
    pub ticket: Ticket,
    /// Whether any queue was found; if not, a mandatory message is to be returned (312 NO_ROUTE).
    pub routed: bool,
    /// A full queue with `reject-publish` refused it: basic.nack instead of basic.ack.
    pub rejected: bool,
}

/// What came of queue.declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDeclared {
    /// The name, made up if none was given.
    pub name: QueueName,
    /// Ready messages.
    pub messages: u32,
    /// Consumers.
    pub consumers: u32,
    /// declare-ok leaves when the store has reached it.
    pub ticket: Ticket,
}

/// What came of queue.purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// How many ready messages went.
    pub messages: u32,
    /// purge-ok leaves when the store has reached it.
    pub ticket: Ticket,
}

/// What came of queue.delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDeleted {
    /// How many ready messages went with it.
    pub messages: u32,
    /// delete-ok leaves when the store has reached it.
    pub ticket: Ticket,
}

/// One delivery of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The queue.
    pub queue: QueueId,
    /// The message.
    pub seq: Seq,
    /// Which of its receptions it is, counted from 1.
    pub receive_count: u16,
}

/// A message that was received.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// What deletes it.
    pub receipt: Receipt,
    /// When it was received for the first time.
    pub first_received_at: Timestamp,
    /// The message.
    pub message: Arc<Message>,
}

/// What became of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// Done. A message that is gone, or that somebody else has received since, is left as it is.
    Done,
    /// It is a receipt of another queue.
    Foreign,
    /// The message is visible, or somebody else has received it since.
    NotInFlight,
    /// The message is gone.
    Gone,
    /// Its time is over, and the queue is a FIFO queue.
    Expired,
    /// It would be invisible for more than 12 hours in all.
    TooLong,
    /// The message has to be read first; try again.
    Busy,
}

/// What became of a sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Its place in the order of publication. Of a duplicate, the first one's.
    pub seq: Seq,
    /// What it is called. Of a duplicate, what the first one is called.
    pub message_id: [u8; 16],
}

/// What a user may do with a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePermits {
    /// Declare, change, delete.
    pub configure: bool,
    /// Send.
    pub write: bool,
    /// Receive.
    pub read: bool,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Ready to be received.
    pub visible: u64,
    /// Received through SQS or delivered over AMQP, and neither deleted nor acknowledged.
    pub in_flight: u64,
    /// Not yet to be received.
    pub delayed: u64,
    /// When the oldest one was sent; `None` if there is none, or it is not known.
    pub oldest_sent_at: Option<Timestamp>,
}

/// Names of queues, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueNames {
    /// Those that were found.
    pub names: Vec<QueueName>,
    /// Where to go on, in another call of the core; `None`: these are all.
    pub go_on_after: Option<QueueName>,
}

/// A part of a queue's ready messages, in the order in which they will be given out.
#[derive(Clone, Debug, Default)]
pub struct BrowsedPage {
    /// What was found. A message that cannot be read is left out.
    pub messages: Vec<BrowsedMessage>,
    /// Where to go on, in another call; `None`: there are no more.
    pub next: Option<BrowsePlace>,
}

/// A message that somebody looked at, and that is still in its queue.
#[derive(Clone, Debug)]
pub struct BrowsedMessage {
    /// What the next delivery will say.
    pub redelivered: bool,
    /// The message.
    pub message: Arc<Message>,
}

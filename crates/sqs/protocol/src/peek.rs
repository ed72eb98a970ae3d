//! A look into a queue that is no reception: nothing of the queue is other afterwards.

use bytes::Bytes;

use crate::{MessageAttribute, QueueRef};

/// What a look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// The oldest messages. In a FIFO queue in the order in which they were sent; else those first that can be received, the
    /// longest visible of them first, and then the others, as they become visible.
    pub messages: Vec<PeekedMessage>,
    /// Whether there is nothing else in the queue. `false`: the look has ended at one of its limits, and there may be more.
    pub is_whole: bool,
}

/// A message that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeekedMessage {
    /// A UUID.
    pub message_id: String,
    /// The body.
    pub body: Bytes,
    /// Its attributes, sorted by name.
    pub attributes: Vec<MessageAttribute>,
    /// How often it was received so far; `None`: nobody can be asked at the moment.
    pub receive_count: Option<u32>,
    /// SentTimestamp.
    pub sent_at_ms: u64,
    /// ApproximateFirstReceiveTimestamp; `None`: it was not received, or nobody can be asked.
    pub first_received_at_ms: Option<u64>,
    /// SenderId.
    pub sender_id: Option<String>,
    /// AWSTraceHeader.
    pub trace_header: Option<String>,
    /// MessageGroupId.
    pub group_id: Option<String>,
    /// MessageDeduplicationId.
    pub deduplication_id: Option<String>,
    /// SequenceNumber.
    pub sequence_number: Option<String>,
    /// Where it was before it was dead-lettered.
    pub dead_letter_source: Option<QueueRef>,
    /// Whether it can be received; `None`: nobody can be asked at the moment.
    pub state: Option<PeekedState>,
}

/// Whether a message can be received, as a backlog counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeekedState {
    /// It can be received, in a FIFO queue after those before it in its group.
    Visible,
    /// Not before then, in ms since 1970: its delay is not over.
    Delayed {
        /// When that is.
        until_ms: u64,
    },
    /// Somebody has received it.
    InFlight {
        /// When it is visible again, in ms since 1970, unless it is deleted before; 0: it is leaving the queue.
        until_ms: u64,
    },
}

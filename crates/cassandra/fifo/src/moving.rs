//! Messages that a task moves to another queue.

use quelea_sqs_protocol::QueueRef;

/// A call that has messages moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveCall {
    /// At most so many.
    pub max: usize,
    /// Where to; `None`: each to the queue that it came from.
    pub to: Option<QueueRef>,
}

/// What came of a call that has messages moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedOut {
    /// Messages that are at their destination and gone here.
    pub moved: u64,
    /// Whether nothing else can be received.
    pub is_empty: bool,
}

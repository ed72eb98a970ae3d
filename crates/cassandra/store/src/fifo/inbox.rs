//! What comes to the task of an owned queue.

use quelea_cassandra_fifo::CallId;
use tokio::sync::oneshot;

use super::operation::{Answer, FifoQueue, Operation};

/// What comes to an owner.
pub(super) enum Input {
    Call {
        queue: FifoQueue,
        operation: Operation,
        reply: oneshot::Sender<Answer>,
        call: CallId,
    },
    /// Nobody waits for this call any more.
    Cancel(CallId),
    /// The front-end stops.
    Release(oneshot::Sender<()>),
}

//! Receives that wait for messages, and their callers.

use quelea_broker::{ReceiveError, ReceiveId, ReceivedMessage};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

/// Takes the answer to a receive: the messages, or `None` if the queue was deleted meanwhile.
pub type ReceiveAnswer = oneshot::Sender<Result<Option<Vec<ReceivedMessage>>, ReceiveError>>;

/// The callers; as many as the broker admits receives.
#[derive(Default)]
pub(crate) struct Receives(FxHashMap<ReceiveId, ReceiveAnswer>);

impl Receives {
    pub(crate) fn add(&mut self, receive: ReceiveId, answer: ReceiveAnswer) {
        self.0.insert(receive, answer);
    }

    pub(crate) fn remove(&mut self, receive: ReceiveId) -> Option<ReceiveAnswer> {
        self.0.remove(&receive)
    }
}

//! A receive, which may wait in the core for messages, and is cancelled there when its client leaves.

use std::sync::{Arc, OnceLock};

use quelea_broker::{ReceiveError, ReceiveId};
use quelea_model::QueueId;
use quelea_node::{CoreHandle, CoreStopped};
use quelea_sqs_protocol::{Fault, QueueFacts, Receive, Received};
use tokio::sync::oneshot;

use crate::broker_calls::{BrokerCalls, queue_id, stopped};
use crate::message;
use crate::undelivered::{ReceiveAnswer, undelivered};

/// Receives messages; waits for some as long as the request says.
pub(crate) async fn receive(
    calls: &BrokerCalls,
    queue: &QueueFacts,
    receive: Receive,
) -> Result<Vec<Received>, Fault> {
    let id = queue_id(queue.key)?;
    let (sender, answer) = oneshot::channel();
    let wanted = quelea_broker::Receive {
        max: receive.max,
        visibility_timeout_ms: receive.visibility_timeout_ms,
        wait_ms: receive.wait_ms,
        attempt: receive.attempt_id.as_deref().map(hash),
    };
    let begun = Arc::new(OnceLock::new());
    let begins = Arc::clone(&begun);
    let posted = calls.core().post(move |core| {
        if let Some(receive) = core.receive(id, wanted, sender) {
            let _ = begins.set(receive);
        }
    });
    posted.await.map_err(stopped)?;
    let mut pending = PendingReceive { core: calls.core(), queue: id, begun: Some(begun), answer };
    let messages = (&mut pending.answer).await.map_err(|_| stopped(CoreStopped))?;
    pending.begun = None;
    let messages = messages.map_err(receive_fault)?.ok_or(Fault::NoSuchQueue)?;
    let (account, is_fifo) = (&queue.queue.account, queue.settings.is_fifo());
    Ok(messages.iter().map(|one| message::incoming(one, account, is_fifo)).collect())
}

/// A receive that is cancelled when its request has ended.
struct PendingReceive<'a> {
    core: &'a CoreHandle,
    queue: QueueId,
    /// What the core says of it; `None` once it has answered.
    begun: Option<Arc<OnceLock<ReceiveId>>>,
    answer: oneshot::Receiver<ReceiveAnswer>,
}

impl Drop for PendingReceive<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            let queue = self.queue;
            let undelivered = undelivered(&mut self.answer);
            // If it cannot be cancelled now it ends when its time is over, or its answer finds nobody.
            self.core.try_call(move |core| {
                if !undelivered.is_empty() {
                    let now = core.now();
                    core.broker.undo_receives(now, &undelivered);
                }
                if let Some(receive) = begun.get() {
                    core.cancel_receive(queue, *receive);
                }
            });
        }
    }
}

fn receive_fault(error: ReceiveError) -> Fault {
    match error {
        ReceiveError::NoSuchQueue(_) => Fault::NoSuchQueue,
        ReceiveError::OverLimit(reached) => Fault::OverLimit { limit: reached.limit },
        ReceiveError::Busy(reached) => Fault::Unavailable(reached.to_string()),
    }
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

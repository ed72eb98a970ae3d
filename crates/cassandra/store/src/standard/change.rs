//! A change of a queue that other front-ends may know as it was: its purge, its deletion, other attributes. As long as it is under way
//! the others do not hear that all is as it was, so that they read for themselves (`peers/hearing.rs`): it may be made at any
//! time, also after its answer was lost.

use std::pin::pin;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, QueueRef};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::limits::CHANGES_AT_ONCE;
use crate::standard::Standard;
use crate::standard::tables::Asked;

/// How often what is remembered of a queue is forgotten while it is being changed.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// How long after a failure it is asked again whether a change was made.
const SETTLE_EVERY: Duration = Duration::from_secs(2);

impl Standard {
    /// Carries out a change of a queue, notifies the other front-ends of it, whatever its outcome, and answers. If nobody knows
    /// whether it was made, that is settled afterwards: `settle` returns when it is made, or will not be any more.
    ///
    /// It is not to be broken off: whoever has asked for it waits for the answer alone.
    pub(crate) async fn change<'a>(
        &self,
        queue: &QueueRef,
        change: impl Future<Output = Result<(), Fault>> + Send,
        settle: impl Fn() -> Asked<'a, ()> + Send,
        answer: oneshot::Sender<Result<(), Fault>>,
    ) {
        let Some(_under_way) = self.peers.begin_change() else {
            let too_many = format!("{CHANGES_AT_ONCE} changes of queues are under way");
            let _ = answer.send(Err(Fault::Unavailable(too_many)));
            return;
        };
        let done = self.forgetting(queue, change).await;
        let is_known = !matches!(done, Err(Fault::Unavailable(_)));
        self.peers.changed(queue).await;
        // Whoever has hung up does not hear of it.
        let _ = answer.send(done);
        if is_known {
            return;
        }
        let settled = async {
            while let Err(fault) = settle().await {
                tracing::debug!(queue = &*queue.name, %fault, "whether it was changed is not known");
                sleep(SETTLE_EVERY).await;
            }
        };
        self.forgetting(queue, settled).await;
        self.peers.changed(queue).await;
    }

    /// Waits for a change of a queue. What is remembered of it is good for a moment at most until then, and not any more afterwards.
    async fn forgetting<T>(&self, queue: &QueueRef, change: impl Future<Output = T>) -> T {
        let mut change = pin!(change);
        loop {
            let done = timeout(FORGET_EVERY, &mut change).await;
            self.tables.forget(queue);
            if let Ok(done) = done {
                return done;
            }
        }
    }
}

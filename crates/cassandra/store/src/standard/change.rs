//! A change of a queue that other front-ends may know as it was: its purge, its deletion, other attributes. As long as it is under way
//! the others do not hear that all is as it was, so that they read for themselves (`peers/peer_changes.rs`): it may be made at any
//! time, also after its answer was lost.

use std::pin::pin;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, QueueRef};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::database::transaction::Unmade;
use crate::limits::CHANGES_AT_ONCE;
use crate::standard::Standard;
use crate::standard::tables::Asked;

/// How often what is remembered of a queue is forgotten while it is being changed.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// How long after a failure it is asked again whether a change was made.
const SETTLE_EVERY: Duration = Duration::from_secs(2);

/// For how long a change may be made still that nobody has begun with where it was settled.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

impl Standard {
    /// Carries out a change of a queue, notifies the other front-ends of it, whatever its outcome, and answers. If nobody knows
    /// whether it was made, that is settled afterwards: `settle` ends or finishes it wherever it was begun.
    ///
    /// It is not to be broken off: whoever has asked for it waits for the answer alone.
    pub(crate) async fn change<'a>(
        &self,
        queue: &QueueRef,
        change: impl Future<Output = Result<(), Unmade>> + Send,
        settle: impl Fn() -> Asked<'a, ()> + Send,
        answer: oneshot::Sender<Result<(), Fault>>,
    ) {
        let Some(under_way) = self.peers.begin_change() else {
            let text = format!("{CHANGES_AT_ONCE} changes of queues are under way, or it stops");
            let _ = answer.send(Err(Fault::Unavailable(text)));
            return;
        };
        let done = self.forgetting(queue, change).await;
        let may_be_made = done.as_ref().is_err_and(|unmade| unmade.may_be_made);
        self.peers.changed(queue).await;
        // Whoever has hung up does not hear of it.
        let _ = answer.send(done.map_err(|unmade| unmade.fault));
        if may_be_made {
            self.forgetting(queue, self.settled(queue, settle)).await;
            self.peers.changed(queue).await;
        }
        drop(under_way);
        self.peers.count_changes();
    }

    /// Returns when a change of unknown outcome is settled, and some time after it: a node that had not begun with it when it stopped
    /// may do so when it goes on.
    async fn settled<'a>(&self, queue: &QueueRef, settle: impl Fn() -> Asked<'a, ()> + Send) {
        while let Err(fault) = settle().await {
            if self.peers.has_ended_changes() {
                return;
            }
            tracing::debug!(queue = &*queue.name, %fault, "whether it was changed is not known");
            sleep(SETTLE_EVERY).await;
        }
        sleep(SETTLED_AFTER).await;
    }

    /// Waits for a change of a queue. What is remembered of it is good for a moment at most until then, and not any more afterwards.
    async fn forgetting<T>(&self, queue: &QueueRef, change: impl Future<Output = T>) -> T {
        let mut change = pin!(change);
        loop {
            let done = timeout(FORGET_EVERY, &mut change).await;
            self.tables.forget(queue);
            if let Ok(done) = done {
                self.served.changed(queue);
                return done;
            }
        }
    }
}

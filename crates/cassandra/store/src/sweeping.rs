//! The sweep of all queues, as long as the store is used: this front-end's part of it.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::Fault;
use scylla::response::PagingState;

use crate::shared::Shared;
use crate::standard::sweep::Pace;

/// Between two sweeps of all queues.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

impl Shared {
    /// Sweeps as long as the store is used.
    pub(crate) fn keep_sweeping(self: &Arc<Self>, rows_per_s: u32) {
        if rows_per_s == 0 {
            return;
        }
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                let Some(shared) = weak.upgrade() else { return };
                if let Err(fault) = shared.sweep(Pace::slow(rows_per_s)).await {
                    tracing::debug!(%fault, "the sweep was broken off");
                }
            }
        });
    }

    /// Goes through all queues that are this front-end's to sweep. Returns how many messages got an entry anew.
    pub(crate) async fn sweep(self: &Arc<Self>, pace: Pace) -> Result<usize, Fault> {
        let (mut restored, mut from) = (0, Some(PagingState::start()));
        while let Some(state) = from {
            let (queues, next) = self.queues.page(&self.database, state).await?;
            pace.after(queues.len()).await;
            for queue in &queues {
                // What is wrong with one is not to keep the others from their turn.
                match self.standard.sweep(queue, pace).await {
                    Ok(count) => restored += count,
                    Err(fault) => {
                        tracing::warn!(queue = %queue.name, %fault, "a queue's sweep was broken off");
                    }
                }
            }
            from = next;
        }
        Ok(restored)
    }
}

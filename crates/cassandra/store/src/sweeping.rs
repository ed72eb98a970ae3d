//! The sweep of all queues, as long as the store is used: this front-end's part of it.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::Fault;
use scylla::response::PagingState;
use tokio::time::Instant;

use crate::shared::Shared;
use crate::standard::pace::Pace;
use crate::standard::sweeps::Sweeps;

/// Between two rounds through all queues.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

impl Shared {
    /// Sweeps as long as the store is used.
    pub(crate) fn keep_sweeping(self: &Arc<Self>, rows_per_s: u32) {
        if rows_per_s == 0 {
            return;
        }
        let mut sweeps = Sweeps::new(&self.standard, Pace::slow(rows_per_s));
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                sweeps.go_on_until(Instant::now() + SWEEP_EVERY).await;
                let Some(shared) = weak.upgrade() else { return };
                // It has said what is wrong.
                let _ = shared.sweep_round(&mut sweeps).await;
            }
        });
    }

    /// Goes through all queues that are this front-end's to sweep. Returns how many messages got an entry anew.
    pub(crate) async fn sweep(self: &Arc<Self>, pace: Pace) -> Result<usize, Fault> {
        let mut sweeps = Sweeps::new(&self.standard, pace);
        self.sweep_round(&mut sweeps).await?;
        sweeps.end_all().await;
        Ok(sweeps.restored())
    }

    async fn sweep_round(self: &Arc<Self>, sweeps: &mut Sweeps) -> Result<(), Fault> {
        sweeps.begin_round();
        let begun = self.begin_sweeps(sweeps).await;
        match &begun {
            Ok(()) => sweeps.end_round(),
            Err(fault) => sweeps.broken_off("the list of queues", fault),
        }
        begun
    }

    async fn begin_sweeps(self: &Arc<Self>, sweeps: &mut Sweeps) -> Result<(), Fault> {
        let mut from = Some(PagingState::start());
        while let Some(state) = from {
            let (queues, next) = self.queues.page(&self.database, state).await?;
            sweeps.pace().after(queues.len()).await;
            for queue in &queues {
                // What is wrong with one is not to keep the others from their turn.
                sweeps.begin(&self.standard, queue).await;
            }
            from = next;
        }
        Ok(())
    }
}

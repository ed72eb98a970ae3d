//! This directory's lease: kept alive by a task of its own, so that nothing delays it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::{RETRY, answer};
use crate::meta::{LeaseId, MetaError, MetaStore};

/// Keeps one lease after the other.
pub(super) struct LeaseKeeper {
    meta: Arc<dyn MetaStore>,
    held: watch::Receiver<Option<LeaseId>>,
    /// The one that [`Self::changed`] told last.
    told: Option<LeaseId>,
    task: JoinHandle<()>,
}

impl LeaseKeeper {
    pub(super) fn start(meta: Arc<dyn MetaStore>, ttl: Duration) -> Self {
        let (tell, held) = watch::channel(None);
        let task = tokio::spawn(keep(Arc::clone(&meta), ttl, tell));
        Self { meta, held, told: None, task }
    }

    /// The lease that [`Self::changed`] has told, while it is held.
    pub(super) fn held(&self) -> Option<LeaseId> {
        self.told.filter(|told| *self.held.borrow() == Some(*told))
    }

    /// Waits until it is another one, or none.
    pub(super) async fn changed(&mut self) -> Option<LeaseId> {
        if self.held.changed().await.is_err() {
            // The task only ends with `self`.
            std::future::pending::<()>().await;
        }
        self.told = *self.held.borrow_and_update();
        self.told
    }

    /// What a store or a provider says; nothing beyond the end of the lease, which nobody waits for then.
    pub(super) async fn within<T>(&self, asked: impl Future<Output = T>) -> Option<T> {
        let (mut held, told) = (self.held.clone(), self.told);
        tokio::select! {
            biased;
            said = asked => Some(said),
            _ = held.wait_for(|held| *held != told) => None,
        }
    }

    /// Gives it up.
    pub(super) async fn stop(self) {
        self.task.abort();
        let lease = *self.held.borrow();
        if let Some(lease) = lease
            && let Err(error) = answer(self.meta.revoke(lease)).await
        {
            tracing::warn!(%error, "this directory's lease is left to end by itself");
        }
    }
}

async fn keep(meta: Arc<dyn MetaStore>, ttl: Duration, tell: watch::Sender<Option<LeaseId>>) {
    loop {
        let asked = Instant::now();
        match answer(meta.lease(ttl)).await {
            Ok(lease) => {
                tell.send_replace(Some(lease));
                keep_one(meta.as_ref(), lease, asked, ttl).await;
                tell.send_replace(None);
            }
            Err(error) => {
                tracing::warn!(%error, "no lease yet");
                sleep(RETRY).await;
            }
        }
    }
}

/// Returns when the lease has ended, or may have.
async fn keep_one(meta: &dyn MetaStore, lease: LeaseId, asked: Instant, ttl: Duration) {
    // From before the store was asked: here the lease never seems to live longer than there.
    let mut kept = asked;
    loop {
        // Not a moment beyond the lease's end, however late the last answer was.
        sleep_until((Instant::now() + ttl / 4).min(kept + ttl)).await;
        let asked = Instant::now();
        if asked >= kept + ttl {
            tracing::warn!("the lease has run out before it was kept alive");
            return;
        }
        let patience = (kept + ttl).saturating_duration_since(asked);
        match tokio::time::timeout(patience, meta.keep_alive(lease)).await {
            Ok(Ok(())) => kept = asked,
            Ok(Err(MetaError::LeaseEnded(_))) => {
                tracing::warn!("the lease has ended");
                return;
            }
            Ok(Err(error)) => tracing::warn!(%error, "the lease is not kept alive"),
            Err(_) => tracing::warn!("the store does not answer"),
        }
    }
}

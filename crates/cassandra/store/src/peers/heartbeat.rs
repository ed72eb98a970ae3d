//! A front-end says that it is alive, looks who else is, and takes in what the others tell it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use quelea_sqs_protocol::Fault;
use tokio::time::Instant;

use crate::limits::{CHANGES_COUNTED_EVERY_MS, DEAD_AFTER_MS, HEARTBEAT_MS};
use crate::peers::peer_socket::PeerSocket;
use crate::shared::Shared;

/// How long after a stranger has spoken Cassandra is asked for it, so that many of them cost one request.
const STRANGER_PAUSE: Duration = Duration::from_millis(100);

impl Shared {
    /// Renews this front-end's row and reads those of the others, as long as the store is used.
    pub(crate) fn keep_heart_beating(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                let Some(shared) = weak.upgrade() else { return };
                if let Err(fault) = shared.beat().await {
                    tracing::debug!(%fault, "the other front-ends were not asked for");
                }
                let pause = Duration::from_millis(HEARTBEAT_MS);
                let stranger = shared.standard.peers.stranger.notified();
                if tokio::time::timeout(pause, stranger).await.is_ok() {
                    tokio::time::sleep(STRANGER_PAUSE).await;
                }
            }
        });
    }

    /// Tells all others again and again how many changes there were, as long as the store is used.
    pub(crate) fn keep_counting_changes(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(CHANGES_COUNTED_EVERY_MS)).await;
                let Some(shared) = weak.upgrade() else { return };
                shared.standard.peers.count_changes();
            }
        });
    }

    /// Says that this front-end is alive, and looks who else is.
    ///
    /// # Errors
    /// Cassandra did not answer: then the others are believed to be alive for a while.
    pub(crate) async fn beat(&self) -> Result<(), Fault> {
        let Some(beat) = self.heartbeat_timestamps.next(self.database.clock.now_us()) else {
            return Ok(());
        };
        let began = Instant::now();
        let done = self.beat_and_read(beat).await;
        self.is_answered.store(done.is_ok(), Ordering::Relaxed);
        if done.is_ok() {
            let mut beaten_at = self.beaten_at.lock().unwrap_or_else(PoisonError::into_inner);
            *beaten_at = (*beaten_at).max(Some(began));
        }
        done
    }

    async fn beat_and_read(&self, beat: i64) -> Result<(), Fault> {
        let (database, peers) = (&self.database, &self.standard.peers);
        let said = self.front_ends.beat(database, peers.id, peers.address(), beat).await;
        let asked_at = Instant::now();
        peers.observe(self.front_ends.read(database).await?, asked_at);
        said
    }

    /// Returns when the others can know of this front-end, and it of them: a change of a queue concerns all of them.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub(crate) async fn be_known(&self) -> Result<(), Fault> {
        let beaten_at = *self.beaten_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |at: Instant| at.elapsed() < Duration::from_millis(DEAD_AFTER_MS / 2);
        if beaten_at.is_some_and(is_known) { Ok(()) } else { self.beat().await }
    }

    /// Takes this front-end's row away: the others need not wait for its end.
    pub(crate) async fn leave(&self) -> Result<(), Fault> {
        let Some(beat) = self.heartbeat_timestamps.last(self.database.clock.now_us()) else {
            return Ok(());
        };
        self.front_ends.leave(&self.database, self.standard.peers.id, beat).await
    }

    /// Speaks with the other front-ends by that socket from now on.
    pub(crate) async fn join(self: &Arc<Self>, socket: Arc<dyn PeerSocket>) {
        if !self.standard.attach(socket) {
            return;
        }
        if let Err(fault) = self.beat().await {
            tracing::warn!(%fault, "the other front-ends do not yet know this one");
        }
    }
}

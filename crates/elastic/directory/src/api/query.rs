//! A request's way to the directory's thread, and what stands for no answer.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use quelea_elastic_core::ownership::ClusterView;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::CLUSTER_VIEW_MAX;
use super::refusal::Refusal;
use crate::driver::{Driver, RELAYS_STOP_MAX};
use crate::ownership_command::Command;
use crate::server::DirectoryHandle;

/// How long a definition may take to be written, the end of the relays of a queue that is being deleted included; it is
/// refused beyond, although it may still be.
const SAVED_MAX: Duration = RELAYS_STOP_MAX.saturating_add(Duration::from_secs(5));
/// How often that is looked at: it takes about a write to the metadata store.
const SAVED_CHECK: Duration = Duration::from_millis(2);

/// How often it is looked whether a queue that is being claimed is owned now, and the pause between: two
/// seconds, after which the store does not answer.
const CLAIM_CHECKS_MAX: u32 = 100;
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// Every handler's first argument: a request is refused where there is no directory.
impl FromRequestParts<Option<Self>> for DirectoryHandle {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, handle: &Option<Self>) -> Result<Self, Refusal> {
        handle.clone().ok_or(Refusal::NoDirectory)
    }
}

impl DirectoryHandle {
    /// Returns what `look` finds at the directory.
    ///
    /// # Errors
    /// If it has stopped.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.call(look).await.ok_or(Refusal::Stopped)
    }

    /// Returns what `look` finds of a queue. One that is about to be this directory's, or is being deleted, is waited
    /// for: a client that has just made it does not learn that it is unknown.
    ///
    /// # Errors
    /// If it finds nothing: why that is.
    pub(super) async fn ask_of<T: Send + 'static>(
        &self,
        queue: String,
        look: impl Fn(&mut Driver, &str) -> Option<T> + Clone + Send + 'static,
    ) -> Result<T, Refusal> {
        for _ in 0..CLAIM_CHECKS_MAX {
            let (name, look) = (queue.clone(), look.clone());
            if let Some(value) = self.ask(move |driver| look(driver, &name)).await? {
                return Ok(value);
            }
            let name = queue.clone();
            let is_claiming = self.ask(move |driver| driver.core.is_claiming(&name)).await?;
            if !is_claiming {
                self.check_not_elsewhere(&queue).await?;
                let name = queue.clone();
                if !self.view_cluster(move |view| view.knows(&name)).await? {
                    return Err(Refusal::NoQueue(queue));
                }
            }
            sleep(CLAIM_PAUSE).await;
        }
        Err(Refusal::Claiming(queue))
    }

    /// Waits until the queue's record is saved. A new queue is claimed first; what was answered
    /// outlives this process.
    pub(super) async fn wait_until_saved(&self, queue: String) -> Result<(), Refusal> {
        let until = Instant::now() + SAVED_MAX;
        while Instant::now() < until {
            let name = queue.clone();
            if self.ask(move |driver| driver.core.is_saved(&name)).await? {
                return Ok(());
            }
            sleep(SAVED_CHECK).await;
        }
        Err(Refusal::Claiming(queue))
    }

    /// Refuses queues of other directories.
    pub(super) async fn check_not_elsewhere(&self, queue: &str) -> Result<(), Refusal> {
        let name = queue.to_owned();
        match self.view_cluster(move |view| view.elsewhere(&name)).await? {
            Some(owner) => Err(Refusal::Elsewhere { queue: queue.to_owned(), owner }),
            None => Ok(()),
        }
    }

    /// Returns what `look` finds in the metadata that all directories share. It is waited for until they were read once: what
    /// is not there before is not known to be absent.
    pub(super) async fn view_cluster<T: Send + 'static>(
        &self,
        look: impl FnOnce(&ClusterView) -> T + Clone + Send + 'static,
    ) -> Result<T, Refusal> {
        let known = async {
            loop {
                let (sender, found) = oneshot::channel();
                let look = look.clone();
                let look = Box::new(move |view: Option<&ClusterView>| {
                    // The client may have gone.
                    let _ = sender.send(view.map(look));
                });
                self.ownership().send(Command::View(look)).map_err(|_| Refusal::Stopped)?;
                if let Some(found) = found.await.map_err(|_| Refusal::Stopped)? {
                    return Ok(found);
                }
                sleep(CLAIM_PAUSE).await;
            }
        };
        timeout(CLUSTER_VIEW_MAX, known).await.unwrap_or(Err(Refusal::Late))
    }
}

//! The metadata store as this directory sees it: read once, then followed by its changes; read again when
//! they cannot be followed. All of it waits beside whatever else the task does, however long the store
//! is away.

use std::pin::Pin;
use std::sync::Arc;

use super::{RETRY, answer};
use crate::keys;
use crate::meta::{Change, Entry, MetaError, MetaStore, Watch};

type Look = Pin<Box<dyn Future<Output = (Vec<Entry>, Box<dyn Watch>)> + Send>>;

/// What there is to know.
pub(super) enum News {
    /// Everything, as it is now.
    All(Vec<Entry>),
    /// What has changed since.
    Changes(Vec<Change>),
    /// What is known may be old from now on, until the next [`News::All`].
    Lost,
}

enum Step {
    Looking(Look),
    Watching(Box<dyn Watch>),
}

/// Reads and watches.
pub(super) struct Following {
    meta: Arc<dyn MetaStore>,
    step: Step,
}

impl Following {
    pub(super) fn start(meta: Arc<dyn MetaStore>) -> Self {
        let step = Step::Looking(Box::pin(look(Arc::clone(&meta))));
        Self { meta, step }
    }

    /// Waits for the next news. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> News {
        match &mut self.step {
            Step::Looking(look) => {
                let (entries, watch) = look.await;
                self.step = Step::Watching(watch);
                News::All(entries)
            }
            Step::Watching(watch) => match watch.next().await {
                Ok(changes) => News::Changes(changes),
                Err(error) => {
                    tracing::warn!(%error, "changes of metadata are not seen: looking again");
                    self.step = Step::Looking(Box::pin(look(Arc::clone(&self.meta))));
                    News::Lost
                }
            },
        }
    }
}

/// Reads everything, and watches from there. Tries until the store answers.
async fn look(meta: Arc<dyn MetaStore>) -> (Vec<Entry>, Box<dyn Watch>) {
    loop {
        match try_look(meta.as_ref()).await {
            Ok(found) => return found,
            Err(error) => {
                tracing::warn!(%error, "the directory cannot read its metadata yet");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn try_look(meta: &dyn MetaStore) -> Result<(Vec<Entry>, Box<dyn Watch>), MetaError> {
    let listing = answer(meta.list(keys::ROOT)).await?;
    let watch = answer(meta.watch(keys::ROOT, listing.revision)).await?;
    Ok((listing.entries, watch))
}

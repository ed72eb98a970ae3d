//! Queues' records on their way to the store: one after the other for a queue, many queues at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use quelea_elastic::directory::SaveError;
use quelea_elastic_proto::Fence;
use tokio::task::JoinSet;

use super::answer;
use crate::keys::{self, Shard};
use crate::meta::{Compare, MetaStore, Op, Revision, Txn, TxnOutcome};

/// Writes that are under way at once; the others wait for them. A store does not get faster by more.
const UNDER_WAY_MAX: usize = 64;

/// A write that has been tried.
pub(super) struct Saved {
    pub(super) queue: String,
    pub(super) save: u64,
    pub(super) result: Result<(), SaveError>,
    /// The driver wants to know (it does not of a removal).
    pub(super) answered: bool,
}

struct Write {
    shard: Shard,
    save: u64,
    fence: Fence,
    record: Option<Bytes>,
}

/// All writes that are not done.
pub(super) struct Saving {
    meta: Arc<dyn MetaStore>,
    under_way: JoinSet<Saved>,
    /// By queue; an empty list: one is under way, and none waits.
    waiting: BTreeMap<String, VecDeque<Write>>,
    /// Queues whose first write waits for room in `under_way`.
    blocked: VecDeque<String>,
}

impl Saving {
    pub(super) fn new(meta: Arc<dyn MetaStore>) -> Self {
        let (under_way, waiting, blocked) = Default::default();
        Self { meta, under_way, waiting, blocked }
    }

    /// Takes a write.
    pub(super) fn write(
        &mut self,
        shard: Shard,
        queue: String,
        save: u64,
        fence: Fence,
        record: Option<Bytes>,
    ) {
        let write = Write { shard, save, fence, record };
        if let Some(waiting) = self.waiting.get_mut(&queue) {
            waiting.push_back(write);
        } else if self.under_way.len() < UNDER_WAY_MAX {
            self.waiting.insert(queue.clone(), VecDeque::new());
            self.begin(queue, write);
        } else {
            self.waiting.insert(queue.clone(), VecDeque::from([write]));
            self.blocked.push_back(queue);
        }
    }

    fn begin(&mut self, queue: String, write: Write) {
        let meta = Arc::clone(&self.meta);
        self.under_way.spawn(async move {
            let (save, answered) = (write.save, write.record.is_some());
            let result = save_one(meta.as_ref(), &queue, write).await;
            Saved { queue, save, result, answered }
        });
    }

    /// The next one that is done; waits for it. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Saved {
        loop {
            match self.under_way.join_next().await {
                Some(Ok(saved)) => {
                    self.go_on(&saved.queue);
                    return saved;
                }
                Some(Err(error)) => tracing::error!(%error, "a write broke"),
                None => std::future::pending().await,
            }
        }
    }

    fn go_on(&mut self, queue: &str) {
        match self.waiting.get_mut(queue).and_then(VecDeque::pop_front) {
            Some(write) => self.begin(queue.to_owned(), write),
            None => {
                self.waiting.remove(queue);
            }
        }
        if self.under_way.len() < UNDER_WAY_MAX
            && let Some(queue) = self.blocked.pop_front()
        {
            self.go_on(&queue);
        }
    }
}

async fn save_one(meta: &dyn MetaStore, queue: &str, write: Write) -> Result<(), SaveError> {
    let key = keys::queue(queue);
    let change = match write.record {
        Some(value) => Op::Put { key, value, lease: None },
        None => Op::Delete { key },
    };
    let txn = Txn {
        compares: vec![Compare::Created(write.shard.key(), Revision(write.fence.0))],
        changes: vec![change],
    };
    match answer(meta.txn(txn)).await {
        Ok(TxnOutcome::Done(_)) => Ok(()),
        Ok(TxnOutcome::Refused) => Err(SaveError::Fenced),
        Err(error) => {
            tracing::warn!(queue, %error, "a queue's record is not saved yet");
            Err(SaveError::Unavailable)
        }
    }
}

//! Queues' records on their way to the store: one after the other for a queue, many queues at once.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quelea_elastic_proto::Fence;

use crate::directory::SaveError;
use crate::ownership::cause;
use crate::ownership::io::{Answer, Call};
use crate::ownership::keys::{self, Shard};
use crate::ownership::meta::{Compare, Op, Revision, Txn, TxnOutcome};

/// Writes that are under way at once; the others wait for them. A store does not get faster by more.
const UNDER_WAY_MAX: usize = 64;

/// A write that has been tried.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    pub(super) queue: String,
    pub(super) save: u64,
    pub(super) result: Result<(), SaveError>,
}

#[derive(Debug)]
pub(super) struct Write {
    pub(super) save: u64,
    pub(super) fence: Fence,
    pub(super) record: Option<Bytes>,
}

/// All writes that are not done.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    /// By call: the queue, and the number.
    under_way: BTreeMap<Call, (String, u64)>,
    /// By queue; an empty list: one is under way or ready, and none waits.
    waiting: BTreeMap<String, VecDeque<Write>>,
    /// To be asked now.
    ready: VecDeque<(String, Write)>,
}

impl WriteQueue {
    /// Takes a write.
    pub(super) fn write(&mut self, queue: String, write: Write) {
        if let Some(waiting) = self.waiting.get_mut(&queue) {
            waiting.push_back(write);
        } else {
            self.waiting.insert(queue.clone(), VecDeque::new());
            self.ready.push_back((queue, write));
        }
    }

    /// Takes the next write to be asked; `call` is its number then.
    pub(super) fn begin(&mut self, call: Call) -> Option<Txn> {
        if self.under_way.len() >= UNDER_WAY_MAX {
            return None;
        }
        let (queue, write) = self.ready.pop_front()?;
        let key = keys::queue(&queue);
        let shard = Shard::of(&queue);
        self.under_way.insert(call, (queue, write.save));
        let change = match write.record {
            Some(value) => Op::Put { key, value, lease: None },
            None => Op::Delete { key },
        };
        Some(Txn {
            compares: vec![Compare::Created(shard.key(), Revision(write.fence.0))],
            changes: vec![change],
        })
    }

    /// Takes an answer, and says what went wrong if it may go better later; gives it back if it is not for this.
    pub(super) fn answered(
        &mut self,
        call: Call,
        answer: Answer,
    ) -> Result<(Saved, Option<String>), Answer> {
        let Some((queue, save)) = self.under_way.remove(&call) else {
            return Err(answer);
        };
        if let Some(write) = self.waiting.get_mut(&queue).and_then(VecDeque::pop_front) {
            self.ready.push_back((queue.clone(), write));
        } else {
            self.waiting.remove(&queue);
        }
        let (result, warning) = match answer {
            Answer::Txn(TxnOutcome::Done(_)) => (Ok(()), None),
            Answer::Txn(TxnOutcome::Refused) => (Err(SaveError::Fenced), None),
            other => (Err(SaveError::Unavailable), Some(cause(other))),
        };
        Ok((Saved { queue, save, result }, warning))
    }
}

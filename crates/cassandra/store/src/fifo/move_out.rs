//! Messages that a task takes to another queue, which may have another owner: first they are there, as new ones, then they are
//! gone here. A crash in between leaves them in both, unless they are sent again within five minutes: then they are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_cassandra_fifo::{Content, RowKey, moved_key};
use quelea_sqs_protocol::{ErrorKind, Fault, QueueRef, SendOutcome};

use super::by_segment::{by_segment, read_contents};
use super::dead_letters::PATIENCE;
use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use super::send_then_delete::until_deleted;
use crate::shared::Shared;
use crate::standard::jobs::kept_s;
use crate::standard::move_step::no_source;

/// What became of messages that were to move: those that are gone here, and why others are not.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) gone: Vec<RowKey>,
    pub(super) fault: Option<Fault>,
}

impl Shared {
    /// Moves messages, to the queue that is named, or each to the one that it came from.
    pub(super) async fn move_out(
        self: Arc<Self>,
        queue: &FifoQueue,
        rows: Vec<RowKey>,
        to: Option<QueueRef>,
    ) -> Moved {
        let read = match read_contents(&self, queue.generation, &rows).await {
            Ok(read) => read,
            Err(fault) => return Moved { fault: Some(fault), ..Moved::default() },
        };
        let mut moved = Moved::default();
        let mut by_destination: BTreeMap<QueueRef, Vec<(RowKey, Content)>> = BTreeMap::new();
        for (row, content) in rows.into_iter().zip(read.contents) {
            let Some(content) = content else {
                if read.unreadable.contains(&row.segment) {
                    let unreadable = "a message cannot be read".to_owned();
                    moved.fault = Some(Fault::Unavailable(unreadable));
                } else {
                    // It has ended, or was deleted by an earlier owner's last request.
                    moved.gone.push(row);
                }
                continue;
            };
            match to.clone().or_else(|| content.source.clone()) {
                Some(to) => by_destination.entry(to).or_default().push((row, content)),
                None => moved.fault = Some(no_source()),
            }
        }
        let mut sent = Vec::new();
        for (to, leaving) in by_destination {
            let rows: Vec<RowKey> = leaving.iter().map(|(row, _)| *row).collect();
            match self.send_on(queue, &to, leaving).await {
                Ok(outcomes) => {
                    for (row, outcome) in rows.into_iter().zip(outcomes) {
                        match outcome {
                            Ok(_) => sent.push(row),
                            Err(fault) => moved.fault = Some(fault),
                        }
                    }
                }
                Err(fault) => moved.fault = Some(fault),
            }
        }
        let (generation, weak) = (queue.generation, Arc::downgrade(&self));
        drop(self);
        let deleted = until_deleted(weak, |shared: Arc<Self>| {
            let sent = sent.clone();
            async move {
                for (_, rows) in by_segment(&sent) {
                    shared.fifo.rows.delete(&shared.database, generation, &rows).await?;
                }
                Ok(())
            }
        });
        if let Err(fault) = deleted.await {
            return Moved { fault: Some(fault), ..moved };
        }
        moved.gone.extend(sent);
        moved
    }

    async fn send_on(
        self: &Arc<Self>,
        from: &FifoQueue,
        to: &QueueRef,
        leaving: Vec<(RowKey, Content)>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let record = self.queues.record(&self.database, to).await?;
        // SQS gives the code, and clients compare it.
        let gone = || Fault::NotFound(ErrorKind::QueueDoesNotExist.code().to_owned());
        let to = record.filter(|to| to.facts.settings.is_fifo()).ok_or_else(gone)?;
        let outgoing = leaving.into_iter().map(|(row, content)| Outgoing {
            // Its age begins anew, as its receptions do: it may be older than messages get there.
            id: None,
            content: Arc::new(Content { source: None, earlier_receives: 0, ..content }),
            delay_ms: 0,
            ttl_s: kept_s(&to.facts),
            deduplication: Some(moved_key(from.generation, row)),
        });
        let operation = Operation::Send(outgoing.collect());
        let queue = self.fifo_queue(&to.facts).await?;
        // Boxed, since that queue's owner may have to move messages on.
        match Box::pin(self.fifo_call(&to.facts, queue, operation, PATIENCE)).await? {
            Answer::Sent(outcomes) => Ok(outcomes),
            other => Err(other.unexpected()),
        }
    }
}

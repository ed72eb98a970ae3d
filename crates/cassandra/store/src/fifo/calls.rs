//! The calls of the trait `Queues` about FIFO queues: what their owner has to know is put together here, and their answers
//! are taken apart.

use std::sync::Arc;
use std::time::Duration;

use quelea_cassandra_fifo::{Content, MoveCall, MovedOut, deduplication_key};
use quelea_sqs_protocol::{
    Backlog, Consistency, DeduplicationScope, Delivery, Fault, NewMessage, QueueFacts,
    QueueSettings, ReceiptOutcome, Receive, Received, SendOutcome,
};

use super::operation::{Answer, FifoQueue, Operation, Outgoing};
use crate::database::queue_table::Record;
use crate::shared::Shared;
use crate::standard::id_of;

/// How long a call waits for its queue's owner, or for another one to follow it.
const PATIENCE: Duration = Duration::from_secs(15);

impl Shared {
    /// Returns a FIFO queue, as its owner has to know it.
    pub(super) async fn fifo_queue(&self, facts: &QueueFacts) -> Result<FifoQueue, Fault> {
        let record = self.queues.record(&self.database, &facts.queue).await?;
        self.fifo_queue_in(facts, record).await
    }

    async fn fifo_queue_in(
        &self,
        facts: &QueueFacts,
        record: Option<Arc<Record>>,
    ) -> Result<FifoQueue, Fault> {
        let record =
            record.filter(|record| record.facts.key == facts.key).ok_or(Fault::NoSuchQueue)?;
        let redrive = match &facts.settings.redrive {
            // Where there is no such queue any more, messages are received as before.
            Some(policy) => {
                let to = self.queues.record(&self.database, &policy.dead_letter_queue).await?;
                let is_there = to.is_some_and(|to| to.facts.settings.is_fifo());
                is_there.then(|| (policy.dead_letter_queue.clone(), policy.receive_count_max))
            }
            None => None,
        };
        Ok(FifoQueue {
            name: facts.queue.clone(),
            id: id_of(facts),
            generation: record.generation,
            retention_ms: facts.settings.retention_ms,
            redrive,
        })
    }

    async fn call_of(
        self: &Arc<Self>,
        facts: &QueueFacts,
        operation: Operation,
        patience: Duration,
    ) -> Result<Answer, Fault> {
        let queue = self.fifo_queue(facts).await?;
        self.fifo_call(facts, queue, operation, patience).await
    }

    pub(crate) async fn fifo_send(
        self: &Arc<Self>,
        facts: &QueueFacts,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let outgoing = messages.into_iter().map(|new| outgoing(&facts.settings, new)).collect();
        match self.call_of(facts, Operation::Send(outgoing), PATIENCE).await? {
            Answer::Sent(outcomes) => Ok(outcomes),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) async fn fifo_receive(
        self: &Arc<Self>,
        facts: &QueueFacts,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        let patience = PATIENCE + Duration::from_millis(receive.wait_ms);
        match self.call_of(facts, Operation::Receive(receive), patience).await? {
            Answer::Received(received) => Ok(received),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) async fn fifo_delete(
        self: &Arc<Self>,
        facts: &QueueFacts,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        self.settle(facts, Operation::Delete(deliveries)).await
    }

    pub(crate) async fn fifo_change_visibility(
        self: &Arc<Self>,
        facts: &QueueFacts,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        self.settle(facts, Operation::ChangeVisibility(changes)).await
    }

    async fn settle(
        self: &Arc<Self>,
        facts: &QueueFacts,
        operation: Operation,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let mut queue = self.fifo_queue(facts).await?;
        if operation.is_of_another_generation(&queue) {
            // Whoever gave the receipts out may have heard of a purge of which this front-end has not.
            let record = self.queues.record_now(&self.database, &facts.queue).await?;
            queue = self.fifo_queue_in(facts, record).await?;
        }
        match self.fifo_call(facts, queue, operation, PATIENCE).await? {
            Answer::Settled(outcomes) => Ok(outcomes),
            other => Err(other.unexpected()),
        }
    }

    /// Moves the queue's next messages: to the queue that is named, or each to the one that it came
    /// from.
    pub(crate) async fn fifo_move_out(
        self: &Arc<Self>,
        facts: &QueueFacts,
        wanted: MoveCall,
    ) -> Result<MovedOut, Fault> {
        match self.call_of(facts, Operation::MoveOut(wanted), PATIENCE).await? {
            Answer::MovedOut(moved) => Ok(moved),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) async fn fifo_backlog(
        self: &Arc<Self>,
        facts: &QueueFacts,
    ) -> Result<Backlog, Fault> {
        match self.call_of(facts, Operation::Backlog, PATIENCE).await? {
            Answer::Backlog(backlog) => Ok(backlog),
            other => Err(other.unexpected()),
        }
    }
}

/// Returns what of these settings replicated FIFO queues cannot have, in words.
pub(crate) fn refused(settings: &QueueSettings) -> Option<Fault> {
    let is_refused = settings.is_fifo() && settings.consistency == Some(Consistency::One);
    is_refused.then(|| {
        let why = "A FIFO queue cannot have Consistency ONE: its order needs LOCAL_QUORUM.";
        Fault::Unsupported(why.to_owned())
    })
}

fn outgoing(settings: &QueueSettings, new: NewMessage) -> Outgoing {
    let group_id = new.group_id.unwrap_or_default();
    let is_by_group =
        settings.fifo.is_some_and(|fifo| fifo.scope == DeduplicationScope::MessageGroup);
    let scope = is_by_group.then_some(group_id.as_str());
    let deduplication = new.deduplication_id.as_deref().map(|id| deduplication_key(id, scope));
    Outgoing {
        id: None,
        delay_ms: new.delay_ms.unwrap_or(settings.delay_ms),
        ttl_s: (settings.retention_ms / 1_000).max(1) as i32,
        deduplication,
        content: Arc::new(Content {
            body: new.body,
            attributes: new.attributes,
            sender: new.sender_id.to_string(),
            trace_header: new.trace_header,
            group_id,
            deduplication_id: new.deduplication_id,
            source: None,
            earlier_receives: 0,
        }),
    }
}

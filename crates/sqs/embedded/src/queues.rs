//! The calls of the core that each operation on queues is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use quelea_broker::{CreateQueueError, NoSuchQueueId, ReceiptOutcome as BrokerOutcome, SendError};
use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_model::{QueueId, Timestamp};
use quelea_node::{Core, CoreHandle};
use quelea_sqs_protocol::{
    Backlog, Capabilities, Counts, Created, Delivery, Fault, MoveTask, NewMessage, NewMoveTask,
    NewQueue, OldReceipts, Order, QueueClass, QueueFacts, QueueKey, QueueRef, QueueSettings,
    Queues, Reappearance, ReceiptOutcome, Receive, Received, SendOutcome, Sent, sequence_number,
};
use quelea_store::Ticket;
use rustc_hash::FxBuildHasher;
use uuid::Uuid;

use crate::broker_calls::{BrokerCalls, queue_id};
use crate::queue_cache::QueueCache;
use crate::settings::EmbeddedSettings;
use crate::{attributes, listing, message, moves, receipt, receive};

/// The broker's queues. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EmbeddedQueues {
    calls: BrokerCalls,
    cache: Arc<QueueCache>,
}

thread_local! {
    static RANDOM: RefCell<fastrand::Rng> = RefCell::new(fastrand::Rng::new());
}

impl EmbeddedQueues {
    /// Returns the queues of a node.
    #[must_use]
    pub fn new(core: CoreHandle, settings: EmbeddedSettings) -> Self {
        Self { calls: BrokerCalls::new(core, settings), cache: Arc::default() }
    }
}

/// Returns what the broker knows of a queue.
fn look_up(core: &mut Core, vhost: &str, queue: &QueueRef) -> Option<QueueFacts> {
    let id = core.broker.queue_id(vhost, &queue.name)?;
    let (kept, created_at) = core.broker.queue_attributes(id)?;
    let attributes = attributes::from_broker(&kept.attributes);
    let tags = attributes::from_broker(&kept.tags);
    Some(QueueFacts {
        key: QueueKey::new(CLASS, u128::from(id.0)),
        queue: queue.clone(),
        revision: revision(&attributes, &tags),
        settings: QueueSettings::of(&attributes),
        attributes,
        tags,
        created_at_ms: created_at.as_millis(),
        modified_at_ms: kept.modified_at.max(created_at).as_millis(),
    })
}

/// Returns a hash as the revision: the broker counts no changes.
fn revision(attributes: &BTreeMap<String, String>, tags: &BTreeMap<String, String>) -> u64 {
    FxBuildHasher.hash_one((attributes, tags))
}

/// The class of all these queues.
const CLASS: QueueClass = QueueClass::Ordered;

impl Queues for EmbeddedQueues {
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities> {
        (class == CLASS).then_some(Capabilities {
            order: Order::Strict,
            reappearance: Reappearance::OldPlace,
            old_receipts: OldReceipts::Ignored,
            counts: Counts::Exact,
            order_hint_auto: false,
            durability: true,
            consistency: None,
            facts_age_ms_max: 0,
            // The management API asks the broker itself.
            peeks: false,
        })
    }

    async fn facts(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        let epoch = self.calls.core().queues_epoch();
        if let Some(found) = self.cache.get(epoch, queue) {
            return Ok(found);
        }
        // No queue has such a name, and what nobody has may not be remembered at any length.
        if queue.account.len().max(queue.name.len()) > SHORT_STRING_BYTES_MAX {
            return Ok(None);
        }
        let Some(vhost) = self.calls.vhost(&queue.account) else { return Ok(None) };
        let wanted = queue.clone();
        let found = self.calls.call(move |core| look_up(core, &vhost, &wanted)).await?;
        let found = found.map(Arc::new);
        self.cache.add(epoch, queue, found.as_ref());
        Ok(found)
    }

    async fn create(&self, queue: &QueueRef, new: NewQueue) -> Result<Created, Fault> {
        if new.class != CLASS {
            let class = new.class.name();
            return Err(Fault::Unsupported(format!("There is no store of {class} queues here.")));
        }
        let vhost = self.calls.vhost(&queue.account).ok_or_else(|| no_account(&queue.account))?;
        let queue = queue.clone();
        let cooldown_ms = self.calls.cooldown_ms();
        self.calls
            .promise(move |core| {
                let now = core.now();
                if let Some(facts) = look_up(core, &vhost, &queue) {
                    return Ok((Created::Exists(Arc::new(facts)), Ticket::NONE));
                }
                let QueueRef { account, name } = &queue;
                let deleted_at = core.broker.queue_deleted_at(&vhost, name);
                if deleted_at.is_some_and(|at| now < at.plus_ms(cooldown_ms)) {
                    return Ok((Created::DeletedRecently, Ticket::NONE));
                }
                let attributes = attributes::to_broker(&new.attributes, &new.tags, account, now)?;
                match core.broker.create_queue(now, &vhost, name, attributes) {
                    Ok((_, ticket)) => Ok((Created::New, ticket)),
                    Err(CreateQueueError::BeingDeleted) => {
                        Ok((Created::DeletedRecently, Ticket::NONE))
                    }
                    Err(error) => Err(create_fault(error)),
                }
            })
            .await
    }

    async fn delete_queue(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let id = queue_id(queue.key)?;
        self.calls
            .promise(move |core| {
                let now = core.now();
                core.broker.delete_queue_by_id(now, id).map(|ticket| ((), ticket)).map_err(gone)
            })
            .await
    }

    async fn purge(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let id = queue_id(queue.key)?;
        let cooldown_ms = self.calls.cooldown_ms();
        self.calls
            .promise(move |core| {
                let now = core.now();
                let last = core.broker.queue_purged_at(id);
                if last.is_some_and(|at| now < at.plus_ms(cooldown_ms)) {
                    return Err(Fault::PurgeInProgress);
                }
                core.broker.purge_queue_by_id(now, id).map(|done| ((), done.ticket)).map_err(gone)
            })
            .await
    }

    async fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let Some(vhost) = self.calls.vhost(account) else { return Ok(Vec::new()) };
        let prefix = prefix.to_owned();
        let page = move |core: &mut Core, after: Option<&str>| {
            let wanted = |name: &str, _: &_| !name.starts_with("amq.");
            core.broker.queue_names(&vhost, &prefix, after, wanted)
        };
        listing::names(&self.calls, after, max, page).await
    }

    async fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let QueueRef { account, name } = &queue.queue;
        let Some(vhost) = self.calls.vhost(account) else { return Ok(Vec::new()) };
        let target = Arc::clone(name);
        let page = move |core: &mut Core, after: Option<&str>| {
            core.broker.queue_names(&vhost, "", after, |_, attributes| {
                let redrive = attributes.settings.redrive.as_ref();
                redrive.is_some_and(|redrive| *redrive.target == *target)
            })
        };
        listing::names(&self.calls, after, max, page).await
    }

    async fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let id = queue_id(seen.key)?;
        let seen = Arc::clone(seen);
        self.calls
            .promise(move |core| {
                let now = core.now();
                let (old, _) = core.broker.queue_attributes(id).ok_or(Fault::NoSuchQueue)?;
                if attributes::from_broker(&old.attributes) != seen.attributes {
                    return Err(Fault::Conflict);
                }
                let tags = attributes::from_broker(&old.tags);
                let account = &seen.queue.account;
                let new = attributes::to_broker(&attributes, &tags, account, now)?;
                put(core, id, new)
            })
            .await
    }

    async fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let id = queue_id(seen.key)?;
        let seen = Arc::clone(seen);
        self.calls
            .promise(move |core| {
                let (mut attributes, _) =
                    core.broker.queue_attributes(id).ok_or(Fault::NoSuchQueue)?;
                if attributes::from_broker(&attributes.tags) != seen.tags {
                    return Err(Fault::Conflict);
                }
                attributes.tags = tags
                    .iter()
                    .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                    .collect();
                put(core, id, attributes)
            })
            .await
    }

    async fn backlog(&self, queue: &Arc<QueueFacts>) -> Result<Backlog, Fault> {
        let id = queue_id(queue.key)?;
        self.calls
            .call(move |core| {
                let now = core.now();
                let backlog = core.broker.queue_backlog(now, id).map_err(gone)?;
                let age = |at: Timestamp| now.since_ms(at) / 1000;
                Ok(Backlog {
                    visible: backlog.visible,
                    in_flight: backlog.in_flight,
                    delayed: backlog.delayed,
                    oldest_age_s: backlog.oldest_sent_at.map_or(0, age),
                })
            })
            .await?
    }

    async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let id = queue_id(queue.key)?;
        let now_ms = quelea_net::unix_ms();
        let mut messages: Vec<_> =
            messages.into_iter().map(|new| message::outgoing(new, random_uuid(), now_ms)).collect();
        let bytes = messages.iter().map(|message| message.body.len()).sum();
        loop {
            let sent = self.calls.promise(move |core| {
                if !core.broker.accepts_publish(bytes) {
                    // Whoever sent them waits below.
                    return Ok((Err(messages), Ticket::NONE));
                }
                let now = core.now();
                let (sent, ticket) = core.broker.send(now, id, messages).map_err(gone)?;
                Ok::<_, Fault>((Ok(sent), ticket))
            });
            match sent.await? {
                Ok(sent) => {
                    let is_fifo = queue.settings.is_fifo();
                    return Ok(sent.into_iter().map(|sent| outcome(sent, is_fifo)).collect());
                }
                Err(back) => messages = back,
            }
            self.calls.wait_for_room(bytes).await?;
        }
    }

    async fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        receive::receive(&self.calls, queue, receive).await
    }

    async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let id = queue_id(queue.key)?;
        let receipts: Vec<_> = deliveries.iter().map(|bytes| receipt::decode(bytes)).collect();
        let valid: Vec<_> = receipts.iter().copied().flatten().collect();
        let outcomes = self.calls.settle(move |core| {
            let now = core.now();
            core.broker.delete_messages(now, id, &valid).map_err(gone)
        });
        merge(&receipts, outcomes.await?)
    }

    async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let id = queue_id(queue.key)?;
        let receipts: Vec<_> = changes.iter().map(|(bytes, _)| receipt::decode(bytes)).collect();
        let times = changes.iter().map(|(_, timeout_ms)| *timeout_ms);
        let valid: Vec<_> =
            receipts.iter().copied().zip(times).filter_map(|(r, t)| Some((r?, t))).collect();
        let outcomes = self.calls.settle(move |core| {
            let now = core.now();
            core.broker.change_visibility(now, id, &valid).map_err(gone)
        });
        merge(&receipts, outcomes.await?)
    }

    async fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        moves::start(&self.calls, queue, task).await
    }

    async fn cancel_move(&self, queue: &Arc<QueueFacts>, handle: &str) -> Result<u64, Fault> {
        moves::cancel(&self.calls, queue, handle).await
    }

    async fn move_tasks(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        moves::list(&self.calls, queue, max).await
    }
}

fn put(
    core: &mut Core,
    id: QueueId,
    attributes: quelea_broker::QueueAttributes,
) -> Result<((), Ticket), Fault> {
    let ticket = core.broker.put_queue_attributes(id, attributes).map_err(create_fault)?;
    Ok(((), ticket))
}

/// Returns outcomes in the order of the receipts; what is no receipt was not given to the broker.
fn merge(
    receipts: &[Option<quelea_broker::Receipt>],
    outcomes: Vec<BrokerOutcome>,
) -> Result<Vec<ReceiptOutcome>, Fault> {
    let mut outcomes = outcomes.into_iter();
    let merged = receipts.iter().map(|receipt| match receipt {
        None => Some(ReceiptOutcome::Invalid),
        Some(_) => outcomes.next().map(|outcome| match outcome {
            BrokerOutcome::Done => ReceiptOutcome::Done,
            BrokerOutcome::Foreign => ReceiptOutcome::Invalid,
            BrokerOutcome::NotInFlight => ReceiptOutcome::NotInFlight,
            BrokerOutcome::Gone | BrokerOutcome::Busy => ReceiptOutcome::NoSuchMessage,
            BrokerOutcome::Expired => ReceiptOutcome::Expired,
            BrokerOutcome::TooLong => ReceiptOutcome::TooLong,
        }),
    });
    let merged: Option<Vec<_>> = merged.collect();
    merged.ok_or_else(|| Fault::Unavailable("the broker gave too few outcomes".to_owned()))
}

fn outcome(sent: Result<quelea_broker::SentMessage, SendError>, is_fifo: bool) -> SendOutcome {
    let sent = sent.map_err(|error| Fault::Unavailable(error.to_string()))?;
    Ok(Sent {
        message_id: Uuid::from_bytes(sent.message_id).to_string(),
        sequence_number: is_fifo.then(|| sequence_number(sent.seq.0)),
    })
}

const fn gone(_: NoSuchQueueId) -> Fault {
    Fault::NoSuchQueue
}

fn create_fault(error: CreateQueueError) -> Fault {
    match error {
        CreateQueueError::NoSuchQueue(_) => Fault::NoSuchQueue,
        CreateQueueError::NoSuchVhost { vhost } => no_account(&vhost),
        other => Fault::Invalid(other.to_string()),
    }
}

fn no_account(account: &str) -> Fault {
    Fault::Invalid(format!("The account {account} does not exist."))
}

/// Returns a UUID that is random enough for names that nobody has to guess.
fn random_uuid() -> Uuid {
    let number = RANDOM.with_borrow_mut(|random| random.u128(..));
    uuid::Builder::from_random_bytes(number.to_ne_bytes()).into_uuid()
}

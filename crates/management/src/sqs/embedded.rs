//! The queues of the broker in this process, as the SQS service wants them. It holds nothing that a
//! request needs but what it can look up again.

mod attributes;
mod facts;
mod message;
mod moves;
mod receipt;
mod settings;
mod untaken;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quelea_broker::{
    CreateQueueError, NoSuchQueueId, ReceiptOutcome as BrokerOutcome, ReceiveError, ReceiveId,
    SendError,
};
use quelea_model::{QueueId, Timestamp, VhostName};
use quelea_node::{Core, CoreHandle, CoreStopped};
use quelea_sqs_protocol::{
    AccessKey, Backlog, Created, Delivery, Fault, MoveTask, NewMessage, NewMoveTask, Permits,
    QueueFacts, QueueKey, QueueRef, Queues, ReceiptOutcome, Receive, Received, SendOutcome, Sent,
    User,
};
use quelea_store::Ticket;
use tokio::sync::oneshot;
use uuid::Uuid;

use facts::KnownFacts;
pub use settings::EmbeddedSettings;
use untaken::{ReceiveAnswer, untaken};

/// While the broker has too much to write, senders wait for so long before they look again, and for
/// so long in all.
const RETRY_AFTER: Duration = Duration::from_millis(5);
const RETRIES_MAX: usize = 1_000;

/// The broker's queues. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EmbeddedQueues {
    core: CoreHandle,
    settings: Arc<EmbeddedSettings>,
    known: Arc<KnownFacts>,
}

thread_local! {
    static RANDOM: RefCell<fastrand::Rng> = RefCell::new(fastrand::Rng::new());
}

impl EmbeddedQueues {
    /// The queues of a node.
    #[must_use]
    pub fn new(core: CoreHandle, settings: EmbeddedSettings) -> Self {
        Self { core, settings: Arc::new(settings), known: Arc::default() }
    }

    fn vhost(&self, account: &str) -> Option<Arc<str>> {
        self.settings.vhost(account)
    }

    fn account(&self, vhost: &str) -> Arc<str> {
        self.settings.account(vhost)
    }

    async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Fault> {
        self.core.call(call).await.map_err(stopped)
    }

    /// Runs a change and waits until it is durable.
    async fn promise<R: Send + 'static, E: Into<Fault> + Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> Result<(R, Ticket), E> + Send + 'static,
    ) -> Result<R, Fault> {
        let promised = self.core.promise(move |core| match call(core) {
            Ok((result, ticket)) => (Ok(result), ticket),
            Err(error) => (Err(error), Ticket::NONE),
        });
        promised.await.map_err(stopped)?.map_err(Into::into)
    }

    /// Waits while the broker has more to write than it may; not while its disk is full.
    async fn wait_for_room(&self) -> Result<(), Fault> {
        for _ in 0..RETRIES_MAX {
            let state = self.call(|core| {
                let blocked = core.broker.publishers_blocked().map(str::to_owned);
                (core.broker.accepts_publishes(), blocked)
            });
            match state.await? {
                (true, _) => return Ok(()),
                (false, Some(reason)) => return Err(Fault::Unavailable(reason)),
                (false, None) => tokio::time::sleep(RETRY_AFTER).await,
            }
        }
        Err(Fault::Unavailable("the log cannot keep up".to_owned()))
    }

    fn remember(&self, epoch: u64, user: &User, queue: &QueueRef, facts: &Arc<QueueFacts>) {
        self.known.add_queue(epoch, user, queue, facts);
    }
}

fn stopped(_: CoreStopped) -> Fault {
    Fault::Unavailable("the broker stops, or its disk failed".to_owned())
}

fn queue_id(key: QueueKey) -> Result<QueueId, Fault> {
    u32::try_from(key).map(QueueId).map_err(|_| Fault::NoSuchQueue)
}

/// What the broker knows of a queue, for a user.
fn look_up(core: &mut Core, user: Option<&str>, vhost: &str, name: &str) -> Option<QueueFacts> {
    let id = core.broker.queue_id(vhost, name)?;
    let (attributes, created_at) = core.broker.queue_attributes(id)?;
    let permits = match user {
        None => Permits { configure: true, write: true, read: true },
        Some(user) => {
            let may = core.broker.queue_permits(user, vhost, name);
            Permits { configure: may.configure, write: may.write, read: may.read }
        }
    };
    Some(QueueFacts {
        key: u64::from(id.0),
        attributes: attributes::from_broker(&attributes.attributes),
        tags: attributes::from_broker(&attributes.tags),
        created_at_ms: created_at.as_millis(),
        modified_at_ms: attributes.modified_at.max(created_at).as_millis(),
        permits,
    })
}

impl Queues for EmbeddedQueues {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        let epoch = self.core.queues_epoch();
        if let Some(key) = self.known.key(epoch, id) {
            return Ok(Some(key));
        }
        let (this, wanted) = (self.clone(), id.to_owned());
        let key = self.call(move |core| this.find_key(core, &wanted)).await?;
        if let Some(key) = &key {
            self.known.add_key(epoch, id, key);
        }
        Ok(key)
    }

    async fn facts(&self, user: &User, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        let epoch = self.core.queues_epoch();
        if let Some(facts) = self.known.queue(epoch, user, queue) {
            return Ok(Some(facts));
        }
        let Some(vhost) = self.vhost(&queue.account) else { return Ok(None) };
        let (name, asks) = (Arc::clone(&queue.name), user.name.clone());
        let facts = self.call(move |core| look_up(core, asks.as_deref(), &vhost, &name)).await?;
        let facts = facts.map(Arc::new);
        if let Some(facts) = &facts {
            self.remember(epoch, user, queue, facts);
        }
        Ok(facts)
    }

    async fn create(
        &self,
        user: &User,
        queue: &QueueRef,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    ) -> Result<Created, Fault> {
        let vhost = self.vhost(&queue.account).ok_or_else(|| no_account(&queue.account))?;
        let name = Arc::clone(&queue.name);
        let (account, asks) = (Arc::clone(&queue.account), user.name.clone());
        let cooldown_ms = self.settings.cooldown_ms;
        self.promise(move |core| {
            let now = core.now();
            let may_configure = asks
                .as_deref()
                .is_none_or(|user| core.broker.queue_permits(user, &vhost, &name).configure);
            if !may_configure {
                return Ok((Created::Refused, Ticket::NONE));
            }
            if let Some(facts) = look_up(core, asks.as_deref(), &vhost, &name) {
                return Ok((Created::Exists(Arc::new(facts)), Ticket::NONE));
            }
            let deleted_at = core.broker.queue_deleted_at(&vhost, &name);
            if deleted_at.is_some_and(|at| now < at.plus_ms(cooldown_ms)) {
                return Ok((Created::DeletedRecently, Ticket::NONE));
            }
            let attributes = attributes::to_broker(&attributes, &tags, &account, now)?;
            let created = core.broker.create_queue(now, &vhost, &name, attributes);
            created.map(|(_, ticket)| (Created::New, ticket)).map_err(create_fault)
        })
        .await
    }

    async fn delete_queue(&self, queue: QueueKey) -> Result<(), Fault> {
        let id = queue_id(queue)?;
        self.promise(move |core| {
            let now = core.now();
            core.broker.delete_queue_by_id(now, id).map(|ticket| ((), ticket)).map_err(gone)
        })
        .await
    }

    async fn purge(&self, queue: QueueKey) -> Result<(), Fault> {
        let id = queue_id(queue)?;
        let cooldown_ms = self.settings.cooldown_ms;
        self.promise(move |core| {
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
        user: &User,
        account: &str,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let Some(vhost) = self.vhost(account) else { return Ok(Vec::new()) };
        let prefix = prefix.to_owned();
        let (after, asks) = (after.map(str::to_owned), user.name.clone());
        self.call(move |core| {
            let names = core.broker.queue_names(&vhost, after.as_deref(), usize::MAX, |name, _| {
                name.starts_with(&prefix) && !name.starts_with("amq.")
            });
            let mut may_see = |name: &str| {
                asks.as_deref().is_none_or(|user| {
                    let may = core.broker.queue_permits(user, &vhost, name);
                    may.configure || may.write || may.read
                })
            };
            let names = names.into_iter().filter(|name| may_see(name.as_str()));
            names.take(max).map(|name| name.to_string()).collect()
        })
        .await
    }

    async fn dead_letter_sources(
        &self,
        _user: &User,
        queue: &QueueRef,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let Some(vhost) = self.vhost(&queue.account) else { return Ok(Vec::new()) };
        let target = Arc::clone(&queue.name);
        let after = after.map(str::to_owned);
        self.call(move |core| {
            let names = core.broker.queue_names(&vhost, after.as_deref(), max, |_, attributes| {
                let redrive = attributes.settings.redrive.as_ref();
                redrive.is_some_and(|redrive| *redrive.target == *target)
            });
            names.into_iter().map(|name| name.to_string()).collect()
        })
        .await
    }

    async fn put_attributes(
        &self,
        seen: Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let id = queue_id(seen.key)?;
        let this = self.clone();
        self.promise(move |core| {
            let now = core.now();
            let (old, _) = core.broker.queue_attributes(id).ok_or(Fault::NoSuchQueue)?;
            if attributes::from_broker(&old.attributes) != seen.attributes {
                return Err(Fault::Conflict);
            }
            let vhost = core.broker.queue_vhost(id).ok_or(Fault::NoSuchQueue)?;
            let tags = attributes::from_broker(&old.tags);
            let account = this.account(vhost.as_str());
            let new = attributes::to_broker(&attributes, &tags, &account, now)?;
            put(core, id, new)
        })
        .await
    }

    async fn put_tags(
        &self,
        seen: Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let id = queue_id(seen.key)?;
        self.promise(move |core| {
            let (mut attributes, _) = core.broker.queue_attributes(id).ok_or(Fault::NoSuchQueue)?;
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

    async fn backlog(&self, queue: QueueKey) -> Result<Backlog, Fault> {
        let id = queue_id(queue)?;
        self.call(move |core| {
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
        queue: QueueKey,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let id = queue_id(queue)?;
        let now_ms = wall_clock_ms();
        let messages: Vec<_> =
            messages.into_iter().map(|new| message::outgoing(new, random_uuid(), now_ms)).collect();
        let mut messages = Some(messages);
        loop {
            let (back, given) = (oneshot::channel(), messages.take().unwrap_or_default());
            let (returns, returned) = back;
            let sent = self.promise(move |core| {
                if !core.broker.accepts_publishes() {
                    // Whoever sent them waits below.
                    let _ = returns.send(given);
                    return Ok((None, Ticket::NONE));
                }
                let now = core.now();
                let (sent, ticket) = core.broker.send(now, id, given).map_err(gone)?;
                let is_fifo = core.broker.queue_is_fifo(id);
                Ok::<_, Fault>((Some((sent, is_fifo)), ticket))
            });
            if let Some((sent, is_fifo)) = sent.await? {
                return Ok(sent.into_iter().map(|sent| outcome(sent, is_fifo)).collect());
            }
            messages = returned.await.ok();
            self.wait_for_room().await?;
        }
    }

    async fn receive(&self, queue: QueueKey, receive: Receive) -> Result<Vec<Received>, Fault> {
        let id = queue_id(queue)?;
        let (sender, answer) = oneshot::channel();
        let wanted = quelea_broker::Receive {
            max: receive.max,
            visibility_timeout_ms: receive.visibility_timeout_ms,
            wait_ms: receive.wait_ms,
            attempt: receive.attempt_id.as_deref().map(hash),
        };
        let begun = Arc::new(Begun::default());
        let begins = Arc::clone(&begun);
        let posted = self.core.post(move |core| {
            if let Some(vhost) = core.broker.queue_vhost(id).cloned() {
                let _ = begins.queue.set((vhost, core.broker.queue_is_fifo(id)));
            }
            if let Some(receive) = core.receive(id, wanted, sender) {
                let _ = begins.receive.set(receive);
            }
        });
        posted.await.map_err(stopped)?;
        let mut waiting = Waiting { core: &self.core, queue: id, begun: Some(begun), answer };
        let messages = (&mut waiting.answer).await.map_err(|_| stopped(CoreStopped))?;
        let begun = waiting.begun.take();
        let messages = messages.map_err(receive_fault)?.ok_or(Fault::NoSuchQueue)?;
        let queue = begun.as_ref().and_then(|begun| begun.queue.get());
        let (vhost, is_fifo) = queue.ok_or(Fault::NoSuchQueue)?;
        let account = self.account(vhost.as_str());
        Ok(messages.iter().map(|one| message::incoming(one, &account, *is_fifo)).collect())
    }

    async fn delete(
        &self,
        queue: QueueKey,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let id = queue_id(queue)?;
        let receipts: Vec<_> = deliveries.iter().map(|bytes| receipt::decode(bytes)).collect();
        let known: Vec<_> = receipts.iter().copied().flatten().collect();
        let outcomes = self.settle(move |core| {
            let now = core.now();
            core.broker.delete_messages(now, id, &known).map_err(gone)
        });
        merge(&receipts, outcomes.await?)
    }

    async fn change_visibility(
        &self,
        queue: QueueKey,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let id = queue_id(queue)?;
        let receipts: Vec<_> = changes.iter().map(|(bytes, _)| receipt::decode(bytes)).collect();
        let times = changes.iter().map(|(_, timeout_ms)| *timeout_ms);
        let known: Vec<_> =
            receipts.iter().copied().zip(times).filter_map(|(r, t)| Some((r?, t))).collect();
        let outcomes = self.settle(move |core| {
            let now = core.now();
            core.broker.change_visibility(now, id, &known).map_err(gone)
        });
        merge(&receipts, outcomes.await?)
    }

    async fn start_move(&self, queue: QueueKey, task: NewMoveTask) -> Result<String, Fault> {
        self.start(queue, task).await
    }

    async fn cancel_move(&self, queue: QueueKey, handle: &str) -> Result<u64, Fault> {
        self.cancel(queue, handle).await
    }

    async fn move_tasks(&self, queue: QueueKey, max: usize) -> Result<Vec<MoveTask>, Fault> {
        self.tasks(queue, max).await
    }
}

impl EmbeddedQueues {
    /// Settles receipts; waits for messages that have to be read before.
    async fn settle(
        &self,
        call: impl Fn(&mut Core) -> Result<(Vec<BrokerOutcome>, Ticket), Fault> + Clone + Send + 'static,
    ) -> Result<Vec<BrokerOutcome>, Fault> {
        for _ in 0..RETRIES_MAX {
            let outcomes = self.promise(call.clone()).await?;
            if !outcomes.contains(&BrokerOutcome::Busy) {
                return Ok(outcomes);
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        Err(Fault::Unavailable("the message cannot be read".to_owned()))
    }

    fn find_key(&self, core: &Core, id: &str) -> Option<AccessKey> {
        let key = core.broker.access_key(id)?;
        let user =
            User { name: Some(Arc::clone(&key.user)), account: self.account(key.vhost.as_str()) };
        Some(AccessKey { user, secret: Arc::clone(&key.secret), enabled: key.enabled })
    }
}

/// What the core says of a receive that it has begun.
#[derive(Debug, Default)]
struct Begun {
    receive: OnceLock<ReceiveId>,
    queue: OnceLock<(VhostName, bool)>,
}

/// A receive that is cancelled when nobody waits for it any more.
struct Waiting<'a> {
    core: &'a CoreHandle,
    queue: QueueId,
    begun: Option<Arc<Begun>>,
    answer: oneshot::Receiver<ReceiveAnswer>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            let queue = self.queue;
            let untaken = untaken(&mut self.answer);
            // If it cannot be cancelled now it ends when its time is over, or its answer finds nobody.
            self.core.try_call(move |core| {
                if !untaken.is_empty() {
                    let now = core.now();
                    core.broker.undo_receives(now, &untaken);
                }
                if let Some(receive) = begun.receive.get() {
                    core.cancel_receive(queue, *receive);
                }
            });
        }
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

/// Outcomes in the order of the receipts; what is no receipt was not given to the broker.
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
        sequence_number: is_fifo.then(|| message::sequence_number(sent.seq.0)),
    })
}

const fn gone(_: NoSuchQueueId) -> Fault {
    Fault::NoSuchQueue
}

fn receive_fault(error: ReceiveError) -> Fault {
    match error {
        ReceiveError::NoSuchQueue(_) => Fault::NoSuchQueue,
        ReceiveError::OverLimit(reached) => Fault::OverLimit { limit: reached.limit },
        ReceiveError::Busy(reached) => Fault::Unavailable(reached.to_string()),
    }
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

/// Random enough for names that nobody has to guess.
fn random_uuid() -> Uuid {
    let number = RANDOM.with_borrow_mut(|random| random.u128(..));
    uuid::Builder::from_random_bytes(number.to_ne_bytes()).into_uuid()
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn wall_clock_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as u64
}

//! Queues in memory, as far as the rules of the service can be seen through them: no timeouts run
//! out, nothing is durable, there is one lock. The real ones are tested with real clients.

#![allow(clippy::disallowed_types, reason = "a test double may lock")]

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use quelea_sqs_protocol::{
    AccessKey, Backlog, Capabilities, Consistency, Counts, Created, Delivery, Fault, Identity,
    MoveTask, MoveTaskState, NewMessage, NewMoveTask, NewQueue, OldReceipts, Order, Peeked,
    PeekedMessage, PeekedState, Permits, QueueClass, QueueFacts, QueueKey, QueueRef, QueueSettings,
    Queues, Reappearance, ReceiptOutcome, Receive, Received, SendOutcome, Sent, User,
};

/// A store of queues; clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    queues: BTreeMap<QueueRef, Queue>,
    deleted: Vec<QueueRef>,
    keys: u128,
    without: Option<QueueClass>,
    when_created: Option<Box<dyn FnOnce() + Send>>,
    permits: Option<Permits>,
    access_keys: BTreeMap<String, AccessKey>,
    waiting: usize,
    wakers: Vec<Waker>,
    last_receive: Option<Receive>,
    last_task: Option<(QueueRef, NewMoveTask)>,
    interfere: Option<Interference>,
}

/// What another front-end does to a queue just before a change of ours.
type Interference = Box<dyn FnMut(&mut QueueFacts) + Send>;

struct Queue {
    facts: Arc<QueueFacts>,
    visible: VecDeque<Received>,
    in_flight: Vec<Received>,
    purged: bool,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics under the lock")
    }

    /// What users with a name may do from now on.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn permit(&self, permits: Permits) {
        self.lock().permits = Some(permits);
    }

    /// Has no store of queues of that class from now on.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn lose(&self, class: QueueClass) {
        self.lock().without = Some(class);
    }

    /// Does something once, as soon as the next queue is made: as another front-end might.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn when_created(&self, then: impl FnOnce() + Send + 'static) {
        self.lock().when_created = Some(Box::new(then));
    }

    /// Makes an access key.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn add_access_key(&self, id: &str, key: AccessKey) {
        self.lock().access_keys.insert(id.to_owned(), key);
    }

    /// Returns how many receives wait.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Returns what was asked for by the last receive.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn last_receive(&self) -> Option<Receive> {
        self.lock().last_receive.clone()
    }

    /// Changes queues before each change that is asked for, as another front-end might.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn interfere(&self, interfere: impl FnMut(&mut QueueFacts) + Send + 'static) {
        self.lock().interfere = Some(Box::new(interfere));
    }

    /// Puts a message into a queue as another protocol would.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn put(&self, account: &str, name: &str, change: impl FnOnce(&mut Received)) {
        let queue = QueueRef { account: account.into(), name: name.into() };
        let mut received = received(NewMessage::default(), "foreign".to_owned());
        change(&mut received);
        self.lock().queues.get_mut(&queue).expect("it was made").visible.push_back(received);
    }

    /// Returns a queue's attributes as they are stored.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn attributes(&self, account: &str, name: &str) -> BTreeMap<String, String> {
        let queue = QueueRef { account: account.into(), name: name.into() };
        self.lock().queues[&queue].facts.attributes.clone()
    }
}

impl State {
    fn queue(&mut self, key: QueueKey) -> Result<&mut Queue, Fault> {
        let found = self.queues.values_mut().find(|queue| queue.facts.key == key);
        found.ok_or(Fault::NoSuchQueue)
    }

    /// Applies a change to the queue that was seen, unless it is not as it was seen.
    fn change(
        &mut self,
        seen: &QueueFacts,
        change: impl FnOnce(&mut QueueFacts),
    ) -> Result<(), Fault> {
        let mut interfere = self.interfere.take();
        let queue = self.queue(seen.key)?;
        if let Some(interfere) = &mut interfere {
            apply(&mut queue.facts, interfere);
        }
        let conflicts = queue.facts.revision != seen.revision;
        if !conflicts {
            apply(&mut queue.facts, change);
        }
        self.interfere = interfere;
        if conflicts { Err(Fault::Conflict) } else { Ok(()) }
    }

    fn take(&mut self, key: QueueKey, max: usize) -> Result<Vec<Received>, Fault> {
        let queue = self.queue(key)?;
        let max = max.min(queue.visible.len());
        let mut taken: Vec<_> = queue.visible.drain(..max).collect();
        for received in &mut taken {
            received.receive_count += 1;
            let count = received.receive_count as u8;
            received.delivery =
                [&id_bytes(key)[..], received.message_id.as_bytes(), &[count]].concat();
        }
        queue.in_flight.extend(taken.iter().cloned());
        Ok(taken)
    }
}

/// Changes facts: what was looked up before stays as it was.
fn apply(facts: &mut Arc<QueueFacts>, change: impl FnOnce(&mut QueueFacts)) {
    let facts = Arc::make_mut(facts);
    let before = (facts.attributes.clone(), facts.tags.clone());
    change(facts);
    facts.settings = QueueSettings::of(&facts.attributes);
    facts.revision += u64::from(before != (facts.attributes.clone(), facts.tags.clone()));
}

fn received(message: NewMessage, message_id: String) -> Received {
    Received {
        delivery: Vec::new(),
        message_id,
        body: message.body,
        attributes: message.attributes,
        receive_count: 0,
        sent_at_ms: 1_000,
        first_received_at_ms: 2_000,
        sender_id: Some(message.sender_id.to_string()),
        trace_header: message.trace_header,
        sequence_number: message.deduplication_id.as_ref().map(|_| format!("{:020}", 1)),
        group_id: message.group_id,
        deduplication_id: message.deduplication_id,
        dead_letter_source: None,
    }
}

fn peeked(one: &Received, state: PeekedState) -> PeekedMessage {
    let one = one.clone();
    PeekedMessage {
        message_id: one.message_id,
        body: one.body,
        attributes: one.attributes,
        receive_count: Some(one.receive_count),
        sent_at_ms: one.sent_at_ms,
        first_received_at_ms: (one.receive_count > 0).then_some(one.first_received_at_ms),
        sender_id: one.sender_id,
        trace_header: one.trace_header,
        group_id: one.group_id,
        deduplication_id: one.deduplication_id,
        sequence_number: one.sequence_number,
        dead_letter_source: one.dead_letter_source,
        state: Some(state),
    }
}

fn id_bytes(key: QueueKey) -> [u8; 16] {
    key.id_in(key.class()).expect("a key is of its class").to_be_bytes()
}

/// A receive that waits; it counts as waiting until it is dropped.
struct Waiting {
    memory: Memory,
    key: QueueKey,
    receive: Receive,
    counted: bool,
}

impl Future for Waiting {
    type Output = Result<Vec<Received>, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let memory = self.memory.clone();
        let mut state = memory.lock();
        let taken = state.take(self.key, self.receive.max)?;
        if self.receive.wait_ms == 0 || !taken.is_empty() {
            return Poll::Ready(Ok(taken));
        }
        if !self.counted {
            self.counted = true;
            state.waiting += 1;
        }
        state.wakers.push(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.counted {
            self.memory.lock().waiting -= 1;
        }
    }
}

impl Identity for Memory {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        Ok(self.lock().access_keys.get(id).cloned())
    }

    async fn permits(&self, user: &User, queue: &QueueRef) -> Result<Permits, Fault> {
        Ok(match user.account == queue.account {
            true => self.lock().permits.unwrap_or(Permits::ALL),
            false => Permits::default(),
        })
    }

    async fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        names: Vec<String>,
    ) -> Result<Vec<String>, Fault> {
        let hidden = |name: &&String| name.starts_with("hidden");
        let names = names.into_iter().filter(|name| !hidden(&name));
        Ok(names.filter(|_| user.account == *account).collect())
    }
}

impl Queues for Memory {
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities> {
        let is_replicated = class == QueueClass::Replicated;
        (self.lock().without != Some(class)).then_some(Capabilities {
            order: Order::Strict,
            reappearance: Reappearance::OldPlace,
            old_receipts: OldReceipts::Ignored,
            counts: Counts::Exact,
            order_hint_auto: is_replicated,
            durability: !is_replicated,
            consistency: is_replicated.then_some(Consistency::LocalQuorum),
            facts_age_ms_max: 0,
            peeks: is_replicated,
        })
    }

    async fn facts(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        Ok(self.lock().queues.get(queue).map(|queue| Arc::clone(&queue.facts)))
    }

    async fn create(&self, queue: &QueueRef, new: NewQueue) -> Result<Created, Fault> {
        let mut state = self.lock();
        if let Some(found) = state.queues.get(queue) {
            return Ok(Created::Exists(Arc::clone(&found.facts)));
        }
        if state.deleted.contains(queue) {
            return Ok(Created::DeletedRecently);
        }
        state.keys += 1;
        let facts = Arc::new(QueueFacts {
            key: QueueKey::new(new.class, state.keys),
            queue: queue.clone(),
            revision: 1,
            settings: QueueSettings::of(&new.attributes),
            attributes: new.attributes,
            tags: new.tags,
            created_at_ms: 1_700_000_000_123,
            modified_at_ms: 1_700_000_001_999,
        });
        let (visible, in_flight) = (VecDeque::new(), Vec::new());
        state.queues.insert(queue.clone(), Queue { facts, visible, in_flight, purged: false });
        let then = state.when_created.take();
        drop(state);
        if let Some(then) = then {
            then();
        }
        Ok(Created::New)
    }

    async fn delete_queue(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let mut state = self.lock();
        state.queue(queue.key)?;
        state.queues.remove(&queue.queue);
        state.deleted.push(queue.queue.clone());
        Ok(())
    }

    async fn purge(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let mut state = self.lock();
        let queue = state.queue(queue.key)?;
        if std::mem::replace(&mut queue.purged, true) {
            return Err(Fault::PurgeInProgress);
        }
        queue.visible.clear();
        queue.in_flight.clear();
        Ok(())
    }

    async fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let state = self.lock();
        let own = state.queues.keys().filter(|queue| queue.account == *account);
        let names = own.map(|queue| queue.name.to_string());
        let wanted = |name: &String| {
            name.starts_with(prefix) && after.is_none_or(|after| name.as_str() > after)
        };
        Ok(names.filter(wanted).take(max).collect())
    }

    async fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let state = self.lock();
        let names_it = |facts: &QueueFacts| {
            let redrive = facts.settings.redrive.as_ref();
            redrive.is_some_and(|redrive| redrive.dead_letter_queue == queue.queue)
        };
        let sources = state.queues.iter().filter(|(_, source)| names_it(&source.facts));
        let names = sources.map(|(name, _)| name.name.to_string());
        let later = |name: &String| after.is_none_or(|after| name.as_str() > after);
        Ok(names.filter(later).take(max).collect())
    }

    async fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.lock().change(seen, |facts| facts.attributes = attributes)
    }

    async fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.lock().change(seen, |facts| facts.tags = tags)
    }

    async fn backlog(&self, queue: &Arc<QueueFacts>) -> Result<Backlog, Fault> {
        let mut state = self.lock();
        let queue = state.queue(queue.key)?;
        Ok(Backlog {
            visible: queue.visible.len() as u64,
            in_flight: queue.in_flight.len() as u64,
            delayed: 3,
            oldest_age_s: 17,
        })
    }

    async fn peek(&self, queue: &Arc<QueueFacts>, max: usize) -> Result<Peeked, Fault> {
        let mut state = self.lock();
        if queue.key.class() == QueueClass::Ordered {
            return Err(Fault::Unsupported("no look".to_owned()));
        }
        let queue = state.queue(queue.key)?;
        let visible = queue.visible.iter().map(|one| peeked(one, PeekedState::Visible));
        let in_flight = PeekedState::InFlight { until_ms: u64::MAX };
        let in_flight = queue.in_flight.iter().map(|one| peeked(one, in_flight));
        let messages: Vec<_> = visible.chain(in_flight).take(max).collect();
        let is_whole = messages.len() == queue.visible.len() + queue.in_flight.len();
        Ok(Peeked { messages, is_whole })
    }

    async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let mut state = self.lock();
        let queue = state.queue(queue.key)?;
        let mut outcomes = Vec::new();
        for message in messages {
            let message_id = format!("id-{}", queue.visible.len() + queue.in_flight.len());
            let received = received(message, message_id.clone());
            let sequence_number = received.sequence_number.clone();
            outcomes.push(Ok(Sent { message_id, sequence_number }));
            queue.visible.push_back(received);
        }
        state.wakers.drain(..).for_each(Waker::wake);
        Ok(outcomes)
    }

    fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> impl Future<Output = Result<Vec<Received>, Fault>> + Send {
        self.lock().last_receive = Some(receive.clone());
        Waiting { memory: self.clone(), key: queue.key, receive, counted: false }
    }

    async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let mut state = self.lock();
        let key = id_bytes(queue.key);
        let queue = state.queue(queue.key)?;
        let outcome = |delivery: Delivery| {
            if !delivery.starts_with(&key) {
                return ReceiptOutcome::Invalid;
            }
            if delivery.ends_with(b"expired") {
                return ReceiptOutcome::Expired;
            }
            queue.in_flight.retain(|received| received.delivery != delivery);
            ReceiptOutcome::Done
        };
        Ok(deliveries.into_iter().map(outcome).collect())
    }

    async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let mut state = self.lock();
        let key = id_bytes(queue.key);
        let queue = state.queue(queue.key)?;
        let outcome = |(delivery, timeout_ms): (Delivery, u64)| {
            if !delivery.starts_with(&key) {
                return ReceiptOutcome::Invalid;
            }
            let found = queue.in_flight.iter().position(|one| one.delivery == delivery);
            let Some(found) = found else { return ReceiptOutcome::NoSuchMessage };
            if timeout_ms == 0 {
                queue.visible.push_front(queue.in_flight.remove(found));
            }
            ReceiptOutcome::Done
        };
        Ok(changes.into_iter().map(outcome).collect())
    }

    async fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        let mut state = self.lock();
        state.queue(queue.key)?;
        state.last_task = Some((queue.queue.clone(), task));
        Ok("task-1".to_owned())
    }

    async fn cancel_move(&self, queue: &Arc<QueueFacts>, handle: &str) -> Result<u64, Fault> {
        let mut state = self.lock();
        let source = state.last_task.as_ref().and_then(|(source, _)| state.queues.get(source));
        let is_it = source.is_some_and(|source| source.facts.key == queue.key);
        match is_it && handle == "task-1" {
            true => state.last_task = None,
            false => return Err(Fault::NotFound(format!("no task {handle}"))),
        }
        Ok(5)
    }

    async fn move_tasks(
        &self,
        _queue: &Arc<QueueFacts>,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        let task = self.lock().last_task.clone().map(|(source, task)| MoveTask {
            handle: Some("task-1".to_owned()),
            state: MoveTaskState::Running,
            source,
            task,
            moved: 5,
            to_move: 9,
            failure_reason: None,
            started_at_ms: 1_700_000_000_000,
        });
        Ok(task.into_iter().take(max).collect())
    }
}

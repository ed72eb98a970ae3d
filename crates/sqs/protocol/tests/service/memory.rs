//! Queues in memory, as far as the rules of the service can be seen through them: no timeouts run
//! out, nothing is durable, there is one lock. The real ones are tested with real clients.

#![allow(clippy::disallowed_types, reason = "a test double may lock")]

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use quelea_sqs_protocol::{
    AccessKey, Backlog, Created, Delivery, Fault, MoveTask, MoveTaskState, NewMessage, NewMoveTask,
    Permits, QueueFacts, QueueKey, QueueRef, Queues, ReceiptOutcome, Receive, Received,
    RedrivePolicy, SendOutcome, Sent, User,
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
    keys: u64,
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
    facts: QueueFacts,
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

    /// Makes an access key.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn add_access_key(&self, id: &str, key: AccessKey) {
        self.lock().access_keys.insert(id.to_owned(), key);
    }

    /// How many receives wait.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// What was asked for by the last receive.
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

    /// What a queue's attributes are as they are stored.
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

    fn facts_to_change(&mut self, key: QueueKey) -> Result<&mut QueueFacts, Fault> {
        let mut interfere = self.interfere.take();
        if let Some(interfere) = &mut interfere {
            interfere(&mut self.queue(key)?.facts);
        }
        self.interfere = interfere;
        Ok(&mut self.queue(key)?.facts)
    }

    fn facts(&self, user: &User, queue: &QueueRef) -> Option<Arc<QueueFacts>> {
        let mut facts = self.queues.get(queue)?.facts.clone();
        let all = Permits { configure: true, write: true, read: true };
        facts.permits = match user.account == queue.account {
            true => self.permits.unwrap_or(all),
            false => Permits::default(),
        };
        Some(Arc::new(facts))
    }

    fn take(&mut self, key: QueueKey, max: usize) -> Result<Vec<Received>, Fault> {
        let queue = self.queue(key)?;
        let max = max.min(queue.visible.len());
        let mut taken: Vec<_> = queue.visible.drain(..max).collect();
        for received in &mut taken {
            received.receive_count += 1;
            let count = received.receive_count as u8;
            received.delivery =
                [&key.to_be_bytes(), received.message_id.as_bytes(), &[count]].concat();
        }
        queue.in_flight.extend(taken.iter().cloned());
        Ok(taken)
    }
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

impl Queues for Memory {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        Ok(self.lock().access_keys.get(id).cloned())
    }

    async fn facts(&self, user: &User, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        Ok(self.lock().facts(user, queue))
    }

    async fn create(
        &self,
        user: &User,
        queue: &QueueRef,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    ) -> Result<Created, Fault> {
        let mut state = self.lock();
        if let Some(facts) = state.facts(user, queue) {
            return Ok(Created::Exists(facts));
        }
        if state.permits.is_some_and(|permits| !permits.configure) {
            return Ok(Created::Refused);
        }
        if state.deleted.contains(queue) {
            return Ok(Created::DeletedRecently);
        }
        state.keys += 1;
        let facts = QueueFacts {
            key: state.keys,
            attributes,
            tags,
            created_at_ms: 1_700_000_000_123,
            modified_at_ms: 1_700_000_001_999,
            permits: Permits::default(),
        };
        let (visible, in_flight) = (VecDeque::new(), Vec::new());
        state.queues.insert(queue.clone(), Queue { facts, visible, in_flight, purged: false });
        Ok(Created::New)
    }

    async fn delete_queue(&self, key: QueueKey) -> Result<(), Fault> {
        let mut state = self.lock();
        let found = state.queues.iter().find(|(_, queue)| queue.facts.key == key);
        let name = found.map(|(name, _)| name.clone()).ok_or(Fault::NoSuchQueue)?;
        state.queues.remove(&name);
        state.deleted.push(name);
        Ok(())
    }

    async fn purge(&self, key: QueueKey) -> Result<(), Fault> {
        let mut state = self.lock();
        let queue = state.queue(key)?;
        if std::mem::replace(&mut queue.purged, true) {
            return Err(Fault::PurgeInProgress);
        }
        queue.visible.clear();
        queue.in_flight.clear();
        Ok(())
    }

    async fn list(
        &self,
        _user: &User,
        account: &str,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let state = self.lock();
        let own = state.queues.keys().filter(|queue| &*queue.account == account);
        let names = own.map(|queue| queue.name.to_string());
        let wanted = |name: &String| {
            name.starts_with(prefix) && after.is_none_or(|after| name.as_str() > after)
        };
        Ok(names.filter(wanted).take(max).collect())
    }

    async fn dead_letter_sources(
        &self,
        _user: &User,
        queue: &QueueRef,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        let state = self.lock();
        let names_it = |facts: &QueueFacts| {
            let policy = facts.attributes.get("RedrivePolicy");
            policy.is_some_and(|text| {
                RedrivePolicy::parse(text).is_ok_and(|policy| policy.dead_letter_queue == *queue)
            })
        };
        let sources = state.queues.iter().filter(|(_, source)| names_it(&source.facts));
        let names = sources.map(|(name, _)| name.name.to_string());
        let later = |name: &String| after.is_none_or(|after| name.as_str() > after);
        Ok(names.filter(later).take(max).collect())
    }

    async fn put_attributes(
        &self,
        seen: Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let mut state = self.lock();
        let facts = state.facts_to_change(seen.key)?;
        match facts.attributes == seen.attributes {
            true => facts.attributes = attributes,
            false => return Err(Fault::Conflict),
        }
        Ok(())
    }

    async fn put_tags(
        &self,
        seen: Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let mut state = self.lock();
        let facts = state.facts_to_change(seen.key)?;
        match facts.tags == seen.tags {
            true => facts.tags = tags,
            false => return Err(Fault::Conflict),
        }
        Ok(())
    }

    async fn backlog(&self, key: QueueKey) -> Result<Backlog, Fault> {
        let mut state = self.lock();
        let queue = state.queue(key)?;
        Ok(Backlog {
            visible: queue.visible.len() as u64,
            in_flight: queue.in_flight.len() as u64,
            delayed: 3,
            oldest_age_s: 17,
        })
    }

    async fn send(
        &self,
        key: QueueKey,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let mut state = self.lock();
        let queue = state.queue(key)?;
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
        key: QueueKey,
        receive: Receive,
    ) -> impl Future<Output = Result<Vec<Received>, Fault>> + Send {
        self.lock().last_receive = Some(receive.clone());
        Waiting { memory: self.clone(), key, receive, counted: false }
    }

    async fn delete(
        &self,
        key: QueueKey,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let mut state = self.lock();
        let queue = state.queue(key)?;
        let outcome = |delivery: Delivery| {
            if !delivery.starts_with(&key.to_be_bytes()) {
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
        key: QueueKey,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let mut state = self.lock();
        let queue = state.queue(key)?;
        let outcome = |(delivery, timeout_ms): (Delivery, u64)| {
            if !delivery.starts_with(&key.to_be_bytes()) {
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

    async fn start_move(&self, key: QueueKey, task: NewMoveTask) -> Result<String, Fault> {
        let mut state = self.lock();
        let source = state.queues.iter().find(|(_, queue)| queue.facts.key == key);
        let source = source.map(|(name, _)| name.clone()).ok_or(Fault::NoSuchQueue)?;
        state.last_task = Some((source, task));
        Ok("task-1".to_owned())
    }

    async fn cancel_move(&self, key: QueueKey, handle: &str) -> Result<u64, Fault> {
        let mut state = self.lock();
        let source = state.last_task.as_ref().and_then(|(source, _)| state.queues.get(source));
        let is_it = source.is_some_and(|source| source.facts.key == key) && handle == "task-1";
        match is_it {
            true => state.last_task = None,
            false => return Err(Fault::NotFound(format!("no task {handle}"))),
        }
        Ok(5)
    }

    async fn move_tasks(&self, _key: QueueKey, max: usize) -> Result<Vec<MoveTask>, Fault> {
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

//! A store under test, and what most cases do with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quelea_sqs_protocol::{
    Capabilities, Created, Delivery, NewMessage, NewQueue, QueueClass, QueueFacts, QueueRef,
    Queues, ReceiptOutcome, Receive, Received, Sent,
};
use tokio::time::Instant;

/// Longer than anything takes that a case waits for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a case looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Queues that are tried where a store may be too slow for what is to be seen.
pub(crate) const TRIES: usize = 20;

/// The longest visibility timeout that no case sees the end of.
pub(crate) const HIDDEN_MS: u64 = 600_000;

/// The longest wait of a receive, as SQS has it.
pub(crate) const WAIT_MS: u64 = 20_000;
/// How long is waited where somebody else may have to try again meanwhile.
pub(crate) const SHORT_WAIT_MS: u64 = 1_000;

/// A store under test.
#[derive(Debug)]
pub struct Suite<Q> {
    /// The store.
    pub store: Q,
    /// The class of queues that are tested.
    pub class: QueueClass,
    /// An account that there is, and that no other test uses at the same time under the same `prefix`.
    pub account: Arc<str>,
    /// What the names of all queues here begin with.
    pub prefix: String,
    /// For how long the store lets no queue be purged again, or be made under the name of one that was
    /// deleted; some hundred ms, so that both can be seen.
    pub cooldown_ms: u64,
    next: AtomicU64,
}

impl<Q: Queues> Suite<Q> {
    /// Returns a suite for that store.
    pub fn new(store: Q, class: QueueClass, account: &str, prefix: &str, cooldown_ms: u64) -> Self {
        let (account, prefix) = (account.into(), prefix.to_owned());
        Self { store, class, account, prefix, cooldown_ms, next: AtomicU64::new(0) }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.store.capabilities(self.class).expect("the store has queues of its class")
    }

    /// Returns a name that no other queue of this run has.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn queue_ref(&self, name: &str) -> QueueRef {
        QueueRef { account: Arc::clone(&self.account), name: name.into() }
    }

    pub(crate) fn new_queue(&self, attributes: &[(&str, &str)]) -> NewQueue {
        NewQueue { class: self.class, attributes: map(attributes), tags: BTreeMap::new() }
    }

    /// Makes a queue of that name.
    pub(crate) async fn create(&self, name: &str, attributes: &[(&str, &str)]) -> Arc<QueueFacts> {
        let queue = self.queue_ref(name);
        let created = self.store.create(&queue, self.new_queue(attributes)).await;
        assert_eq!(created, Ok(Created::New));
        self.facts(&queue).await.expect("a queue that was just made is found")
    }

    /// Makes a queue of any name.
    pub(crate) async fn queue(&self, attributes: &[(&str, &str)]) -> Arc<QueueFacts> {
        self.create(&self.name(), attributes).await
    }

    pub(crate) async fn fifo_queue(&self, attributes: &[(&str, &str)]) -> Arc<QueueFacts> {
        let attributes = [&[("FifoQueue", "true")], attributes].concat();
        self.create(&format!("{}.fifo", self.name()), &attributes).await
    }

    /// Makes a queue whose messages go to another when they were received so often; that one comes
    /// second.
    pub(crate) async fn queue_with_dead_letters(
        &self,
        receives_max: u32,
    ) -> (Arc<QueueFacts>, Arc<QueueFacts>) {
        let dead = self.queue(&[]).await;
        let policy = redrive_policy(&dead.queue, receives_max);
        (self.queue(&[("RedrivePolicy", &policy)]).await, dead)
    }

    pub(crate) async fn facts(&self, queue: &QueueRef) -> Option<Arc<QueueFacts>> {
        self.store.facts(queue).await.unwrap()
    }

    /// Sends messages, at most ten.
    pub(crate) async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Vec<Sent> {
        let count = messages.len();
        let sent = self.store.send(queue, messages).await.unwrap();
        assert_eq!(sent.len(), count, "an outcome for each");
        sent.into_iter().map(Result::unwrap).collect()
    }

    /// Sends messages of these bodies, one after the other.
    pub(crate) async fn send_bodies(&self, queue: &Arc<QueueFacts>, bodies: &[&str]) {
        for body in bodies {
            self.send(queue, vec![message(body)]).await;
        }
    }

    pub(crate) async fn receive(&self, queue: &Arc<QueueFacts>, receive: Receive) -> Vec<Received> {
        let max = receive.max;
        let received = self.store.receive(queue, receive).await.unwrap();
        assert!(received.len() <= max, "{} of {max}", received.len());
        received
    }

    /// Receives one message that is there or comes soon, and hides it for so long.
    pub(crate) async fn receive_one(&self, queue: &Arc<QueueFacts>, hidden_ms: u64) -> Received {
        let mut received = self.receive(queue, waiting(1, hidden_ms)).await;
        received.pop().expect("a message comes within the longest wait")
    }

    /// Receives until there were so many messages, one by one, so that they come in the queue's order;
    /// returns their bodies.
    pub(crate) async fn receive_bodies(
        &self,
        queue: &Arc<QueueFacts>,
        count: usize,
    ) -> Vec<String> {
        let mut bodies = Vec::new();
        while bodies.len() < count {
            bodies.push(body(&self.receive_one(queue, HIDDEN_MS).await));
        }
        bodies
    }

    /// Checks that there is nothing to be received just now.
    pub(crate) async fn expect_nothing(&self, queue: &Arc<QueueFacts>) {
        let received = self.receive(queue, at_once(10, HIDDEN_MS)).await;
        assert_eq!(received, [], "nothing is visible");
    }

    /// Receives one message that was received too often before: receives of its queue come to nothing, and bring it to the
    /// dead-letter queue. Such a receive may fail at that when the store is busy, and the next one does it.
    pub(crate) async fn receive_dead_letter(
        &self,
        queue: &Arc<QueueFacts>,
        dead: &Arc<QueueFacts>,
        hidden_ms: u64,
    ) -> Received {
        let receive = async || {
            self.expect_nothing(queue).await;
            self.receive(dead, Receive { wait_ms: SHORT_WAIT_MS, ..waiting(1, hidden_ms) }).await
        };
        let mut received = self.until("a dead letter", receive, |found| !found.is_empty()).await;
        received.remove(0)
    }

    /// Deletes a message.
    pub(crate) async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        delivery: &Delivery,
    ) -> ReceiptOutcome {
        let outcomes = self.store.delete(queue, vec![delivery.clone()]).await.unwrap();
        assert_eq!(outcomes.len(), 1);
        outcomes[0]
    }

    pub(crate) async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        delivery: &Delivery,
        timeout_ms: u64,
    ) -> ReceiptOutcome {
        let changes = vec![(delivery.clone(), timeout_ms)];
        let outcomes = self.store.change_visibility(queue, changes).await.unwrap();
        assert_eq!(outcomes.len(), 1);
        outcomes[0]
    }

    /// Looks until what is looked at is as it has to become.
    pub(crate) async fn until<T: std::fmt::Debug>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> T,
        is_so: impl Fn(&T) -> bool,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = look().await;
            if is_so(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "waited for {what}, but it is {seen:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Returns a receive that does not wait.
pub(crate) const fn at_once(max: usize, hidden_ms: u64) -> Receive {
    Receive { max, visibility_timeout_ms: hidden_ms, wait_ms: 0, attempt_id: None }
}

/// Returns a receive that waits for as long as one may.
pub(crate) const fn waiting(max: usize, hidden_ms: u64) -> Receive {
    Receive { max, visibility_timeout_ms: hidden_ms, wait_ms: WAIT_MS, attempt_id: None }
}

/// Returns a message of a standard queue.
pub(crate) fn message(body: &str) -> NewMessage {
    let body = Bytes::copy_from_slice(body.as_bytes());
    NewMessage { body, sender_id: "sender".into(), ..NewMessage::default() }
}

/// Returns a message of a FIFO queue.
pub(crate) fn fifo_message(group: &str, id: &str, body: &str) -> NewMessage {
    let (group_id, deduplication_id) = (Some(group.to_owned()), Some(id.to_owned()));
    NewMessage { group_id, deduplication_id, ..message(body) }
}

pub(crate) fn body(received: &Received) -> String {
    String::from_utf8(received.body.to_vec()).unwrap()
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn redrive_policy(dead_letters: &QueueRef, receives_max: u32) -> String {
    let QueueRef { account, name } = dead_letters;
    format!(
        r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:{account}:{name}","maxReceiveCount":{receives_max}}}"#
    )
}

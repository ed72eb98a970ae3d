//! From peers to exchanges: messages are popped, published, and acknowledged to their senders when the
//! store has them.
//!
//! While the broker takes no publishes nothing is popped: the mailbox fills, and the peers' credit
//! ends. Acknowledgements of a flow are cumulative, so batches are acknowledged strictly in order, and
//! after one that the store lost none ever is.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quelea_broker::Effect;
use quelea_cmq::{Message, Queue, Receipt};
use quelea_model::{Properties, Table, Value};
use quelea_node::{CoreHandle, CoreStopped, Promise, stopped};
use quelea_store::Ticket;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};

use crate::counters::{Cause, DatagramCounters};
use crate::publish::{Outcome, Outgoing, Publishers};
use crate::route::Routes;

/// A batch takes the core's thread for about a millisecond at most.
const BATCH_MESSAGES_MAX: usize = 1_024;

/// Bytes of a batch, but for its last message.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Batches that wait for the store. What they hold is in the broker's memory already, and bounded
/// there.
const BATCHES_UNACKNOWLEDGED_MAX: usize = 1_024;

/// While the broker has too much to write, or no connection for us, we look again after so long.
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// How long a stop waits for what is published to become safe.
const END_MAX: Duration = Duration::from_secs(1);

/// What becomes of everything that is pushed to the listener.
pub(crate) struct Intake {
    pub(crate) core: CoreHandle,
    pub(crate) queue: Arc<Queue>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) user: Arc<str>,
    pub(crate) loopback_only: bool,
    pub(crate) body_bytes_max: usize,
    pub(crate) counters: Arc<DatagramCounters>,
}

/// A batch that is published and not yet safe.
struct Unacknowledged {
    promise: Promise,
    receipts: Vec<Receipt>,
}

/// What several turns share.
struct Taking {
    publishers: Arc<Mutex<Publishers>>,
    /// The broker's word for our connections.
    effects: UnboundedReceiver<Effect>,
    known: SenderProperties,
    /// What was logged: once for each cause of each route.
    logged: HashSet<(Cause, Option<usize>)>,
    unacknowledged: Sender<Unacknowledged>,
}

impl Intake {
    /// Runs until `stop` changes, the endpoint is closed, or the core stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let (unacknowledged, promises) = channel(BATCHES_UNACKNOWLEDGED_MAX);
        let acknowledging = spawn_local(acknowledge(Arc::clone(&self.queue), promises));
        let mut taking = self.taking(unacknowledged);
        loop {
            let taken = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(effect) = taking.effects.recv() => self.on_effect(&taking, effect).await,
                message = self.queue.pop_async() => match message {
                    Some(message) => self.take(&mut taking, message, &mut stop).await,
                    None => break,
                },
            };
            if taken.is_err() {
                break;
            }
        }
        self.end(taking, acknowledging).await;
    }

    fn taking(&self, unacknowledged: Sender<Unacknowledged>) -> Taking {
        let local = self.queue.endpoint().local_addr().to_string();
        let (sender, effects) = unbounded_channel();
        let publishers = Publishers::new(Arc::clone(&self.user), local, sender);
        Taking {
            publishers: Arc::new(Mutex::new(publishers)),
            effects,
            known: SenderProperties::default(),
            logged: HashSet::new(),
            unacknowledged,
        }
    }

    async fn end(&self, taking: Taking, acknowledging: JoinHandle<()>) {
        let Taking { publishers, effects, unacknowledged, .. } = taking;
        drop(unacknowledged);
        // What is published becomes safe soon, and then its sender need not repeat it; but not while
        // the disk is full.
        let _ = tokio::time::timeout(END_MAX, acknowledging).await;
        let closed = self.core.call(move |core| lock(&publishers).close_all(core)).await;
        drop((closed, effects));
    }

    /// Closes one of our connections if the broker wants that: its user or its virtual host was
    /// deleted.
    async fn on_effect(&self, taking: &Taking, effect: Effect) -> Result<(), CoreStopped> {
        if let Effect::CloseConnection { connection, reason } = effect {
            tracing::info!(reason = reason.text(), "the broker closes a connection of CMQ's front");
            let publishers = Arc::clone(&taking.publishers);
            self.core.call(move |core| lock(&publishers).close(core, connection)).await?;
        }
        Ok(())
    }

    /// Takes a message and what is here behind it, and publishes them.
    async fn take(
        &self,
        taking: &mut Taking,
        first: Message,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), CoreStopped> {
        let (mut batch, mut receipts, mut looked_at, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
        let mut next = Some(first);
        while let Some(message) = next {
            // Those that are dropped count, too: they may come without an end.
            looked_at += 1;
            bytes += message.bytes.len();
            if let Some(receipt) = self.add(taking, message, &mut batch) {
                receipts.push(receipt);
            }
            let has_room = looked_at < BATCH_MESSAGES_MAX && bytes < BATCH_BYTES_MAX;
            next = if has_room { self.queue.try_pop() } else { None };
        }
        let Some((outcome, promise)) = self.publish(taking, batch.into(), stop).await? else {
            return Ok(());
        };
        self.count(taking, &outcome);
        let promised = Unacknowledged { promise, receipts };
        // The other end is gone after the store has failed: then nothing is acknowledged any more.
        let _ = taking.unacknowledged.send(promised).await;
        Ok(())
    }

    /// Puts a message into the batch, unless it cannot be published anyway; returns what acknowledges
    /// it.
    fn add(
        &self,
        taking: &mut Taking,
        message: Message,
        batch: &mut Vec<Outgoing>,
    ) -> Option<Receipt> {
        self.counters.received.fetch_add(1, Relaxed);
        let (receipt, from) = (message.receipt(), message.from);
        if self.loopback_only && !from.ip().to_canonical().is_loopback() {
            let user = &self.user;
            let reason = format!("user '{user}' may come from this machine only, not from {from}");
            self.drop_message(taking, None, Cause::NotLoopback, &reason);
            return None;
        }
        let route = self.routes.find(message.mailbox.0);
        let (bytes, limit) = (message.bytes.len(), self.body_bytes_max);
        if bytes > limit {
            let reason = format!("it has {bytes} bytes, the broker's limit is {limit}");
            self.drop_message(taking, Some(route), Cause::TooLarge, &reason);
            return Some(receipt);
        }
        let persistent = self.routes.get(route).persistent;
        let properties = taking.known.properties(&message, persistent);
        let mailbox = message.mailbox.0;
        batch.push(Outgoing { route, mailbox, properties, body: message.bytes });
        Some(receipt)
    }

    /// Publishes a batch as soon as the broker takes it; `None` if the front stops before.
    async fn publish(
        &self,
        taking: &mut Taking,
        batch: Arc<[Outgoing]>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<(Outcome, Promise)>, CoreStopped> {
        loop {
            let batch = Arc::clone(&batch);
            let (publishers, routes) = (Arc::clone(&taking.publishers), Arc::clone(&self.routes));
            let begun = self.core.begin(move |core| {
                if !core.broker.accepts_publishes() {
                    return (None, Ticket::NONE);
                }
                lock(&publishers)
                    .publish(core, &routes, &batch)
                    .map_or((None, Ticket::NONE), |(outcome, ticket)| (Some(outcome), ticket))
            });
            if let (Some(outcome), promise) = begun.await? {
                return Ok(Some((outcome, promise)));
            }
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(None),
                // The connection that is missing may be the one that is to be closed.
                Some(effect) = taking.effects.recv() => self.on_effect(taking, effect).await?,
                () = tokio::time::sleep(RETRY_AFTER) => {}
            }
        }
    }

    fn count(&self, taking: &mut Taking, outcome: &Outcome) {
        self.counters.published.fetch_add(outcome.published, Relaxed);
        for dropped in &outcome.dropped {
            self.drop_message(taking, Some(dropped.route), dropped.cause, &dropped.reason);
        }
    }

    /// Counts it, and says so the first time.
    fn drop_message(&self, taking: &mut Taking, route: Option<usize>, cause: Cause, reason: &str) {
        self.counters.drop_messages(cause, 1);
        if taking.logged.insert((cause, route)) {
            let cause = cause.name();
            tracing::warn!(
                cause,
                reason,
                "a message of a CMQ peer is dropped; further ones of this kind are only counted"
            );
        }
    }
}

/// Acknowledges batches in their order, each when the store has it.
async fn acknowledge(queue: Arc<Queue>, mut promises: Receiver<Unacknowledged>) {
    while let Some(Unacknowledged { promise, receipts }) = promises.recv().await {
        if promise.kept().await.is_err() {
            // The store failed, or the core stops: the senders have to repeat all of it.
            tracing::warn!("messages of CMQ peers are not acknowledged any more");
            return;
        }
        for receipt in receipts {
            queue.acknowledge(receipt);
        }
    }
}

/// The properties of the last message, which are mostly those of the next.
#[derive(Debug, Default)]
struct SenderProperties(Option<((SocketAddr, u64, u64, bool), Bytes)>);

impl SenderProperties {
    fn properties(&mut self, message: &Message, persistent: bool) -> Bytes {
        let (from, session, mailbox) = (message.from, message.session, message.mailbox.0);
        let wanted = (from, session, mailbox, persistent);
        match &self.0 {
            Some((known, properties)) if *known == wanted => properties.clone(),
            _ => {
                let properties = properties(from, session, mailbox, persistent);
                self.0 = Some((wanted, properties.clone()));
                properties
            }
        }
    }
}

/// Returns the properties of a message: who pushed it, and to which mailbox, as headers.
fn properties(from: SocketAddr, session: u64, mailbox: u64, persistent: bool) -> Bytes {
    // AMQP's integers are signed: a mailbox above them is written as text.
    let number =
        i64::try_from(mailbox).map_or_else(|_| Value::text(&mailbox.to_string()), Value::I64);
    let headers = Table::from_iter([
        ("x-cmq-from", Value::text(&from.to_string())),
        ("x-cmq-mailbox", number),
        ("x-cmq-session", Value::text(&format!("{session:016x}"))),
    ]);
    let properties = Properties {
        headers: Some(headers),
        delivery_mode: Some(if persistent { 2 } else { 1 }),
        ..Properties::default()
    };
    properties.to_bytes()
}

/// Locks the publishers. Only the core's thread takes the lock, one call after the other.
fn lock(publishers: &Mutex<Publishers>) -> std::sync::MutexGuard<'_, Publishers> {
    publishers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use quelea_cmq::{Config, Endpoint, MailboxOptions};
    use quelea_model::PropertyView;

    use super::*;
    use crate::publish::tests::{node, outgoing, route};

    /// Long for a loaded machine; nothing here takes as long.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_deleted_vhosts_connection_is_given_back_while_a_batch_waits() {
        let name = format!("quelea-cmq-front-intake-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let node = node(&directory);
        let core = node.handle();
        let made = core.call(|core| {
            let now = core.now();
            core.broker.put_vhost(now, "other").unwrap();
            core.broker.set_permissions(now, "guest", "other", ".*", ".*", ".*").unwrap();
        });
        made.await.unwrap();
        let endpoint = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let intake = Intake {
            core: core.clone(),
            queue: Arc::new(endpoint.queue_of_others(MailboxOptions::default()).unwrap()),
            routes: Arc::new(Routes::new(vec![route("other")], route("/"))),
            user: "guest".into(),
            loopback_only: false,
            body_bytes_max: 1_024,
            counters: Arc::default(),
        };
        let (unacknowledged, _promises) = channel(1);
        let mut taking = intake.taking(unacknowledged);
        let (_stop, mut stop) = watch::channel(false);
        let first = intake.publish(&mut taking, Arc::new([outgoing(0)]), &mut stop).await;
        assert!(first.unwrap().is_some());
        let delete = |core: &mut quelea_node::Core| {
            core.broker.delete_vhost(core.now(), "other").unwrap();
        };
        core.call(delete).await.unwrap();
        let publish = intake.publish(&mut taking, Arc::new([outgoing(1)]), &mut stop);
        let published = tokio::time::timeout(PATIENCE, publish).await.expect("a connection");
        assert!(published.unwrap().is_some());
        let publishers = taking.publishers;
        core.call(move |core| lock(&publishers).close_all(core)).await.unwrap();
        core.call(quelea_node::Core::begin_stop).await.unwrap();
        let _ = node.join();
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_headers_say_who_pushed_and_to_which_mailbox() {
        let from = "[::1]:5000".parse().unwrap();
        let bytes = properties(from, 0xabc, 7, true);
        PropertyView::new(&bytes).check().unwrap();
        let decoded = Properties::decode(&bytes).unwrap();
        assert_eq!(decoded.delivery_mode, Some(2));
        let headers = decoded.headers.unwrap();
        assert_eq!(headers.get("x-cmq-from").unwrap().as_text(), Some("[::1]:5000"));
        assert_eq!(headers.get("x-cmq-mailbox"), Some(&Value::I64(7)));
        assert_eq!(headers.get("x-cmq-session").unwrap().as_text(), Some("0000000000000abc"));
        let bytes = properties(from, 0, u64::MAX, false);
        let decoded = Properties::decode(&bytes).unwrap();
        let headers = decoded.headers.unwrap();
        assert_eq!(headers.get("x-cmq-mailbox").unwrap().as_text(), Some("18446744073709551615"));
        assert_eq!(decoded.delivery_mode, Some(1));
    }
}

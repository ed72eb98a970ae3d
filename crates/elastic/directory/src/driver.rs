//! The directory's thread: feeds the state machine and carries out its effects.

pub(crate) mod message;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quelea_elastic_core::directory::{
    Address, Definition, Directory, Effect, Input, Peer, ProviderOutcome, RelayHandle, RelaySpec,
};
use quelea_elastic_core::ownership::Input as OwnershipInput;
use quelea_elastic_core::ownership::keys::Shard;
use quelea_elastic_proto::{Frame, RelayId, Time};
use quelea_net::SignInFailures;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use self::message::{FrameSender, Message};
use crate::counters::{DirectoryCounters, Totals};
use crate::event_log::EventLog;
use crate::ownership_command::Command;
use crate::provider::{Provider, ProviderError, ProviderEvent};
use crate::refusal::count_refusal;
use crate::relay_token::TokenSecret;

/// From asking a relay to end to making it: it has drained by then, or was given up.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long relays may take to end, and their ends to be on record, when the directory stops and they with it, or their queue
/// is deleted.
pub(crate) const RELAYS_STOP_MAX: Duration = STOP_GRACE.saturating_add(Duration::from_secs(1));
/// Messages that are taken before what they caused is carried out: bounds a turn.
const TURN_MESSAGES_MAX: usize = 256;
/// How often queues that have changed are shown to the provider.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// All that the thread has.
pub(crate) struct Driver {
    pub(crate) core: Directory,
    pub(crate) events: EventLog,
    pub(crate) counters: Arc<DirectoryCounters>,
    /// This directory's address.
    pub(crate) advertise: String,
    /// Of queues that are not defined.
    pub(crate) default: Definition,
    started: Instant,
    peers: BTreeMap<Peer, (Address, FrameSender)>,
    provider: Arc<dyn Provider>,
    ownership: UnboundedSender<Command>,
    inbox: Sender<Message>,
    /// Relays are ended when the directory is: those of the queues that it owns.
    stop_relays: bool,
    /// They are being ended, until then.
    stopping_until: Option<Instant>,
    secret: TokenSecret,
    /// Relays with a wrong token.
    failures: SignInFailures,
    /// What the provider was shown of each queue: its generation and numbers of clients.
    published: BTreeMap<String, (u64, usize, usize, bool)>,
}

/// What a driver is made of.
pub(crate) struct DriverParts {
    pub(crate) core: Directory,
    pub(crate) counters: Arc<DirectoryCounters>,
    pub(crate) advertise: String,
    pub(crate) default: Definition,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) ownership: UnboundedSender<Command>,
    pub(crate) inbox: Sender<Message>,
    pub(crate) stop_relays: bool,
    pub(crate) secret: TokenSecret,
    pub(crate) failures: SignInFailures,
}

impl Driver {
    pub(crate) fn new(parts: DriverParts) -> Self {
        let DriverParts {
            core,
            counters,
            advertise,
            default,
            provider,
            ownership,
            inbox,
            stop_relays,
            secret,
            failures,
        } = parts;
        Self {
            core,
            events: EventLog::new(),
            counters,
            advertise,
            default,
            started: Instant::now(),
            peers: BTreeMap::new(),
            provider,
            ownership,
            inbox,
            stop_relays,
            stopping_until: None,
            secret,
            failures,
            published: BTreeMap::new(),
        }
    }

    /// Runs until [`Message::Stop`], and then until the relays have ended that are to; returns the queues that it owned.
    pub(crate) async fn run(mut self, mut messages: Receiver<Message>) -> BTreeSet<String> {
        let mut publish = tokio::time::interval(PUBLISH_EVERY);
        publish.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self
                .stopping_until
                .is_some_and(|until| self.core.has_stopped() || until <= Instant::now())
            {
                return self.owned();
            }
            let deadline = self.core.next_deadline().map(|at| self.instant(at));
            let deadline = deadline.into_iter().chain(self.stopping_until).min();
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return self.owned() };
                    let mut message = Some(message);
                    for _ in 0..TURN_MESSAGES_MAX {
                        match message.take() {
                            Some(Message::Stop(answer)) if !self.stop_relays => {
                                return self.stop(answer);
                            }
                            Some(next) => self.handle_message(next),
                            None => break,
                        }
                        message = messages.try_recv().ok();
                    }
                    match message {
                        Some(Message::Stop(answer)) if !self.stop_relays => {
                            return self.stop(answer);
                        }
                        Some(last) => self.handle_message(last),
                        None => {}
                    }
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    let now = self.now();
                    self.core.handle(now, Input::Tick);
                }
                _ = publish.tick() => self.publish_status(),
            }
            self.apply_effects();
        }
    }

    fn handle_message(&mut self, message: Message) {
        match message {
            // Dropping the sender ends the connection.
            Message::Connected { .. } if self.stopping_until.is_some() => {}
            Message::Connected { peer, role, address, sender } => {
                self.peers.insert(peer, (address, sender));
                self.counters.connected(role);
                self.input(Input::Connected { peer, role, address });
            }
            Message::Received { peer, frame } => self.received(peer, frame),
            Message::Gone { peer } => {
                self.peers.remove(&peer);
                self.input(Input::Disconnected { peer });
            }
            Message::Input(Input::Owned { queue, fence, record, running }) => {
                let name = queue.clone();
                self.input(Input::Owned { queue, fence, record, running });
                if !self.core.owns(&name) {
                    self.send_to_ownership(OwnershipInput::Declined { queue: name });
                }
            }
            Message::Input(input) => self.input(input),
            Message::ShardLost { shard, owner } => self.shard_lost(shard, owner.as_ref()),
            Message::Provider(ProviderEvent::Ended(ended)) => self.input(Input::Provider {
                queue: ended.queue,
                relay: ended.handle.relay,
                outcome: ProviderOutcome::Ended(ended.cause),
            }),
            Message::Provider(ProviderEvent::Define { queue, definition }) => {
                self.input(Input::Define { queue, definition });
            }
            Message::Provider(ProviderEvent::Delete { queue }) => {
                self.input(Input::Delete { queue });
            }
            Message::Call(call) => {
                // The caller sees nothing that is still to be done.
                self.apply_effects();
                call(self);
            }
            Message::Stop(answer) => self.begin_stop(answer),
        }
    }

    fn received(&mut self, peer: Peer, frame: Frame) {
        let frame = match frame {
            Frame::Register(register) => match self.secret.check(register) {
                Ok(register) => Frame::Register(register),
                Err(refusal) => {
                    if let Some((address, _)) = self.peers.get(&peer) {
                        count_refusal(&self.failures, *address, "relay token", &refusal);
                    }
                    self.send(peer, Frame::Error(refusal));
                    // Its task writes what waits, and ends.
                    self.peers.remove(&peer);
                    return;
                }
            },
            frame => frame,
        };
        self.input(Input::Received { peer, frame });
    }

    /// Hands the state machine an input.
    pub(crate) fn input(&mut self, input: Input) {
        let now = self.now();
        self.core.handle(now, input);
    }

    fn shard_lost(&mut self, shard: Shard, owner: Option<&String>) {
        let lost = self.core.queue_names().filter(|queue| Shard::of(queue) == shard);
        let lost: Vec<String> = lost.map(str::to_owned).collect();
        for queue in lost {
            self.input(Input::Disowned { queue, owner: owner.cloned() });
        }
    }

    fn apply_effects(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Send { peer, frame } => self.send(peer, frame),
                Effect::Close { peer } => {
                    // Its task writes what waits, and ends.
                    self.peers.remove(&peer);
                }
                Effect::Claim { queue } => self.send_to_ownership(OwnershipInput::Claim { queue }),
                Effect::Save { queue, save, fence, record } => {
                    self.counters.saved();
                    self.send_to_ownership(OwnershipInput::Write {
                        queue,
                        save,
                        fence,
                        record: Some(record),
                    });
                }
                Effect::Remove { queue, fence } => {
                    self.forget(queue.clone());
                    self.send_to_ownership(OwnershipInput::Write {
                        queue,
                        save: 0,
                        fence,
                        record: None,
                    });
                }
                Effect::StartRelay { queue, spec } => self.start_relay(queue, spec),
                Effect::DrainRelay { queue, relay, name, deadline_ms } => {
                    let handle = RelayHandle { relay, request: String::new(), name };
                    self.drain_relay(queue, handle, Duration::from_millis(deadline_ms));
                }
                Effect::CheckRelay { queue, relay, name } => self.check_relay(queue, relay, name),
                Effect::StopRelay { queue, relay, name } => self.stop_relay(queue, relay, name),
                Effect::Event(event) => {
                    self.counters.event(event.kind);
                    self.events.add(event);
                }
            }
        }
    }

    fn send(&mut self, peer: Peer, frame: Frame) {
        let Some((_, sender)) = self.peers.get(&peer) else { return };
        match sender.try_send(frame) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                tracing::warn!(peer = peer.0, "a peer does not read what it is sent: disconnected");
                self.peers.remove(&peer);
            }
            // Its end is on its way here.
            Err(TrySendError::Closed(_)) => {}
        }
    }

    fn send_to_ownership(&self, input: OwnershipInput) {
        // It only fails while both stop.
        let _ = self.ownership.send(Command::Input(input));
    }

    fn start_relay(&self, queue: String, spec: RelaySpec) {
        self.counters.relay_start();
        let (provider, inbox) = (Arc::clone(&self.provider), self.inbox.clone());
        let counters = Arc::clone(&self.counters);
        tokio::spawn(async move {
            let outcome = match provider.start(&spec).await {
                Ok(handle) => ProviderOutcome::Started(handle),
                Err(error) => {
                    counters.provider_failed();
                    tracing::warn!(queue, relay = spec.relay.0, %error, "a relay is not started");
                    match error {
                        ProviderError::Unavailable { .. } => {
                            ProviderOutcome::Unknown(error.to_string())
                        }
                        _ => ProviderOutcome::Failed(error.to_string()),
                    }
                }
            };
            let input = Input::Provider { queue, relay: spec.relay, outcome };
            let _ = inbox.send(Message::Input(input)).await;
        });
    }

    fn forget(&self, queue: String) {
        let provider = Arc::clone(&self.provider);
        let counters = Arc::clone(&self.counters);
        tokio::spawn(async move {
            if let Err(error) = provider.forget(&queue).await {
                counters.provider_failed();
                tracing::warn!(queue, %error, "the provider keeps what it has of a deleted queue");
            }
        });
    }

    fn drain_relay(&self, queue: String, handle: RelayHandle, deadline: Duration) {
        let provider = Arc::clone(&self.provider);
        let counters = Arc::clone(&self.counters);
        tokio::spawn(async move {
            // The relay is drained all the same: the provider only did not show it.
            if let Err(error) = provider.drain(&queue, &handle, deadline + STOP_GRACE).await {
                counters.provider_failed();
                tracing::warn!(queue, relay = handle.relay.0, %error, "a drain is not shown");
            }
        });
    }

    fn check_relay(&self, queue: String, relay: RelayId, name: String) {
        let (provider, inbox) = (Arc::clone(&self.provider), self.inbox.clone());
        let counters = Arc::clone(&self.counters);
        tokio::spawn(async move {
            let handle = RelayHandle { relay, request: String::new(), name };
            match provider.has_ended(&queue, &handle).await {
                Ok(true) => {
                    let cause = format!("{} is not there any more", handle.name);
                    let outcome = ProviderOutcome::Ended(cause);
                    let input = Input::Provider { queue, relay, outcome };
                    let _ = inbox.send(Message::Input(input)).await;
                }
                // It may register yet; its silence is waited for.
                Ok(false) => {}
                Err(error) => {
                    counters.provider_failed();
                    tracing::warn!(queue, relay = relay.0, %error, "nothing is known of a relay");
                }
            }
        });
    }

    fn stop_relay(&self, queue: String, relay: RelayId, name: String) {
        let (provider, inbox) = (Arc::clone(&self.provider), self.inbox.clone());
        let counters = Arc::clone(&self.counters);
        tokio::spawn(async move {
            let handle = RelayHandle { relay, request: String::new(), name };
            let outcome = match provider.stop(&queue, &handle, STOP_GRACE).await {
                // The provider reports its end, if it had one to report.
                Ok(()) => match provider.list(Some(&queue)).await {
                    Ok(running) if running.iter().any(|one| one.handle.relay == relay) => return,
                    Ok(_) => ProviderOutcome::Ended("it was gone already".to_owned()),
                    Err(_) => return,
                },
                Err(error) => {
                    counters.provider_failed();
                    tracing::warn!(queue, relay = relay.0, %error, "a relay is not stopped");
                    ProviderOutcome::Failed(error.to_string())
                }
            };
            let _ = inbox.send(Message::Input(Input::Provider { queue, relay, outcome })).await;
        });
    }

    /// Shows the provider, and counts, what has changed.
    fn publish_status(&mut self) {
        let now = self.now();
        let names: Vec<String> = self.core.queue_names().map(str::to_owned).collect();
        self.published.retain(|name, _| names.binary_search(name).is_ok());
        let mut totals = Totals::of_peers(self.peers.len());
        for name in names {
            let Some(status) = self.core.queue(now, &name) else { continue };
            totals.add(&status);
            let seen = (status.generation, status.producers, status.listeners, status.minimal);
            if self.published.get(&name) != Some(&seen) || status.load.messages_in > 0.0 {
                self.provider.show(&status);
                self.published.insert(name, seen);
            }
        }
        self.counters.totals(totals);
    }

    fn owned(&self) -> BTreeSet<String> {
        let names = self.core.queue_names().filter(|queue| !self.core.is_claiming(queue));
        names.map(str::to_owned).collect()
    }

    /// Says goodbye to all peers. Returns the queues that are owned; nothing more is decided.
    fn stop(mut self, answer: oneshot::Sender<()>) -> BTreeSet<String> {
        self.send_goodbye(answer);
        self.owned()
    }

    /// Relays end while nobody can lead their clients elsewhere: so these are left to the relays, which write
    /// out what they have.
    fn begin_stop(&mut self, answer: oneshot::Sender<()>) {
        self.send_goodbye(answer);
        self.stopping_until = Some(Instant::now() + RELAYS_STOP_MAX);
        self.input(Input::Stop);
    }

    /// Connections end with what waits for them written.
    fn send_goodbye(&mut self, answer: oneshot::Sender<()>) {
        for (_, sender) in self.peers.values() {
            // A peer that does not read gets no BYE.
            let _ = sender.try_send(Frame::Bye("the directory stops".to_owned()));
        }
        self.peers.clear();
        let _ = answer.send(());
    }

    pub(crate) fn now(&self) -> Time {
        let micros = self.started.elapsed().as_micros();
        Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    fn instant(&self, at: Time) -> Instant {
        self.started + Duration::from_micros(at.as_micros())
    }

    /// Returns how long ago a moment of the state machine was.
    pub(crate) fn age(&self, at: Time) -> Duration {
        Duration::from_micros(self.now().since_us(at))
    }
}

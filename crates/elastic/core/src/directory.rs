//! The directory: knows each queue's relays and clients, and carries out plans: relocation, scale in and
//! out, failover. A state machine: [`Input`]s go in with the time, [`Effect`]s come out.
//!
//! Start with [`Directory::handle`]; each noun of a queue has its file: [`queue`], [`relay`] with its
//! [`lifecycle`], [`producer`] with its [`relocation`], [`listener`]; what happens to them is in
//! [`failover`], [`drain`], [`monitor`] and [`planning`].

mod context;
mod definition;
mod first_use;
mod frames;
mod io;
pub mod limits;
mod ownership;
mod queue;
mod settings;
mod status;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use quelea_elastic_proto::frame::Role;
use quelea_elastic_proto::{ClientId, RelayId, Time};

pub use definition::{Definition, DefinitionError, Relocation};
pub use first_use::FirstUseLimits;
pub use io::{
    Address, Effect, Event, Input, Peer, ProviderOutcome, RelayHandle, RelaySpec, SaveError,
};
pub use settings::Settings;
pub use status::{ListenerStatus, Logged, ProducerStatus, QueueStatus, RelayStatus};

use self::context::Context;
use self::first_use::FirstUses;
use self::ownership::QueueEntry;
use self::queue::Queue;
use crate::plan::{Plan, Planned};

/// A directory: all queues that it owns or claims, and all connections.
pub struct Directory {
    settings: Settings,
    queues: BTreeMap<String, QueueEntry>,
    connections: BTreeMap<Peer, Connection>,
    /// Those that share the queues, this one first; empty if that is not known.
    directories: Arc<[String]>,
    /// The first connection to which they are still to be announced.
    announcing: Option<Peer>,
    /// The next deadline of each owned queue, and of each that somebody waits for.
    deadlines: BTreeSet<(Time, String)>,
    /// See [`Input::Stop`].
    stopping: bool,
    first_uses: FirstUses,
    /// Of all queues.
    relays: usize,
    /// The first relay's number of a queue made from now on: above those of all deleted ones, since a provider
    /// takes a request that it has ended, of a queue of the same name and fence, for a late repetition.
    first_relay: u64,
    effects: VecDeque<Effect>,
}

/// A connection, and what it is to which queues.
struct Connection {
    role: Role,
    address: Address,
    /// Queues that its clients use, or for whose claim its frames wait.
    queues: BTreeSet<String>,
    /// The relay at its other end.
    relay: Option<(String, RelayId)>,
}

impl Directory {
    /// Returns a directory that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            queues: BTreeMap::new(),
            connections: BTreeMap::new(),
            directories: Arc::default(),
            announcing: None,
            deadlines: BTreeSet::new(),
            stopping: false,
            first_uses: FirstUses::default(),
            relays: 0,
            first_relay: 1,
            effects: VecDeque::new(),
        }
    }

    /// Takes what happened. Effects are then to be had by [`Self::poll_effect`], until there is none.
    pub fn handle(&mut self, now: Time, input: Input) {
        if self.stopping && input.begins_something() {
            return;
        }
        match input {
            Input::Connected { peer, role, address } => {
                let connection = Connection { role, address, queues: BTreeSet::new(), relay: None };
                self.connected(now, peer, connection);
            }
            Input::Received { peer, frame } => self.received(now, peer, frame),
            Input::Disconnected { peer } => self.disconnected(now, peer),
            Input::Owned { queue, fence, record, running } => {
                self.owned(now, queue, fence, record.as_deref(), &running);
            }
            Input::Disowned { queue, owner } => self.disowned(now, &queue, owner.as_deref()),
            Input::Saved { queue, save, result } => self.saved(now, &queue, save, result),
            Input::Provider { queue, relay, outcome } => {
                self.step(now, &queue, |queue, cx| queue.provider(cx, relay, outcome));
            }
            Input::Directories(directories) => self.directories_changed(now, directories),
            Input::Define { queue, definition } => self.define(now, queue, definition),
            Input::Delete { queue } => self.delete(now, queue),
            Input::Move { queue, producer, to } => {
                self.step(now, &queue, |queue, cx| queue.move_for_operator(cx, producer, to));
            }
            Input::Act { queue, action, reason } => {
                let planned = Planned { action, reason };
                self.step(now, &queue, |queue, cx| queue.act(cx, planned));
            }
            Input::Stop => self.stop(now),
            Input::Tick => self.tick(now),
        }
    }

    /// Each queue that is due, once: one that stayed due would keep the others from everything for ever.
    fn tick(&mut self, now: Time) {
        self.announce_directories(now);
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        for name in due.map(|(_, name)| name.clone()).collect::<Vec<_>>() {
            match self.queues.get(&name) {
                Some(QueueEntry::Claiming(_)) => self.redirect_waiting(now, &name),
                _ => drop(self.step(now, &name, Queue::tick)),
            }
        }
    }

    fn stop(&mut self, now: Time) {
        self.stopping = true;
        for name in self.queues.keys().cloned().collect::<Vec<_>>() {
            self.step(now, &name, Queue::stop);
        }
    }

    /// Returns, after [`Input::Stop`], whether no queue that is owned here has a relay left, and
    /// the store knows that.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.stopping
            && self.queues.values().all(|queue| match queue {
                QueueEntry::Owned(queue) => queue.relays.is_empty() && queue.is_saved(),
                QueueEntry::Claiming(_) => true,
            })
    }

    /// Returns the next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns when [`Input::Tick`] is due, if no other input comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let announcing = self.announcing.map(|_| Time::ZERO);
        announcing.or_else(|| self.deadlines.first().map(|(at, _)| *at))
    }

    /// Returns `host:port` of those that share the queues, this one first; empty if that is not
    /// known.
    #[must_use]
    pub fn directories(&self) -> &[String] {
        &self.directories
    }

    /// Returns the names of all queues that this directory owns or claims, in order.
    pub fn queue_names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// Returns the same as [`Self::queue_names`], of those after one.
    pub fn queue_names_after(&self, after: Option<&str>) -> impl Iterator<Item = &str> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.queues.range::<str, _>((from, Bound::Unbounded)).map(|(name, _)| name.as_str())
    }

    /// Returns whether this directory owns the queue.
    #[must_use]
    pub fn owns(&self, name: &str) -> bool {
        self.owned_queue(name).is_some()
    }

    /// Returns whether this directory is about to own the queue.
    #[must_use]
    pub fn is_claiming(&self, name: &str) -> bool {
        self.queues.contains_key(name) && self.owned_queue(name).is_none()
    }

    /// Returns the status of one queue, with its relays; `None` if this directory does not own it.
    #[must_use]
    pub fn queue(&self, now: Time, name: &str) -> Option<QueueStatus> {
        Some(self.owned_queue(name)?.status(now))
    }

    /// Returns how a queue is defined that is owned here; of one that is being deleted, how it was since.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        let queue = self.owned_queue(name)?;
        if queue.deleting { queue.successor.as_ref() } else { Some(&queue.definition) }
    }

    /// Returns whether the queue is owned here and the store has its record as it is now: of one that is being
    /// deleted, that it is.
    #[must_use]
    pub fn is_recorded(&self, name: &str) -> bool {
        self.owned_queue(name).is_some_and(Queue::is_saved)
    }

    /// Returns whether the queue is owned here and the store has all that it has to know of it.
    #[must_use]
    pub fn is_saved(&self, name: &str) -> bool {
        self.owned_queue(name).is_some_and(|queue| queue.successor.is_none() && queue.is_saved())
    }

    /// Returns a queue's producers, by id, from the first one above `after`, at most `limit`.
    #[must_use]
    pub fn producers(
        &self,
        name: &str,
        after: Option<ClientId>,
        limit: usize,
    ) -> Vec<ProducerStatus> {
        let Some(queue) = self.owned_queue(name) else { return Vec::new() };
        let producers = queue.producers.range((above(after), Bound::Unbounded));
        producers.take(limit).map(|(id, producer)| producer.status(*id)).collect()
    }

    /// Returns a queue's listeners, by id, from the first one above `after`, at most `limit`.
    #[must_use]
    pub fn listeners(
        &self,
        name: &str,
        after: Option<ClientId>,
        limit: usize,
    ) -> Vec<ListenerStatus> {
        let Some(queue) = self.owned_queue(name) else { return Vec::new() };
        let listeners = queue.listeners.range((above(after), Bound::Unbounded));
        listeners.take(limit).map(|(id, listener)| listener.status(*id)).collect()
    }

    /// Returns a queue's events with a number above `after`, oldest first. Only the newest
    /// [`limits::EVENTS_PER_QUEUE_MAX`] are kept.
    pub fn events(&self, name: &str, after: u64) -> impl Iterator<Item = &Logged> {
        self.owned_queue(name).into_iter().flat_map(move |queue| queue.events.after(after))
    }

    /// Returns the settings that it was made with, with the directories that there are now.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what the planner would do about the queue now if it were defined so, and why;
    /// nothing of it is done.
    #[must_use]
    pub fn dry_run(&self, now: Time, name: &str, definition: &Definition) -> Option<Plan> {
        let cost = self.settings.relay_cost_per_hour_micros;
        Some(self.owned_queue(name)?.dry_run(now, definition, cost))
    }

    /// Returns the producer that an operator's move would move, and where to.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn check_move(
        &self,
        name: &str,
        producer: Option<ClientId>,
        to: Option<RelayId>,
    ) -> Result<(ClientId, RelayId), String> {
        let queue = self.owned_queue(name).ok_or_else(|| format!("queue {name} is not here"))?;
        queue.check_move(producer, to)
    }

    /// Returns how many connections it knows of.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.connections.len()
    }

    fn owned_queue(&self, name: &str) -> Option<&Queue> {
        match self.queues.get(name)? {
            QueueEntry::Owned(queue) => Some(queue),
            QueueEntry::Claiming(_) => None,
        }
    }

    fn context(&mut self, now: Time) -> Context<'_> {
        let Self { settings, effects, relays, .. } = self;
        Context { now, settings, effects, relays_elsewhere: *relays }
    }

    /// Takes one step of an owned queue, with what follows each: the record is written if it
    /// changed, the deadline is set anew, a queue whose record is removed is forgotten. Returns what
    /// the step returned; `None` if the queue is not owned here.
    fn step<R>(
        &mut self,
        now: Time,
        name: &str,
        step: impl FnOnce(&mut Queue, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let Some(QueueEntry::Owned(queue)) = self.queues.get_mut(name) else { return None };
        let Self { settings, effects, .. } = self;
        let relays_elsewhere = self.relays - queue.relays.len();
        let mut cx = Context { now, settings, effects, relays_elsewhere };
        queue.forgive_pause(&mut cx);
        let result = step(queue, &mut cx);
        queue.begin_anew(&mut cx);
        queue.save(&mut cx);
        self.relays = relays_elsewhere + queue.relays.len();
        let is_defined = !queue.is_first_use();
        let at = queue.deadline();
        if at != queue.scheduled_at {
            self.deadlines.remove(&(queue.scheduled_at, name.to_owned()));
            queue.scheduled_at = at;
            self.deadlines.insert((at, name.to_owned()));
        }
        let is_removed = queue.is_removed();
        if is_defined || queue.is_gone() {
            self.first_uses.forget(name);
        }
        if is_removed {
            self.remove(name);
        }
        Some(result)
    }
}

fn above(after: Option<ClientId>) -> Bound<ClientId> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

//! The directory: knows each queue's relays and clients, and carries out plans: relocation, scale in and
//! out, failover. A state machine: [`Input`]s go in with the time, [`Effect`]s come out.

mod definition;
mod io;
pub mod limits;
mod settings;
mod status;

use std::collections::{BTreeMap, VecDeque};

use quelea_elastic_proto::Time;

pub use definition::{Definition, DefinitionError, Relocation};
pub use io::{Effect, Event, Input, Peer, ProviderOutcome, RelayHandle, RelaySpec, SaveError};
pub use settings::Settings;
pub use status::{ListenerStatus, Logged, ProducerStatus, QueueStatus, RelayStatus};

use crate::plan::Plan;

/// A directory: all queues that it owns or claims, and all connections.
pub struct Directory {
    settings: Settings,
    queues: BTreeMap<String, ()>,
    effects: VecDeque<Effect>,
}

impl Directory {
    /// A directory that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, queues: BTreeMap::new(), effects: VecDeque::new() }
    }

    /// Takes what happened. Effects are then to be had by [`Self::poll_effect`], until there is none.
    pub fn handle(&mut self, now: Time, input: Input) {
        let _ = (now, input, &self.settings, &self.queues);
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Input::Tick`] is due, if no other input comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// The names of all queues that this directory owns or claims, in order.
    pub fn queue_names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// One queue with its relays; `None` if this directory does not own it.
    #[must_use]
    pub fn queue(&self, now: Time, name: &str) -> Option<QueueStatus> {
        let _ = (now, name);
        None
    }

    /// Its producers, by id, from the first one above `after`, at most `limit`.
    #[must_use]
    pub fn producers(
        &self,
        name: &str,
        after: Option<quelea_elastic_proto::ClientId>,
        limit: usize,
    ) -> Vec<ProducerStatus> {
        let _ = (name, after, limit);
        Vec::new()
    }

    /// Its listeners, by id, from the first one above `after`, at most `limit`.
    #[must_use]
    pub fn listeners(
        &self,
        name: &str,
        after: Option<quelea_elastic_proto::ClientId>,
        limit: usize,
    ) -> Vec<ListenerStatus> {
        let _ = (name, after, limit);
        Vec::new()
    }

    /// Its events with a number above `after`, oldest first. Only the newest
    /// [`limits::EVENTS_PER_QUEUE_MAX`] are kept.
    pub fn events(&self, name: &str, after: u64) -> impl Iterator<Item = &Logged> {
        let _ = (name, after);
        std::iter::empty()
    }

    /// What the planner would do about the queue now, and why; nothing of it is done.
    #[must_use]
    pub fn dry_run(&self, now: Time, name: &str) -> Option<Plan> {
        let _ = (now, name);
        None
    }

    /// Connections that it knows of.
    #[must_use]
    pub fn peers(&self) -> usize {
        0
    }
}

//! The broker: everything that one shard owns, and how it is driven.

use std::collections::{BTreeSet, VecDeque};

use quelea_model::{QueueId, QueueName, Seq, Timestamp, VhostName};
use quelea_store::{Durability, Progress, Recovered, Store, StoreState, Ticket};
use rustc_hash::FxHashMap;

use crate::access::Access;
use crate::access_keys::AccessKeys;
use crate::arena::Arena;
use crate::channel::Channel;
use crate::checkpoint::CheckpointPass;
use crate::config::BrokerConfig;
use crate::connection::Connection;
use crate::consumer::Consumer;
use crate::effect::Effect;
use crate::error::RecoveryError;
use crate::memory::Memory;
use crate::move_tasks::MoveTasks;
use crate::queue::Queue;
use crate::random::Random;
use crate::read_ahead::Loads;
use crate::report::MessageCounters;
use crate::topology::Item;
use crate::vhost::{Vhost, VhostId};

/// Queues that one call of [`Broker::run`] looks at before it lets the shell flush and read again.
const QUEUES_PER_RUN: usize = 256;

/// Effects that may wait for the shell before [`Broker::run`] makes no more.
const EFFECTS_WAITING_MAX: usize = 16_384;

/// All virtual hosts, queues, connections and channels of one shard.
///
/// Operations come in by methods, each with the time; what is to be done goes out by
/// [`Broker::poll_effect`]. Call [`Broker::run`] after every batch of operations, after the store
/// completed a job, and at the [`Broker::deadline`].
pub struct Broker {
    pub(crate) config: BrokerConfig,
    pub(crate) store: Box<dyn Store>,
    pub(crate) random: Random,
    pub(crate) access: Access,
    pub(crate) access_keys: AccessKeys,
    pub(crate) vhosts: Arena<Vhost>,
    pub(crate) vhost_ids: FxHashMap<VhostName, VhostId>,
    pub(crate) queues: FxHashMap<QueueId, Box<Queue>>,
    pub(crate) clients: Clients,
    pub(crate) effects: VecDeque<Effect>,
    /// Queues that may have something to give out, expire, or answer.
    pub(crate) touched: VecDeque<QueueId>,
    /// Queues with messages on their way to a dead-letter exchange.
    pub(crate) moving: VecDeque<QueueId>,
    /// Queues whose settled messages the log has not been told of.
    pub(crate) settled: Vec<QueueId>,
    pub(crate) timers: BTreeSet<(Timestamp, QueueId)>,
    pub(crate) move_tasks: MoveTasks,
    pub(crate) memory: Memory,
    pub(crate) loads: Loads,
    pub(crate) next_seq: Seq,
    /// Deliveries are not written to the log, so after a crash any older message may have been out:
    /// clients are told that it was, as RabbitMQ tells them.
    pub(crate) maybe_delivered_below: Seq,
    pub(crate) next_queue: QueueId,
    pub(crate) next_receive: u64,
    /// Receives of all queues that have no answer yet.
    pub(crate) receives_waiting: usize,
    /// When queues were deleted, by name.
    pub(crate) deleted_queues: FxHashMap<(VhostName, QueueName), Timestamp>,
    /// Counts changes of queues, their attributes, and access keys.
    pub(crate) queues_epoch: u64,
    /// Within begin_atomic and end_atomic: the strictest durability of what was appended.
    pub(crate) atomic: Option<Durability>,
    pub(crate) checkpoint: Option<CheckpointPass>,
    /// The final checkpoint is wanted.
    pub(crate) is_shutting_down: bool,
    pub(crate) blocked: Option<String>,
    pub(crate) counters: MessageCounters,
}

/// Connections, their channels, and their consumers.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) connections: Arena<Connection>,
    pub(crate) channels: Arena<Channel>,
    pub(crate) consumers: Arena<Consumer>,
}

impl Broker {
    /// A broker over what the store has recovered.
    ///
    /// `seed` feeds the generator of names; give a different one to each run.
    ///
    /// # Errors
    /// [`RecoveryError`] if the stored topology does not decode or is inconsistent.
    pub fn new(
        config: BrokerConfig,
        store: Box<dyn Store>,
        recovered: Recovered,
        seed: u64,
        now: Timestamp,
    ) -> Result<Self, RecoveryError> {
        let mut broker = Self {
            config,
            store,
            random: Random::new(seed),
            access: Access::new(),
            access_keys: AccessKeys::default(),
            vhosts: Arena::default(),
            vhost_ids: FxHashMap::default(),
            queues: FxHashMap::default(),
            clients: Clients::default(),
            effects: VecDeque::new(),
            touched: VecDeque::new(),
            moving: VecDeque::new(),
            settled: Vec::new(),
            timers: BTreeSet::new(),
            move_tasks: MoveTasks::default(),
            memory: Memory::default(),
            loads: Loads::default(),
            next_seq: recovered.next_seq,
            maybe_delivered_below: if recovered.after_crash { recovered.next_seq } else { Seq(0) },
            next_queue: recovered.next_queue,
            next_receive: 0,
            receives_waiting: 0,
            deleted_queues: FxHashMap::default(),
            queues_epoch: 0,
            atomic: None,
            checkpoint: None,
            is_shutting_down: false,
            blocked: None,
            counters: MessageCounters::default(),
        };
        broker.restore(recovered, now)?;
        Ok(broker)
    }

    /// The next thing to do, oldest first.
    #[inline]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Does what is due: timers, messages that were read, deliveries, dead letters, a slice of the
    /// checkpoint. True: there is more to do, call it again soon, but poll the effects first: it
    /// makes no more of them while too many wait.
    pub fn run(&mut self, now: Timestamp) -> bool {
        self.watch_store();
        let mut more = self.take_loaded();
        self.fire_timers(now);
        more |= self.dispatch_touched(now);
        more |= self.move_dead_letters(now);
        if !self.is_shutting_down {
            more |= self.run_move_tasks(now);
        }
        more |= !self.touched.is_empty();
        self.relieve_memory(now);
        self.flush_settled();
        more |= self.checkpoint_slice(now);
        more
    }

    /// When [`Broker::run`] has to be called although nothing else happens. The store's own
    /// deadline is included.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let deadlines = [timer, self.move_tasks.deadline(), self.store.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// The store, for the shell to pump its jobs. What was settled is told to it first.
    pub fn store_mut(&mut self) -> &mut dyn Store {
        self.flush_settled();
        &mut *self.store
    }

    /// How far the log has come: which tickets are reached.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.store.progress()
    }

    /// Why publishers are blocked; `None` if they are not. Changes come as effects, too.
    #[must_use]
    pub fn publishers_blocked(&self) -> Option<&str> {
        self.blocked.as_deref()
    }

    /// Whether it is time to read more from publishers: they are not blocked, and what waits to be
    /// written and to be spilled is within its bound.
    #[must_use]
    pub fn accepts_publishes(&self) -> bool {
        self.blocked.is_none()
            && self.store.pending_bytes() < self.config.store_pending_bytes_max
            && !self.memory.is_crowded(&self.config)
    }

    /// Begins a last checkpoint, so that the next start is quick. Go on with [`Broker::run`] and
    /// the store's jobs until the one has nothing more to do and the other is idle.
    pub fn begin_shutdown(&mut self, _now: Timestamp) {
        self.is_shutting_down = true;
    }

    /// Marks a queue as having something to do.
    pub(crate) fn touch(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(&id)
            && !queue.is_touched
        {
            queue.is_touched = true;
            self.touched.push_back(id);
        }
    }

    fn dispatch_touched(&mut self, now: Timestamp) -> bool {
        for _ in 0..QUEUES_PER_RUN.min(self.touched.len()) {
            if self.effects.len() >= EFFECTS_WAITING_MAX {
                return true;
            }
            let Some(id) = self.touched.pop_front() else {
                break;
            };
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.is_touched = false;
                self.dispatch(id, now);
            }
        }
        !self.touched.is_empty()
    }

    /// Blocks and unblocks publishers as the store's state and the memory ask for.
    fn watch_store(&mut self) {
        let reason = match self.store.state() {
            StoreState::Failed { reason } | StoreState::Full { reason } => Some(reason.clone()),
            StoreState::Healthy => self.memory.stuck_reason(&self.config),
        };
        match (&self.blocked, reason) {
            (None, None) => {}
            (Some(_), None) => {
                self.blocked = None;
                self.effects.push_back(Effect::PublishersUnblocked);
            }
            (None, Some(reason)) => {
                self.blocked = Some(reason.clone());
                self.effects.push_back(Effect::PublishersBlocked { reason });
            }
            // A failure after a full disk is another reason, but clients are told once.
            (Some(_), Some(reason)) => self.blocked = Some(reason),
        }
    }

    /// Tells the log of all settled messages.
    pub(crate) fn flush_settled(&mut self) {
        while let Some(id) = self.settled.pop() {
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.is_settling = false;
                self.store.append_acks(id, &queue.acks);
                queue.acks.clear();
                // A burst's room is not kept for ever.
                queue.acks.shrink_to(1024);
            }
        }
    }

    /// Writes a part of the topology.
    pub(crate) fn persist(&mut self, item: &Item) {
        self.store.put_topology(&item.key(), &item.value());
        self.note_durability(Durability::Fsync);
    }

    /// Deletes a part of the topology.
    pub(crate) fn unpersist(&mut self, item: &Item) {
        self.store.delete_topology(&item.key());
        self.note_durability(Durability::Fsync);
    }

    /// What was just appended is worth that much; within a transaction its end promises it.
    pub(crate) fn note_durability(&mut self, durability: Durability) {
        if let Some(strictest) = &mut self.atomic {
            *strictest = (*strictest).max(durability);
        }
    }

    /// A ticket for all that was appended so far, settled messages included.
    pub(crate) fn ticket(&mut self, durability: Durability) -> Ticket {
        if durability == Durability::None || self.atomic.is_some() {
            return Ticket::NONE;
        }
        self.flush_settled();
        self.store.ticket(durability)
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("vhosts", &self.vhosts.len())
            .field("queues", &self.queues.len())
            .field("connections", &self.clients.connections.len())
            .field("channels", &self.clients.channels.len())
            .finish_non_exhaustive()
    }
}

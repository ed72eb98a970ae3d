//! The broker: its parts, and how it is driven.

mod acknowledge;
mod administration;
mod adoption;
mod bindings;
mod connections;
mod consume;
mod declare_queue;
mod delete_queue;
mod exchanges;
mod find_queue;
mod listing;
mod move_tasks;
mod name_checks;
mod publish;
mod queue_attributes;
mod recovery;
mod removals;
mod reports;
mod samples;
mod sqs;
mod topology_changes;
mod transaction;

pub use listing::{ListKey, Listable, ListedName};
pub use publish::PublishRoute;
pub use samples::{ChannelSample, ExchangeSample, QueueSample, SampleStart, SampledKeys};

use std::sync::Arc;

use quelea_model::Timestamp;
use quelea_store::{Progress, Recovered, Store, StoreState};

use crate::access::Access;
use crate::checkpoint::Checkpoints;
use crate::config::BrokerConfig;
use crate::effect::Effect;
use crate::error::RecoveryError;
use crate::ids::ConnectionId;
use crate::messaging::Messaging;
use crate::name_checks::NameChecks;
use crate::random::Random;
use crate::removals::Removals;
use crate::report::ChurnCounters;
use crate::routing::Routing;
use crate::sqs::deleted_queues::DeletedQueues;
use crate::sqs::move_tasks::MoveTasks;
use crate::topology_changes::{EXPIRES, TopologyChanges};
use crate::work::{DISCARD_STEPS_MIN, Work};

/// All virtual hosts, queues, connections and channels of one shard.
///
/// Operations come in by methods, each with the time; what is to be done goes out by
/// [`Broker::poll_effect`]. Call [`Broker::run`] after every batch of operations, after the store
/// completed a job, and at the [`Broker::deadline`].
///
/// It is a façade: each operation checks what it was given, and leaves the work to the parts, none
/// of which knows the broker.
pub struct Broker {
    config: Arc<BrokerConfig>,
    /// Who may do what.
    access: Access,
    /// What the log has of that, where another store's is in force.
    own_access: Option<Box<Access>>,
    /// Where messages go.
    routing: Routing,
    /// The messages, and what they pass through.
    messaging: Messaging,
    move_tasks: MoveTasks,
    checkpoints: Checkpoints,
    /// Makes names.
    random: Random,
    deleted_queues: DeletedQueues,
    removals: Removals,
    name_checks: NameChecks,
    topology_changes: TopologyChanges,
    work: Work,
    /// What came and went.
    churn: ChurnCounters,
    /// Why publishers are blocked.
    blocked: Option<String>,
}

impl Broker {
    /// Creates a broker over what the store has recovered.
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
        let config = Arc::new(config);
        let mut random = Random::new(seed);
        let mut broker = Self {
            // A seed of its own: what receivers can see of its choices must say nothing of names.
            messaging: Messaging::new(&config, store, &recovered, random.number()),
            config,
            access: Access::default(),
            own_access: None,
            routing: Routing::default(),
            move_tasks: MoveTasks::default(),
            checkpoints: Checkpoints::default(),
            random,
            deleted_queues: DeletedQueues::default(),
            removals: Removals::default(),
            name_checks: NameChecks::default(),
            topology_changes: TopologyChanges::default(),
            work: Work::default(),
            churn: ChurnCounters::default(),
            blocked: None,
        };
        broker.restore(recovered, now)?;
        broker.churn = ChurnCounters::default();
        Ok(broker)
    }

    /// Takes the next thing to do, oldest first.
    #[inline]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.messaging.effects.pop_front()
    }

    /// Carries out what is due: timers, messages that were read, deliveries, dead letters, a slice
    /// of the checkpoint. Returns whether there is more to do: then call it again soon, but poll
    /// the effects first, as it makes no more of them while too many wait.
    pub fn run(&mut self, now: Timestamp) -> bool {
        self.work.begin_turn();
        self.watch_store();
        let messaging = &mut self.messaging;
        let mut more = messaging.queues.take_loaded(&mut messaging.log);
        messaging.report_missed();
        messaging.answer_browses();
        more |= self.fire_timers(now);
        more |= self.go_on_returning(now);
        let messaging = &mut self.messaging;
        let removals_wait = !self.removals.is_empty() || !messaging.purged.is_empty();
        let others_wait = removals_wait || messaging.queues.schedule.dead_lettering() > 0;
        let discard_steps = (self.work.left() - self.work.kept(others_wait)).max(DISCARD_STEPS_MIN);
        more |= messaging.dispatch_runnable(now, discard_steps);
        self.work.spend(messaging.take_steps());
        // What was dead-lettered by one must not keep another's removals waiting.
        let kept = self.work.kept(removals_wait);
        more |= messaging.move_dead_letters(&mut self.routing, &mut self.work, kept, now);
        if !self.checkpoints.is_shutting_down() {
            more |= self.move_tasks.run(messaging, now);
            // What is left at the end the next start takes away.
            more |= self.go_on_removing();
        }
        let messaging = &mut self.messaging;
        messaging.resume_publishers(now);
        more |= messaging.queues.schedule.runnable() > 0;
        messaging.relieve_memory(now);
        let Messaging { queues, clients, log, returning, .. } = messaging;
        queues.flush_acks(log);
        // The last checkpoint is to say how often each message was delivered.
        if returning.is_empty() || !self.checkpoints.is_shutting_down() {
            more |= self.checkpoints.run(queues, clients, log, now);
        }
        more
    }

    /// Returns the steps of work done so far, of what costs more than a fixed amount: ways of
    /// messages that had to be found, queues that one message is put into, dead letters moved on,
    /// bindings and messages taken away with their queue.
    #[must_use]
    pub const fn work_done(&self) -> u64 {
        self.work.done()
    }

    /// Returns the steps of work that one call, or one connection's input, may take before others
    /// have their turn.
    #[must_use]
    pub const fn steps_per_turn(&self) -> u64 {
        self.work.per_turn()
    }

    /// Sets [`Broker::steps_per_turn`]; 1,000 at least.
    pub fn set_steps_per_turn(&mut self, steps: u64) {
        self.work.set_per_turn(steps);
    }

    /// Returns when [`Broker::run`] has to be called although nothing else happens. The store's own
    /// deadline is included.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let timer = self.messaging.queues.schedule.deadline();
        let Messaging { log, flow_control, .. } = &self.messaging;
        // The store may find in its own turn that it is not full any more.
        let watch = self.is_blocked_in_vain().then_some(Timestamp::ZERO);
        let deadlines = [
            timer,
            self.move_tasks.deadline(),
            log.store.deadline(),
            flow_control.deadline(),
            watch,
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Writes acknowledgements to the store, and returns it for the shell to pump its jobs.
    pub fn store_mut(&mut self) -> &mut dyn Store {
        let Messaging { queues, log, .. } = &mut self.messaging;
        queues.flush_acks(log);
        &mut *log.store
    }

    /// Returns whether anything that was deleted is not all gone.
    #[must_use]
    pub fn is_removing(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Returns a number that changes when more is gone of what was deleted, has come back of what
    /// was closed, or was answered about a name: who was refused or waits for its sake may try
    /// again.
    #[must_use]
    pub const fn names_freed(&self) -> u64 {
        self.removals.names_freed()
    }

    /// Returns how far the log has come: which tickets are reached.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.messaging.log.store.progress()
    }

    /// Returns why publishers are blocked; `None` if they are not. Changes come as effects, too.
    #[must_use]
    pub fn publishers_blocked(&self) -> Option<&str> {
        self.blocked.as_deref()
    }

    /// Returns whether it is time to read more from publishers: they are not blocked, what waits to
    /// be written and to be spilled is within its bound, and the disk has a place for it.
    #[must_use]
    #[inline]
    pub fn accepts_publishes(&self) -> bool {
        self.accepts_publish(0)
    }

    /// Returns the same as [`Broker::accepts_publishes`], of messages of so many bytes, behind
    /// which the disk has to have room for what makes room.
    #[must_use]
    #[inline]
    pub fn accepts_publish(&self, bytes: usize) -> bool {
        self.blocked.is_none()
            && self.messaging.log.has_room_for(bytes, self.config.store_pending_bytes_max)
            && !self.messaging.queues.memory.is_crowded(&self.config)
    }

    /// Returns whether this connection is to publish nothing for the moment, since it is faster
    /// than the consumers of a crowded queue. [`Effect::PublisherResumed`] comes within
    /// milliseconds.
    #[must_use]
    #[inline]
    pub fn is_held(&self, connection: ConnectionId) -> bool {
        self.messaging.clients.connections.get(connection).is_some_and(|state| state.is_held)
    }

    /// Returns whether it is for want of memory that publishers are blocked; else it is the disk.
    #[must_use]
    pub fn is_blocked_by_memory(&self) -> bool {
        self.blocked.is_some() && self.messaging.log.is_healthy()
    }

    /// A client publishes, or tries to, for the first time.
    pub fn note_publisher(&mut self, connection: ConnectionId) {
        if let Some(state) = self.messaging.clients.connections.get_mut(connection) {
            state.is_publisher = true;
        }
    }

    /// Begins a last checkpoint, so that the next start is quick. Go on with [`Broker::run`] and
    /// the store's jobs until the one has nothing more to do and the other is idle.
    pub fn begin_shutdown(&mut self, _now: Timestamp) {
        self.checkpoints.begin_shutdown();
    }

    /// Wakes the queues whose time has come, and deletes those that nobody has used for too long, as many
    /// as this turn has steps for. True: there are more.
    fn fire_timers(&mut self, now: Timestamp) -> bool {
        let Messaging { queues, returning, .. } = &self.messaging;
        let others_wait = queues.schedule.dead_lettering() > 0 || !returning.is_empty();
        let kept = self.work.kept(others_wait);
        while self.work.left() > kept {
            let Some(unused) = self.messaging.queues.fire_timers(now) else { return false };
            self.note_queue_end(unused, EXPIRES);
            self.remove_queue(unused);
        }
        true
    }

    fn blocking_reason(&self) -> Option<String> {
        match self.messaging.log.store.state() {
            StoreState::Failed { reason } | StoreState::Full { reason } => Some(reason.clone()),
            StoreState::Healthy => self.messaging.queues.memory.stuck_reason(&self.config),
        }
    }

    /// Returns whether publishers are blocked although there is no reason any more.
    fn is_blocked_in_vain(&self) -> bool {
        self.blocked.is_some() && self.blocking_reason().is_none()
    }

    /// Blocks and unblocks publishers as the store's state and the memory ask for.
    fn watch_store(&mut self) {
        let reason = self.blocking_reason();
        match (&self.blocked, reason) {
            (None, None) => {}
            (Some(_), None) => {
                self.blocked = None;
                self.messaging.effects.push_back(Effect::PublishersUnblocked);
            }
            (None, Some(reason)) => {
                self.blocked = Some(reason.clone());
                self.messaging.effects.push_back(Effect::PublishersBlocked { reason });
            }
            // A failure after a full disk is another reason, but clients are notified once.
            (Some(_), Some(reason)) => self.blocked = Some(reason),
        }
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("vhosts", &self.routing.vhost_count())
            .field("queues", &self.messaging.queues.len())
            .field("connections", &self.messaging.clients.connections.len())
            .field("channels", &self.messaging.clients.channels.len())
            .finish_non_exhaustive()
    }
}

//! The core: the broker, the sessions of all connections, and the turn that moves them on.
//!
//! Everything here runs on one thread. Connection tasks and other threads only put work in front of
//! a turn: what was read, verdicts on passwords, results of the log's jobs, calls of the management
//! thread. The turn (see [`Core::turn`]) then runs the broker once, hands new jobs to the log, and
//! writes each connection's output at once. Batches form because everything that came in while a turn
//! or an fdatasync was under way is dealt with by the next; no timer gathers them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quelea_amqp_session::{SessionConfig, SessionReport};
use quelea_broker::{Broker, Effect, Receive, ReceiveError, ReceiveId, ReceivedMessage};
use quelea_model::{QueueId, Timestamp};
use quelea_store::{Progress, StoreState, Ticket};
use rustc_hash::FxHashMap;
use slab::Slab;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::attached::Attached;
use crate::authenticator::Authenticator;
use crate::clock::Clock;
use crate::connection::{ARENA_BYTES, Connection};
use crate::counters::NetCounters;
use crate::handle::{CALLS_WAITING_MAX, Call};
use crate::log_threads::LogThreads;
use crate::routes::Routes;
use crate::stop::Stop;
use crate::timers::Timers;

/// A turn delivers for at least this long if there is that much to deliver, and for as long as the
/// input before it took, if that was longer. So publishers, however many, take no more than half of
/// the core from the consumers, and feel it by TCP; and nobody waits much longer than for the input.
const DELIVERY_TIME_MIN: Duration = Duration::from_millis(1);

/// Waiters for the store: fewer than there may be connections of all fronts.
const PROMISES_MAX: usize = 262_144;

/// What is done when the store has come far enough; dropped if it never will.
pub(crate) type Promise = Box<dyn FnOnce(&mut Core) + Send>;

/// Takes the answer to a receive: the messages, or `None` if the queue was deleted meanwhile.
pub type ReceiveAnswer = oneshot::Sender<Result<Option<Vec<ReceivedMessage>>, ReceiveError>>;

/// What the core is made of, but for its broker.
pub(crate) struct CoreParts {
    pub(crate) clock: Clock,
    pub(crate) wake: Arc<Notify>,
    pub(crate) log: LogThreads,
    pub(crate) authenticator: Authenticator,
    pub(crate) calls: mpsc::Receiver<Call>,
    pub(crate) session_config: Arc<SessionConfig>,
    pub(crate) connections_max: usize,
    pub(crate) stop_timeout_ms: u64,
    pub(crate) queues_epoch: Arc<AtomicU64>,
}

/// The broker and all that drives it. Other threads reach it through [`crate::CoreHandle`].
pub struct Core {
    /// The broker. What is changed here takes effect in the turn that runs the call.
    pub broker: Broker,
    pub(crate) arena: BytesMut,
    pub(crate) parts: CoreParts,
    pub(crate) now: Timestamp,
    /// A turn is due: the pump was woken.
    turn_due: bool,
    /// When the input began that the next turn deals with.
    input_since: Option<Instant>,
    pub(crate) connections: Slab<Connection>,
    pub(crate) generation: u64,
    pub(crate) routes: Routes,
    pub(crate) attached: Attached,
    /// Connections to look after at the end of the turn.
    pub(crate) dirty: Vec<usize>,
    /// Connections that promised something that waits for the store.
    pub(crate) waiting: Vec<usize>,
    pub(crate) timers: Timers,
    pub(crate) verdicts: Verdicts,
    pub(crate) progress: Progress,
    /// Whether the broker took publishes when last asked, and no session has stalled since. It may
    /// have refused one and have room again within the same turn.
    pub(crate) accepted: bool,
    promises: Vec<(Ticket, Promise)>,
    /// Who waits for messages.
    receives: FxHashMap<ReceiveId, ReceiveAnswer>,
    pub(crate) stop: Stop,
    pub(crate) refusal_logged: Option<Timestamp>,
    pub(crate) counters: NetCounters,
}

/// Answers of the password threads: which connection (slot and generation), and whether it may in.
pub(crate) struct Verdicts {
    pub(crate) sender: std_mpsc::Sender<(usize, u64, bool)>,
    receiver: std_mpsc::Receiver<(usize, u64, bool)>,
}

impl Core {
    pub(crate) fn new(broker: Broker, parts: CoreParts) -> Self {
        let (sender, receiver) = std_mpsc::channel();
        Self {
            now: parts.clock.now(),
            progress: broker.progress(),
            broker,
            arena: BytesMut::with_capacity(ARENA_BYTES),
            parts,
            turn_due: false,
            input_since: None,
            connections: Slab::new(),
            generation: 0,
            routes: Routes::default(),
            attached: Attached::default(),
            dirty: Vec::new(),
            waiting: Vec::new(),
            timers: Timers::default(),
            verdicts: Verdicts { sender, receiver },
            accepted: true,
            promises: Vec::new(),
            receives: FxHashMap::default(),
            stop: Stop::default(),
            refusal_logged: None,
            counters: NetCounters::default(),
        }
    }

    /// The time of this turn.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// What the sockets did since the start.
    #[must_use]
    pub fn counters(&self) -> NetCounters {
        NetCounters { connections: self.connections.len() as u64, ..self.counters }
    }

    /// What every connection says about itself, those in their handshake included.
    pub fn sessions(&mut self) -> Vec<SessionReport> {
        self.connections.iter_mut().map(|(_, connection)| connection.session.report()).collect()
    }

    /// Begins to stop: see `stop.rs`. Does nothing if it has begun.
    pub fn begin_stop(&mut self) {
        let deadline = self.now.plus_ms(self.parts.stop_timeout_ms);
        if self.stop.begin(deadline) {
            self.tell_sessions_to_stop();
        }
    }

    /// Calls `reached` once the store has come that far; drops it if it never will.
    pub(crate) fn when_reached(&mut self, ticket: Ticket, reached: Promise) {
        if self.broker.progress().reached(ticket) {
            reached(self);
        } else if self.promises.len() < PROMISES_MAX {
            self.promises.push((ticket, reached));
        }
    }

    /// Receives messages; the answer comes by `answer`. If nobody takes it the messages are visible
    /// again at once. Gives what cancels it, unless it was refused.
    pub fn receive(
        &mut self,
        queue: QueueId,
        receive: Receive,
        answer: ReceiveAnswer,
    ) -> Option<ReceiveId> {
        match self.broker.receive(self.now, queue, receive) {
            Ok(id) => {
                self.receives.insert(id, answer);
                Some(id)
            }
            Err(error) => {
                // A caller that went away needs no answer.
                let _ = answer.send(Err(error));
                None
            }
        }
    }

    /// Ends a receive that nobody waits for any more.
    pub fn cancel_receive(&mut self, queue: QueueId, receive: ReceiveId) {
        // If its answer is on its way, it finds nobody, and is taken back.
        self.broker.cancel_receive(queue, receive);
        self.receives.remove(&receive);
    }

    fn answer_receive(&mut self, effect: Effect) {
        let Effect::Received { receive, messages, ticket } = effect else { return };
        let answer = self.receives.remove(&receive);
        // If the store never comes so far, nobody is answered, and nothing matters any more.
        self.when_reached(
            ticket,
            Box::new(move |core| {
                let untaken = match answer {
                    Some(answer) => match answer.send(Ok(messages)) {
                        Err(Ok(untaken)) => untaken,
                        _ => None,
                    },
                    None => messages,
                };
                core.take_back(untaken.unwrap_or_default());
            }),
        );
    }

    /// Nobody was there to take these messages.
    fn take_back(&mut self, messages: Vec<ReceivedMessage>) {
        if !messages.is_empty() {
            let receipts: Vec<_> = messages.iter().map(|message| message.receipt).collect();
            self.broker.undo_receives(self.now, &receipts);
        }
    }

    /// Has the pump run a turn after the tasks that are ready now. The first to ask reads the clock.
    pub(crate) fn want_turn(&mut self) {
        if !self.turn_due {
            self.turn_due = true;
            self.now = self.parts.clock.now();
            self.input_since = Some(Instant::now());
            self.parts.wake.notify_one();
        }
    }

    /// One turn; gives whether the broker has more to do at once.
    pub(crate) fn turn(&mut self) -> bool {
        self.turn_due = true;
        self.now = self.parts.clock.now();
        self.counters.turns += 1;
        self.take_results();
        self.take_calls();
        self.take_verdicts();
        self.fire_timers();
        self.publish_epoch();
        let mut more = self.deliver();
        more |= !self.dirty.is_empty();
        more |= self.advance_stop(more);
        self.hand_out_jobs();
        self.turn_due = false;
        more
    }

    /// Runs the broker and writes what comes of it, again and again while there is more and time for
    /// it. Gives whether there is more.
    fn deliver(&mut self) -> bool {
        let started = Instant::now();
        let input_time = self.input_since.take().map_or(Duration::ZERO, |since| started - since);
        let time = input_time.max(DELIVERY_TIME_MIN);
        loop {
            let more = self.broker.run(self.now);
            // The disk begins before the sockets are written.
            self.hand_out_jobs();
            let mut acted = self.carry_out_effects();
            acted |= self.keep_promises();
            self.notice_room();
            // What was written makes room for more, and a connection that broke gives back what it
            // held.
            let changed = self.look_after_dirty();
            if !(more || acted || changed) {
                return false;
            }
            if started.elapsed() >= time {
                return true;
            }
        }
    }

    /// When the pump has to run a turn although nothing happens.
    pub(crate) fn deadline(&mut self) -> Option<Timestamp> {
        let deadlines = [
            self.broker.deadline(),
            self.broker.store_mut().deadline(),
            self.timers.next(),
            self.stop.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn take_results(&mut self) {
        while let Some(done) = self.parts.log.poll_done() {
            self.broker.store_mut().complete(done);
        }
    }

    fn take_calls(&mut self) {
        for _ in 0..CALLS_WAITING_MAX {
            let Ok(call) = self.parts.calls.try_recv() else { return };
            call(self);
        }
    }

    /// Runs a call of a task of this thread, between two turns. What comes of it is carried out by the
    /// next, for all tasks that are ready now.
    pub(crate) fn call_here<R>(&mut self, call: impl FnOnce(&mut Self) -> R) -> R {
        self.want_turn();
        let result = call(self);
        self.publish_epoch();
        result
    }

    /// Tells other threads that queues have changed, before anybody hears of the change.
    fn publish_epoch(&self) {
        self.parts.queues_epoch.store(self.broker.queues_epoch(), Ordering::Release);
    }

    fn take_verdicts(&mut self) {
        while let Ok((slot, generation, verified)) = self.verdicts.receiver.try_recv() {
            let of_this_one = |c: &Connection| c.generation == generation;
            if self.connections.get(slot).is_some_and(of_this_one) {
                self.authenticated(slot, verified);
            }
        }
    }

    fn hand_out_jobs(&mut self) {
        let Self { broker, parts, now, .. } = self;
        let store = broker.store_mut();
        parts.log.submit(|| store.poll_job(*now));
    }

    /// Gives whether there were any.
    fn carry_out_effects(&mut self) -> bool {
        let mut acted = false;
        while let Some(effect) = self.broker.poll_effect() {
            acted = true;
            let connection = match &effect {
                Effect::Deliver { connection, .. }
                | Effect::Got { connection, .. }
                | Effect::GotEmpty { connection, .. }
                | Effect::ConsumerCancelled { connection, .. }
                | Effect::CloseConnection { connection, .. } => *connection,
                Effect::PublishersBlocked { .. } | Effect::PublishersUnblocked => {
                    self.tell_all(&effect);
                    continue;
                }
                Effect::Received { .. } => {
                    self.answer_receive(effect);
                    continue;
                }
            };
            if let Some(slot) = self.routes.slot(connection) {
                self.connections[slot].session.effect(&mut self.broker, effect, self.now);
                self.touch(slot);
            } else {
                self.attached.effect(&mut self.broker, connection, effect, self.now);
            }
        }
        acted
    }

    fn tell_all(&mut self, effect: &Effect) {
        match effect {
            Effect::PublishersBlocked { reason } => {
                tracing::warn!(reason, "publishers are blocked");
            }
            _ => tracing::info!("publishers may go on"),
        }
        for slot in self.open_slots() {
            let connection = &mut self.connections[slot];
            connection.session.effect(&mut self.broker, effect.clone(), self.now);
            self.touch(slot);
        }
    }

    /// If the store came further: confirms, and answers that promised durability.
    /// Gives whether anything was done that the broker may have to act on.
    fn keep_promises(&mut self) -> bool {
        let progress = self.broker.progress();
        if progress == self.progress {
            self.break_promises_of_a_failed_store();
            return false;
        }
        self.progress = progress;
        for slot in std::mem::take(&mut self.waiting) {
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            if std::mem::take(&mut connection.waits) {
                connection.session.progress(progress);
                self.touch(slot);
            }
        }
        let reached = self.promises.extract_if(.., |(ticket, _)| progress.reached(*ticket));
        let reached: Vec<_> = reached.collect();
        let any = !reached.is_empty();
        for (_, promise) in reached {
            promise(self);
        }
        any
    }

    fn break_promises_of_a_failed_store(&mut self) {
        if !self.promises.is_empty()
            && matches!(self.broker.store_mut().state(), StoreState::Failed { .. })
        {
            self.promises.clear();
        }
    }

    /// If the broker takes publishes again: those that were held back go on.
    fn notice_room(&mut self) {
        let accepts = self.broker.accepts_publishes();
        if accepts && !self.accepted {
            for slot in self.open_slots() {
                let connection = &self.connections[slot];
                if connection.paused || connection.session.is_stalled() {
                    self.touch(slot);
                }
            }
        }
        self.accepted = accepts;
    }
}

/// The core, shared by the tasks of its thread.
#[derive(Clone)]
pub(crate) struct SharedCore(Rc<RefCell<Core>>);

impl SharedCore {
    pub(crate) fn new(core: Core) -> Self {
        Self(Rc::new(RefCell::new(core)))
    }

    /// Borrows the core. A panic in between leaves it half changed, and ends the process: see
    /// `panics.rs`.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        struct Guard;
        impl Drop for Guard {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    crate::panics::end_process("the core panicked");
                }
            }
        }
        let _guard = Guard;
        f(&mut self.0.borrow_mut())
    }
}

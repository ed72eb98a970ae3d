//! The core: the broker, the connections, and what other threads want of both.
//!
//! Everything here runs on one thread. Connection tasks and other threads only put work in front of
//! a turn: what was read, results of password checks and of the log's jobs, calls of the management
//! thread. The turn (`turn.rs`) then runs the broker once, submits new jobs to the log, and writes
//! each connection's output at once. Batches form because everything that came in while a turn or an
//! fdatasync was under way is dealt with by the next; only a core at its limit pauses between turns, so that they grow
//! (`coalescing.rs`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quelea_broker::{
    Broker, ChannelId, ConnectionId, Effect, NameQuestion, NameVerdict, OpenError, Receive,
    ReceiveError, ReceiveId, ReceivedMessage, TopologyChange,
};
use quelea_model::{LatencyHistogram, QueueId, Timestamp};
use quelea_store::Ticket;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;

use crate::audit::Audit;
use crate::coalescing::InputCoalescing;
use crate::connections::Connections;
use crate::counters::NetCounters;
use crate::internal_connections::{InternalClient, InternalConnections};
use crate::log_threads::LogThreads;
use crate::logins::Logins;
use crate::promises::{Promise, Promises};
use crate::schedule::TurnSchedule;
use crate::step_budget::StepBudget;
use crate::stop::Stop;

/// What another thread has the core run.
pub(crate) type Call = Box<dyn FnOnce(&mut Core) + Send>;

/// Takes the answer to a receive: the messages, or `None` if the queue was deleted meanwhile.
pub type ReceiveAnswer = oneshot::Sender<Result<Option<Vec<ReceivedMessage>>, ReceiveError>>;

/// The broker and all that drives it. Other threads reach it through [`crate::CoreHandle`].
pub struct Core {
    /// The broker. What is changed here takes effect in the turn that runs the call.
    pub broker: Broker,
    pub(crate) schedule: TurnSchedule,
    pub(crate) step_budget: StepBudget,
    pub(crate) coalescing: InputCoalescing,
    pub(crate) turn_times: LatencyHistogram,
    pub(crate) connections: Connections,
    pub(crate) internal: InternalConnections,
    pub(crate) log: LogThreads,
    pub(crate) logins: Logins,
    pub(crate) calls: mpsc::Receiver<Call>,
    pub(crate) promises: Promises<Self>,
    /// The callers of receives that wait for messages; as many as the broker admits receives.
    pub(crate) receives: FxHashMap<ReceiveId, ReceiveAnswer>,
    pub(crate) stop: Stop,
    pub(crate) stop_timeout_ms: u64,
    pub(crate) queues_epoch: Arc<AtomicU64>,
    /// Who asks another store for names of queues, if there is one.
    pub(crate) name_questions: Option<UnboundedSender<NameQuestion>>,
    pub(crate) audit: Audit,
}

impl Core {
    /// Returns the time of this turn.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    /// Returns what the sockets did since the start.
    #[must_use]
    pub fn counters(&self) -> NetCounters {
        let (turns, turn_times) = (self.schedule.turns(), self.turn_times);
        let input_pauses = self.coalescing.pauses();
        NetCounters { turns, turn_times, input_pauses, ..self.connections.counters() }
    }

    /// From now `keep` gets each change of the topology that a client makes, by the core thread: it must not wait.
    pub fn keep_topology_changes(&mut self, keep: impl Fn(TopologyChange) + Send + 'static) {
        self.audit = Audit(Some(Box::new(keep)));
    }

    /// Begins to stop: see `stop.rs`. Does nothing if it has begun.
    pub fn begin_stop(&mut self) {
        let now = self.now();
        if self.stop.begin(now.plus_ms(self.stop_timeout_ms)) {
            // What is being removed the next start goes on with.
            let (connections, is_removing) = (self.connections.len(), self.broker.is_removing());
            tracing::info!(connections, is_removing, "closing connections");
            self.connections.shut_down(&mut self.broker, now);
        }
    }

    /// Calls `reached` once the store has come that far; drops it if it never will.
    pub(crate) fn when_reached(&mut self, ticket: Ticket, reached: Promise<Self>) {
        if self.broker.progress().reached(ticket) {
            reached(self);
        } else {
            self.promises.add(ticket, reached);
        }
    }

    /// Receives messages; the answer comes by `answer`. If nobody takes it the messages are visible
    /// again at once. Returns what cancels it, unless it was refused.
    pub fn receive(
        &mut self,
        queue: QueueId,
        receive: Receive,
        answer: ReceiveAnswer,
    ) -> Option<ReceiveId> {
        match self.broker.receive(self.now(), queue, receive) {
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

    /// Ends a receive whose caller is gone.
    pub fn cancel_receive(&mut self, queue: QueueId, receive: ReceiveId) {
        // If its answer is on its way, nobody takes it, and its messages go back.
        self.broker.cancel_receive(queue, receive);
        self.receives.remove(&receive);
    }

    /// Answers a receive when the store has come so far; if it never does, nothing matters any more.
    pub(crate) fn answer_receive(&mut self, effect: Effect) {
        let Effect::Received { receive, messages, ticket } = effect else { return };
        let answer = self.receives.remove(&receive);
        self.when_reached(
            ticket,
            Box::new(move |core| {
                let undelivered = match answer {
                    Some(answer) => match answer.send(Ok(messages)) {
                        Err(Ok(undelivered)) => undelivered,
                        _ => None,
                    },
                    None => messages,
                };
                core.return_to_queue(undelivered.unwrap_or_default());
            }),
        );
    }

    /// Passes on what the broker wants to know of names. As many are under way as it admits.
    pub(crate) fn ask_names(&mut self) {
        while let Some(question) = self.broker.poll_name_question() {
            let asked = self.name_questions.as_ref().map(|sender| sender.send(question));
            if let Some(Err(unasked)) = asked {
                let verdict = NameVerdict::Unknown("the broker stops".to_owned());
                self.broker.name_checked(unasked.0, verdict, Box::new(()));
            }
        }
    }

    fn return_to_queue(&mut self, messages: Vec<ReceivedMessage>) {
        if !messages.is_empty() {
            let receipts: Vec<_> = messages.iter().map(|message| message.receipt).collect();
            self.broker.undo_receives(self.now(), &receipts);
        }
    }

    /// Opens a connection of the broker with one channel, for a client inside this process. Whether
    /// its own clients come from this machine is for the caller to check.
    ///
    /// # Errors
    /// [`OpenError`]: the virtual host is unknown, or the user may not use it.
    pub fn open_internal(
        &mut self,
        client: InternalClient<'_>,
        effects: UnboundedSender<Effect>,
    ) -> Result<(ConnectionId, ChannelId), OpenError> {
        let now = self.now();
        self.internal.open(&mut self.broker, client, effects, now)
    }

    /// From now on the broker's effects for `connection` go to `effects`, until [`Core::detach`].
    pub fn attach(&mut self, connection: ConnectionId, effects: UnboundedSender<Effect>) {
        self.internal.attach(connection, effects);
    }

    /// Ends that, and closes the connection.
    pub fn detach(&mut self, connection: ConnectionId) {
        let now = self.now();
        self.internal.detach(&mut self.broker, connection, now);
    }

    /// Runs a call of a task of this thread, between two turns. The next turn carries out what comes of
    /// it, for all tasks that are ready now.
    pub(crate) fn call_local<R>(&mut self, call: impl FnOnce(&mut Self) -> R) -> R {
        self.schedule.request_turn();
        let result = call(self);
        self.publish_epoch();
        result
    }

    /// Lets other threads see that queues have changed, before anybody hears of the change.
    pub(crate) fn publish_epoch(&self) {
        self.queues_epoch.store(self.broker.queues_epoch(), Ordering::Release);
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

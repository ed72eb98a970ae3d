//! The way of a message: into queues, out to consumers and receivers, and settled. Who is permitted
//! and where an exchange leads has been decided when a message comes here.

mod browse;
mod dead_letter;
mod death;
mod dispatch;
mod enqueue;
mod flow_control;
mod get;
mod purge;
mod relieve_memory;
mod return_deliveries;
mod settle;

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::{Message, QueueId, Timestamp};
use quelea_store::{Durability, Recovered, Store, Ticket};

use crate::clients::Clients;
use crate::config::BrokerConfig;
use crate::effect::Effect;
use crate::ids::ChannelId;
use crate::log::Log;
use crate::queues::Queues;
use crate::report::MessageCounters;
use crate::sqs::receives::Receives;
pub use dead_letter::{REDRIVE_RECEIVES_HEADER, REDRIVE_SOURCE_HEADER};
pub(crate) use dead_letter::{source_of, without_source};
pub(crate) use enqueue::MessageOptions;
use flow_control::FlowControl;
pub(crate) use purge::{Purge, PurgedMessages};
pub(crate) use return_deliveries::ALL_DELIVERIES;
use return_deliveries::ReturningChannels;
pub(crate) use settle::Settlement;

/// Queues that one turn dispatches before the shell flushes and reads again.
const QUEUES_PER_TURN: usize = 256;

/// Effects that may wait for the shell before no more are made.
const EFFECTS_WAITING_MAX: usize = 16_384;

/// Messages of one queue that expire, or leave it since it is too long, when something else is done with it; the others follow
/// in the next turns.
const DISCARDS_AT_ONCE: usize = 128;

/// The same before something is decided by how long a queue is, as whether it takes another message. Each message leaves
/// but once, and its steps are counted.
const DISCARDS_BEFORE_DECISION: usize = 8_192;

/// What messages pass through: the queues that hold them, the clients that get them, the log that
/// keeps them.
pub(crate) struct Messaging {
    pub(crate) queues: Queues,
    pub(crate) clients: Clients,
    pub(crate) receives: Receives,
    pub(crate) log: Log,
    pub(crate) flow_control: FlowControl,
    pub(crate) effects: VecDeque<Effect>,
    /// What passed through all queues.
    pub(crate) counters: MessageCounters,
    /// Channels that are closed, with deliveries that go back to their queues.
    pub(crate) returning: ReturningChannels,
    pub(crate) purged: PurgedMessages,
    /// Steps of work; see [`Messaging::take_steps`].
    pub(crate) steps: u64,
}

impl Messaging {
    /// Says of messages that cannot be read whose they are.
    pub(crate) fn report_missed(&mut self) {
        for (vhost, queue, error) in self.queues.take_missed() {
            let error = Box::new(error);
            self.effects.push_back(Effect::MessagesUnreadable { vhost, queue, error });
        }
    }

    pub(crate) fn new(
        config: &Arc<BrokerConfig>,
        store: Box<dyn Store>,
        recovered: &Recovered,
        seed: u64,
    ) -> Self {
        Self {
            queues: Queues::new(Arc::clone(config), recovered),
            clients: Clients::new(Arc::clone(config)),
            receives: Receives::new(seed),
            log: Log::new(store),
            flow_control: FlowControl::default(),
            effects: VecDeque::new(),
            counters: MessageCounters::default(),
            returning: ReturningChannels::default(),
            purged: PurgedMessages::default(),
            steps: 0,
        }
    }

    /// Returns and resets the count of the steps of what costs more than a fixed amount, done since
    /// the last call: for whoever counts a turn's.
    #[inline]
    pub(crate) const fn take_steps(&mut self) -> u64 {
        std::mem::replace(&mut self.steps, 0)
    }

    /// Returns a ticket for all that was appended so far, acknowledgements included.
    pub(crate) fn ticket(&mut self, durability: Durability) -> Ticket {
        if durability == Durability::None || self.log.is_in_transaction() {
            return Ticket::NONE;
        }
        self.queues.flush_acks(&mut self.log);
        self.log.store.ticket(durability)
    }

    /// Returns a ticket for a change of the topology, if it was `written` to the log.
    pub(crate) fn topology_ticket(&mut self, written: bool) -> Ticket {
        if written { self.ticket(Durability::Fsync) } else { Ticket::NONE }
    }

    /// Delivers the answer to a request straight to the channel that asked. False: it was dropped.
    pub(crate) fn reply(&mut self, to: ChannelId, message: Message) -> bool {
        self.clients.reply(&mut self.effects, &mut self.counters, to, message)
    }

    /// Slows a publisher down to the pace of this queue's consumers.
    pub(crate) fn slow_down(&mut self, publisher: ChannelId, queue: QueueId) {
        let Self { flow_control, clients, queues, counters, .. } = self;
        if let Some(connection) = clients.channels.get(publisher).map(|state| state.connection)
            && flow_control.spend_share(clients, queues, connection, queue)
        {
            counters.slowed += 1;
        }
    }

    /// Lets those publishers go on who have waited for as long as they have to.
    pub(crate) fn resume_publishers(&mut self, now: Timestamp) {
        let Self { flow_control, clients, queues, effects, .. } = self;
        flow_control.end_window(clients, queues, |effect| effects.push_back(effect), now);
    }
}

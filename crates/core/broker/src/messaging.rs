//! The way of a message: into queues, out to consumers and receivers, and settled. Who is permitted
//! and where an exchange leads has been decided when a message comes here.

mod dead_letter;
mod death;
mod dispatch;
mod enqueue;
mod get;
mod purge;
mod relieve_memory;
mod settle;

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::{Message, Timestamp};
use quelea_store::{Durability, Recovered, Store, Ticket};

use crate::clients::Clients;
use crate::config::BrokerConfig;
use crate::effect::Effect;
use crate::ids::ChannelId;
use crate::log::Log;
use crate::queues::Queues;
use crate::queues::queue::ready_messages::ReadyMessages;
use crate::queues::queue::release;
use crate::report::MessageCounters;
use crate::sqs::receives::Receives;
pub use dead_letter::{REDRIVE_RECEIVES_HEADER, REDRIVE_SOURCE_HEADER};
pub(crate) use dead_letter::{source_of, without_source};
pub(crate) use enqueue::MessageOptions;
pub(crate) use purge::Purge;
pub(crate) use settle::Settlement;

/// Queues that one turn dispatches before the shell flushes and reads again.
const QUEUES_PER_TURN: usize = 256;

/// Effects that may wait for the shell before no more are made.
const EFFECTS_WAITING_MAX: usize = 16_384;

/// What messages pass through: the queues that hold them, the clients that get them, the log that
/// keeps them.
pub(crate) struct Messaging {
    pub(crate) queues: Queues,
    pub(crate) clients: Clients,
    pub(crate) receives: Receives,
    pub(crate) log: Log,
    pub(crate) effects: VecDeque<Effect>,
    /// What passed through all queues.
    pub(crate) counters: MessageCounters,
    /// What was purged, and is still counted in the segments' accounts.
    purged: VecDeque<ReadyMessages>,
}

impl Messaging {
    /// Says of messages that cannot be read whose they are.
    pub(crate) fn report_missed(&mut self) {
        for (id, error) in self.queues.take_missed() {
            let Some(queue) = self.queues.get(id) else { continue };
            let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
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
            effects: VecDeque::new(),
            counters: MessageCounters::default(),
            purged: VecDeque::new(),
        }
    }

    /// Balances the segments' accounts for up to `max` messages that were purged. Returns for how many; fewer
    /// than `max` if there are no more.
    pub(crate) fn release_purged(&mut self, max: usize) -> usize {
        let mut released = 0;
        while let Some(purged) = self.purged.front_mut() {
            while released < max
                && let Some(removed) = purged.pop_any()
            {
                release(&mut *self.log.store, &removed);
                released += 1;
            }
            if released == max {
                break;
            }
            self.purged.pop_front();
        }
        released
    }

    /// A ticket for all that was appended so far, acknowledgements included.
    pub(crate) fn ticket(&mut self, durability: Durability) -> Ticket {
        if durability == Durability::None || self.log.is_in_transaction() {
            return Ticket::NONE;
        }
        self.queues.flush_acks(&mut self.log);
        self.log.store.ticket(durability)
    }

    /// A ticket for a change of the topology, if it was `written` to the log.
    pub(crate) fn topology_ticket(&mut self, written: bool) -> Ticket {
        if written { self.ticket(Durability::Fsync) } else { Ticket::NONE }
    }

    /// Delivers the answer to a request straight to the channel that asked. False: it was dropped.
    pub(crate) fn reply(&mut self, to: ChannelId, message: Message) -> bool {
        self.clients.reply(&mut self.effects, &mut self.counters, to, message)
    }

    /// Counts a publish, and what became of it.
    pub(crate) fn count_published(&mut self, channel: ChannelId, routed: bool, mandatory: bool) {
        let channel = self.clients.channels.get_mut(channel).map(|channel| &mut channel.counters);
        for counters in [Some(&mut self.counters), channel].into_iter().flatten() {
            counters.publish += 1;
            match (routed, mandatory) {
                (true, _) => {}
                (false, true) => counters.return_unroutable += 1,
                (false, false) => counters.drop_unroutable += 1,
            }
        }
    }

    /// Dispatches queues that have something to do. True: there are more.
    pub(crate) fn dispatch_runnable(&mut self, now: Timestamp) -> bool {
        for _ in 0..QUEUES_PER_TURN.min(self.queues.schedule.runnable()) {
            if self.effects.len() >= EFFECTS_WAITING_MAX {
                return true;
            }
            let Some(id) = self.queues.schedule.pop_runnable() else {
                break;
            };
            if let Some(queue) = self.queues.get_mut(id) {
                queue.is_runnable = false;
                self.dispatch(id, now);
            }
        }
        self.queues.schedule.runnable() > 0
    }
}

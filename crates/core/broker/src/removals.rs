//! Queues and exchanges on their way out: what belongs to them goes bit by bit, over as many turns as it takes.
//!
//! A queue is gone for everybody at once, in memory and, if it was kept, by one record group in the log.
//! Only then its bindings and messages are taken away. Were the broker killed in between, the log has
//! bindings that lead to no queue: the next start takes them away. So a queue never comes back with some
//! of its bindings. Its name is not given to another queue that is kept before the log has lost the last
//! of them, or they would be that queue's at the next start. With an exchange and its bindings, and with a virtual
//! host and what is in it, it is the same.

use std::collections::VecDeque;

use quelea_model::{ExchangeName, QueueId, QueueName, VhostName};
use rustc_hash::FxHashSet;

use crate::ids::VhostId;
use crate::queues::queue::Queue;
use crate::routing::exchange::targets::Target;
use crate::routing::router::LeavingExchange;

/// What is being removed.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    /// Queues that nobody owns any more: exclusive ones of connections that are closed, and those of virtual
    /// hosts that are gone.
    ownerless: VecDeque<QueueId>,
    /// Queues that are gone, with messages that still have to go. Bounded by the queues there were.
    queues: VecDeque<Box<Queue>>,
    /// Those of them that have nothing left but bindings, and exchanges.
    unbinding: VecDeque<Unbinding>,
    /// Names that have become free since the broker began.
    names_freed: u64,
    /// The names of those among them that were kept in the log.
    names: FxHashSet<(VhostId, QueueName)>,
    /// The same of exchanges.
    exchange_names: FxHashSet<(VhostId, ExchangeName)>,
    /// Virtual hosts that are gone, but for what is in them.
    vhosts: VecDeque<(VhostId, VhostName)>,
}

/// What has nothing left but bindings.
#[derive(Debug)]
enum Unbinding {
    Queue(Box<Queue>),
    Exchange(VhostId, LeavingExchange),
}

impl Removals {
    pub(crate) fn is_empty(&self) -> bool {
        self.ownerless.is_empty()
            && self.queues.is_empty()
            && self.unbinding.is_empty()
            && self.vhosts.is_empty()
    }

    pub(crate) fn add_ownerless(&mut self, queues: Vec<QueueId>) {
        self.ownerless.extend(queues);
    }

    pub(crate) fn has_ownerless(&self) -> bool {
        !self.ownerless.is_empty()
    }

    pub(crate) fn next_ownerless(&mut self) -> Option<QueueId> {
        self.ownerless.pop_front()
    }

    pub(crate) fn add(&mut self, queue: Box<Queue>) {
        if queue.keeps_messages() {
            self.names.insert((queue.vhost, queue.name.clone()));
        }
        self.queues.push_back(queue);
    }

    /// Returns the queue whose turn it is.
    pub(crate) fn first(&mut self) -> Option<&mut Queue> {
        self.queues.front_mut().map(|queue| &mut **queue)
    }

    /// None of its messages is left.
    pub(crate) fn begin_unbinding(&mut self) {
        self.unbinding.extend(self.queues.pop_front().map(Unbinding::Queue));
    }

    /// An exchange is gone, but for its bindings.
    pub(crate) fn add_exchange(&mut self, vhost: VhostId, exchange: LeavingExchange) {
        if exchange.durable {
            self.exchange_names.insert((vhost, exchange.name.clone()));
        }
        self.unbinding.push_back(Unbinding::Exchange(vhost, exchange));
    }

    /// Returns whose bindings are next, and whether the log has them.
    pub(crate) fn first_unbinding(&self) -> Option<(VhostId, Target, bool)> {
        self.unbinding.front().map(|unbinding| match unbinding {
            Unbinding::Queue(queue) => {
                (queue.vhost, Target::Queue(queue.id), queue.keeps_messages())
            }
            Unbinding::Exchange(vhost, exchange) => {
                (*vhost, Target::Exchange(exchange.key), exchange.durable)
            }
        })
    }

    /// Something else that is waited for like a name has come to its end.
    pub(crate) const fn note_change(&mut self) {
        self.names_freed += 1;
    }

    /// Returns how many names have become free.
    pub(crate) const fn names_freed(&self) -> u64 {
        self.names_freed
    }

    /// Nothing is left of that queue or exchange.
    pub(crate) fn finish_first(&mut self) {
        self.names_freed += 1;
        match self.unbinding.pop_front() {
            Some(Unbinding::Queue(queue)) if queue.keeps_messages() => {
                self.names.remove(&(queue.vhost, queue.name.clone()));
            }
            Some(Unbinding::Exchange(vhost, exchange)) if exchange.durable => {
                self.exchange_names.remove(&(vhost, exchange.name));
            }
            _ => {}
        }
    }

    pub(crate) fn add_vhost(&mut self, vhost: VhostId, name: VhostName) {
        self.vhosts.push_back((vhost, name));
    }

    /// Returns the virtual host whose turn it is.
    pub(crate) fn first_vhost(&self) -> Option<VhostId> {
        self.vhosts.front().map(|(vhost, _)| *vhost)
    }

    /// Nothing is left of that virtual host.
    pub(crate) fn finish_first_vhost(&mut self) {
        self.names_freed += 1;
        self.vhosts.pop_front();
    }

    /// Returns whether the log still has something that was in a virtual host of that name that is
    /// gone.
    pub(crate) fn holds_vhost(&self, name: &VhostName) -> bool {
        self.vhosts.iter().any(|(_, gone)| gone == name)
    }

    /// Returns whether the log still has bindings of a queue of that name that is gone.
    pub(crate) fn holds_name(&self, vhost: VhostId, name: &str) -> bool {
        !self.names.is_empty()
            && QueueName::parse(name).is_ok_and(|name| self.names.contains(&(vhost, name)))
    }

    /// Returns the same as [`Removals::holds_name`], of an exchange.
    pub(crate) fn holds_exchange_name(&self, vhost: VhostId, name: &str) -> bool {
        !self.exchange_names.is_empty()
            && ExchangeName::parse(name)
                .is_ok_and(|name| self.exchange_names.contains(&(vhost, name)))
    }
}

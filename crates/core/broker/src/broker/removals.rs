//! Taking queues and exchanges away: at once for everybody, and bit by bit what belongs to them.

use quelea_model::{QueueId, VhostName};

use super::Broker;
use crate::ids::{ChannelId, VhostId};
use crate::messaging::Messaging;
use crate::routing::router::Router;
use crate::work::{STEPS_PER_BINDING, STEPS_PER_QUEUE};

impl Broker {
    /// Deletes a queue: its consumers are notified, its messages and bindings go, as many of them at once
    /// as this turn has steps left for.
    pub(super) fn remove_queue(&mut self, id: QueueId) {
        self.take_out_queue(id);
        self.go_on_removing();
    }

    /// The exclusive queues of a connection that is closed go, as many at once as this turn has steps
    /// left for.
    pub(super) fn remove_ownerless(&mut self, queues: Vec<QueueId>) {
        self.removals.add_ownerless(queues);
        self.go_on_removing();
    }

    /// Exchanges whose removal has begun, by a client or since they auto-delete: their bindings go, as many at
    /// once as this turn has steps left for.
    pub(super) fn remove_exchanges(&mut self, vhost: VhostId) {
        self.work.spend(self.routing.router_mut(vhost).map_or(0, Router::take_steps));
        if self.add_leaving_exchanges(vhost) {
            self.go_on_removing();
        }
    }

    pub(super) fn add_leaving_exchanges(&mut self, vhost: VhostId) -> bool {
        let begun = self.routing.take_begun(vhost);
        let any = !begun.is_empty();
        begun.into_iter().for_each(|exchange| self.removals.add_exchange(vhost, exchange));
        for (vhost, exchange) in self.routing.take_auto_deleted(vhost) {
            self.note_exchange_end(vhost, &exchange);
        }
        any
    }

    /// A virtual host is gone for everybody who asks for it by its name; what is in it goes.
    pub(super) fn remove_vhost(&mut self, vhost: VhostId, name: VhostName) {
        self.removals.add_vhost(vhost, name);
        self.go_on_removing();
    }

    /// Finds the queue of that name. One whose owner is gone is taken out first: it is not there
    /// any more for anybody who asks for it.
    pub(super) fn find_live_queue(&mut self, vhost: VhostId, name: &str) -> Option<QueueId> {
        let id = self.messaging.queues.find(vhost, name)?;
        let Messaging { queues, clients, .. } = &self.messaging;
        let owner = queues.get(id).and_then(|queue| queue.owner);
        if owner.is_some_and(|owner| !clients.connections.contains_key(owner)) {
            self.take_out_queue(id);
            return None;
        }
        Some(id)
    }

    /// Returns whether a queue of that name cannot be declared yet, since one that was deleted has left
    /// bindings in the log: try again after [`Broker::run`].
    #[must_use]
    pub fn is_queue_being_deleted(&self, channel: ChannelId, name: &str) -> bool {
        let channel = self.messaging.clients.channel(channel);
        channel.is_ok_and(|channel| self.removals.holds_name(channel.vhost, name))
    }

    /// Returns the same as [`Broker::is_queue_being_deleted`], for who has no channel.
    #[must_use]
    pub fn is_queue_being_deleted_in(&self, vhost: &str, name: &str) -> bool {
        self.routing.vhost_id(vhost).is_some_and(|vhost| self.removals.holds_name(vhost, name))
    }

    /// Returns whether an exchange of that name cannot be declared yet, since one that was deleted has left
    /// bindings in the log: try again after [`Broker::run`].
    #[must_use]
    pub fn is_exchange_being_deleted_in(&self, vhost: &str, name: &str) -> bool {
        let vhost = self.routing.vhost_id(vhost);
        vhost.is_some_and(|vhost| self.removals.holds_exchange_name(vhost, name))
    }

    /// Returns whether a virtual host of that name cannot be made yet, since what was in one that is gone is
    /// still being deleted: try again after [`Broker::run`].
    #[must_use]
    pub fn is_vhost_being_deleted(&self, name: &str) -> bool {
        VhostName::parse(name).is_ok_and(|name| self.removals.holds_vhost(&name))
    }

    /// A queue is gone for everybody, and in the log with all that cannot be left there without it: a
    /// FIFO queue without its attributes would be another queue.
    fn take_out_queue(&mut self, id: QueueId) {
        let Messaging { queues, clients, receives, log, effects, purged, .. } = &mut self.messaging;
        let Some(mut queue) = queues.remove(id) else {
            return;
        };
        self.churn.queues_deleted += 1;
        self.work.spend(STEPS_PER_QUEUE);
        receives.fail(effects, queue.receives.drain());
        log.store.begin_atomic();
        self.move_tasks.remove_queue(log, &queue);
        if queue.keeps_messages() {
            if let Some(attributes) = queue.stored_attributes() {
                log.unpersist(&attributes);
            }
            log.unpersist(&queue.stored());
            log.store.append_queue_deleted(id);
        }
        log.store.end_atomic();
        self.routing.begin_queue_removal(queue.vhost, id);
        if let Some(owner) = queue.owner.and_then(|owner| clients.connections.get_mut(owner)) {
            owner.exclusive_queues.retain(|other| *other != id);
        }
        clients.answer_empty(effects, &queue.gets);
        clients.cancel_consumers(queues, effects, queue.consumers.iter());
        if let Some(mut groups) = queue.groups.take() {
            purged.add_groups(groups.keep_only(std::iter::empty()));
        }
        queues.keep_dead_letters(&mut queue);
        self.removals.add(queue);
    }

    /// Goes on with what is being removed and was purged, within this turn's steps. True: there was something to do, and
    /// there may be more, or somebody waits for its end.
    pub(super) fn go_on_removing(&mut self) -> bool {
        let before = self.work.left();
        let Messaging { purged, log, .. } = &mut self.messaging;
        let is_idle = purged.is_empty() && self.removals.is_empty();
        let purged = purged.release_some(&mut *log.store, before as usize);
        self.work.spend(purged as u64);
        while self.work.left() > 0 {
            // This takes no room in the log: it makes some.
            if let Some(queue) = self.removals.first() {
                let max = self.work.left() as usize;
                let released = queue.release_some(&mut *self.messaging.log.store, max);
                self.work.spend(released as u64);
                if released < max {
                    self.removals.begin_unbinding();
                }
            } else if let Some(id) = self.removals.next_ownerless() {
                self.take_out_queue(id);
            } else if !self.removals.is_empty() {
                if !self.go_on_unbinding() {
                    // The store's next job is done at some time, and leads here again.
                    return self.work.left() < before;
                }
            } else {
                break;
            }
        }
        !is_idle
    }

    /// Takes away some bindings of what is gone. False: the log has no room for that now.
    fn go_on_unbinding(&mut self) -> bool {
        let Messaging { log, .. } = &mut self.messaging;
        let has_room = log.has_room(self.config.store_pending_bytes_max);
        let Some((vhost, target, is_kept)) = self.removals.first_unbinding() else {
            if let Some(vhost) = self.removals.first_vhost().filter(|_| has_room) {
                self.go_on_removing_vhost(vhost);
            }
            return has_room;
        };
        let may_append = has_room || !is_kept;
        let max = (self.work.left() / STEPS_PER_BINDING).max(1) as usize;
        // Without room it is found out whether there was anything left.
        let max = if may_append { max } else { 0 };
        let (removed, is_done) = self.routing.go_on_removing(log, vhost, target, max);
        self.work.spend(removed as u64 * STEPS_PER_BINDING);
        if is_done {
            self.removals.finish_first();
        }
        self.add_leaving_exchanges(vhost);
        may_append || is_done
    }

    /// Takes away some of a virtual host of which no queue is left, or finds that one is: its clients may
    /// have gone on until their connections were closed.
    fn go_on_removing_vhost(&mut self, vhost: VhostId) {
        let Messaging { queues, log, .. } = &mut self.messaging;
        let left = queues.in_vhost(vhost).map(|queues| queues.by_name.values().copied());
        let left: Vec<QueueId> = left.into_iter().flatten().collect();
        if !left.is_empty() {
            return self.removals.add_ownerless(left);
        }
        let max = (self.work.left() / STEPS_PER_BINDING).max(1) as usize;
        let (removed, is_done) = self.routing.go_on_removing_vhost(log, vhost, max);
        self.work.spend(removed as u64 * STEPS_PER_BINDING);
        if is_done {
            queues.remove_vhost(vhost);
            self.removals.finish_first_vhost();
        }
    }
}

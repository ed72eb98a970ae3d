//! Emptying and deleting queues.

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{Drained, Durability, Ticket};

use crate::Broker;
use crate::access::Operation;
use crate::effect::Effect;
use crate::error::{NoSuchQueueId, QueueError, QueueInUse};
use crate::find_queue::FindQueueError;
use crate::ids::ChannelId;
use crate::queue::Queue;
use crate::queue_attributes::stored_attributes;
use crate::reply::{Purged, QueueDeleted};
use crate::topology::{Item, StoredQueue};

/// What a purge takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purge {
    /// What waits for a consumer, as AMQP has it.
    Ready,
    /// What was received or is delayed, too, as SQS has it.
    ReadyAndHidden,
}

impl Purge {
    /// Whether there is nothing to take.
    fn is_idle(self, queue: &Queue) -> bool {
        queue.ready.is_empty() && (self == Self::Ready || queue.hidden.is_empty())
    }
}

impl Broker {
    /// queue.purge: ready messages go; unacknowledged ones stay.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn purge_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
    ) -> Result<Purged, QueueError> {
        let id = self.find_queue(channel, name, Operation::Read)?;
        Ok(self.empty_queue(id, now, Purge::Ready))
    }

    /// Empties a queue of all but what AMQP clients have not settled: messages in flight through SQS
    /// and delayed ones go too.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn purge_queue_by_id(
        &mut self,
        now: Timestamp,
        id: QueueId,
    ) -> Result<Purged, NoSuchQueueId> {
        let queue = self.queues.get_mut(&id).ok_or(NoSuchQueueId { queue: id })?;
        queue.purged_at = Some(now);
        Ok(self.empty_queue(id, now, Purge::ReadyAndHidden))
    }

    /// queue.delete. A queue that is not there is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn delete_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<QueueDeleted, QueueError> {
        let id = match self.find_queue(channel, name, Operation::Configure) {
            Ok(id) => id,
            Err(FindQueueError::NoSuchQueue(_)) => {
                return Ok(QueueDeleted { messages: 0, ticket: Ticket::NONE });
            }
            Err(error) => return Err(error.into()),
        };
        self.delete_found(id, if_unused, if_empty, now)
    }

    fn delete_found(
        &mut self,
        id: QueueId,
        if_unused: bool,
        if_empty: bool,
        now: Timestamp,
    ) -> Result<QueueDeleted, QueueError> {
        self.dispatch(id, now);
        let Some(queue) = self.queues.get(&id) else {
            return Ok(QueueDeleted { messages: 0, ticket: Ticket::NONE });
        };
        let problem = if if_unused && !queue.consumers.is_empty() {
            Some("in use")
        } else if if_empty && !queue.ready.is_empty() {
            Some("not empty")
        } else {
            None
        };
        if let Some(problem) = problem {
            let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
            return Err(QueueInUse { vhost, queue, problem }.into());
        }
        let messages = u32::try_from(queue.ready.len()).unwrap_or(u32::MAX);
        let keeps = queue.keeps_messages();
        self.remove_queue(id);
        let ticket = if keeps { self.ticket(Durability::Fsync) } else { Ticket::NONE };
        Ok(QueueDeleted { messages, ticket })
    }

    fn empty_queue(&mut self, id: QueueId, now: Timestamp, purge: Purge) -> Purged {
        // Consumers that could already have taken what is there come first.
        self.dispatch(id, now);
        self.flush_settled();
        // Looking for what is kept goes through all channels: not for a queue that has nothing.
        let is_logged =
            self.queues.get(&id).is_some_and(|q| q.keeps_messages() && !purge.is_idle(q));
        if purge == Purge::ReadyAndHidden
            && let Some(queue) = self.queues.get_mut(&id)
        {
            for message in queue.hidden.drain() {
                if let Some(groups) = &mut queue.groups {
                    groups.remove_hidden(message.entry.seq, 0, now);
                }
                self.store.release(&message.entry);
            }
        }
        let kept = if is_logged { self.unsettled_of(id) } else { Vec::new() };
        let Some(queue) = self.queues.get_mut(&id) else {
            return Purged { messages: 0, ticket: Ticket::NONE };
        };
        let messages = u32::try_from(queue.ready.len()).unwrap_or(u32::MAX);
        let keeps = queue.keeps_messages();
        if is_logged || messages > 0 {
            let store = &mut self.store;
            queue.ready.drain(&mut |removed| match removed {
                Drained::Entry(message) => store.release(&message.entry),
                Drained::PagedRange(range) => store.release_paged_range(&range),
            });
            queue.hidden.forget_all();
            if let Some(groups) = &mut queue.groups {
                groups.clear_visible();
            }
            if keeps {
                self.store.append_purge(id, &kept);
                self.note_durability(Durability::Fsync);
            }
        }
        self.follow_up(id);
        let ticket = if keeps && is_logged { self.ticket(Durability::Fsync) } else { Ticket::NONE };
        Purged { messages, ticket }
    }

    /// Messages of a queue that are delivered or on their way elsewhere: a purge leaves them.
    fn unsettled_of(&self, id: QueueId) -> Vec<Seq> {
        let Some(queue) = self.queues.get(&id) else {
            return Vec::new();
        };
        let hidden = queue.hidden.iter().map(|hidden| &hidden.message);
        let moving = queue.transit.iter().chain(&queue.unreadable).chain(hidden);
        let mut kept: Vec<Seq> = moving
            .map(|message| message.entry)
            .filter(|entry| entry.is_durable())
            .map(|entry| entry.seq)
            .collect();
        if queue.unacked > 0 {
            let channels = self.clients.channels.iter();
            let unacked = channels.flat_map(|(_, channel)| channel.unacked.iter());
            let durable = unacked.filter(|u| u.queue == id && u.entry.is_durable());
            kept.extend(durable.map(|unacked| unacked.entry.seq));
        }
        kept
    }

    /// Deletes a queue: its consumers are told, its messages and bindings go.
    pub(crate) fn remove_queue(&mut self, id: QueueId) {
        let Some(mut queue) = self.queues.remove(&id) else {
            return;
        };
        if let Some(timer) = queue.timer.take() {
            self.timers.remove(&(timer, id));
        }
        self.memory.forget(&mut queue);
        self.queues_epoch += 1;
        self.fail_receives(&mut queue);
        // All of it goes, or nothing: a FIFO queue without its attributes would be another queue.
        self.store.begin_atomic();
        self.forget_moves(&queue);
        if queue.keeps_messages()
            && let Some(item) = stored_attributes(&queue)
        {
            self.unpersist(&item);
        }
        self.release_messages(&mut queue);
        let stored = queue.keeps_messages().then(|| StoredQueue {
            vhost: queue.vhost_name.clone(),
            name: queue.name.clone(),
            id,
            auto_delete: queue.auto_delete,
            exclusive: false,
            created_at: queue.created_at,
            arguments: std::mem::take(&mut queue.table),
        });
        if let Some(vhost) = self.vhosts.get_mut(queue.vhost.0) {
            vhost.queues.remove(queue.name.as_str());
            vhost.counters.add(&queue.counters);
            let removed = vhost.router.remove_queue(id);
            self.forget_removed(queue.vhost, &removed);
        }
        if let Some(stored) = stored {
            self.unpersist(&Item::Queue(stored));
            self.store.append_queue_deleted(id);
        }
        self.store.end_atomic();
        if let Some(connection) = queue.owner.and_then(|c| self.clients.connections.get_mut(c.0)) {
            connection.exclusive_queues.retain(|other| *other != id);
        }
        self.answer_gets(&queue);
        self.cancel_consumers(queue.consumers.iter());
    }

    /// Balances the segments' accounts for all that the queue still had.
    fn release_messages(&mut self, queue: &mut Queue) {
        let store = &mut self.store;
        // Settled, but the log will not be told any more: it goes with the queue.
        queue.acks.drain(..).for_each(|entry| store.release(&entry));
        queue.hidden.drain().for_each(|message| store.release(&message.entry));
        let moving = queue.transit.drain();
        moving.chain(queue.unreadable.drain(..)).for_each(|message| store.release(&message.entry));
        queue.ready.drain(&mut |removed| match removed {
            Drained::Entry(message) => store.release(&message.entry),
            Drained::PagedRange(range) => store.release_paged_range(&range),
        });
    }

    /// Gets that wait for a message of a queue that is gone find it empty.
    fn answer_gets(&mut self, queue: &Queue) {
        for get in &queue.gets {
            if let Some(channel) = self.clients.channels.get(get.channel.0) {
                self.effects.push_back(Effect::GotEmpty {
                    connection: channel.connection,
                    channel: get.channel,
                    channel_number: channel.number,
                });
            }
        }
    }
}

//! Emptying queues.

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{Durability, Ticket};

use super::Messaging;
use crate::queues::queue::Queue;
use crate::reply::Purged;

/// What a purge takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purge {
    /// What waits for a consumer, as AMQP has it.
    Ready,
    /// What was received or is delayed, too, as SQS has it.
    ReadyAndInvisible,
}

impl Purge {
    /// Whether there is nothing to take.
    fn is_idle(self, queue: &Queue) -> bool {
        queue.ready.is_empty()
            && (self == Self::Ready || queue.invisible.is_empty())
            && queue.deduplications.is_none()
            && queue.unreadable() == 0
    }
}

impl Messaging {
    pub(crate) fn purge(&mut self, id: QueueId, now: Timestamp, purge: Purge) -> Purged {
        // Consumers that could already have taken what is there come first.
        self.dispatch(id, now);
        self.queues.flush_acks(&mut self.log);
        // Looking for what is kept goes through all channels: not for a queue that has nothing.
        let is_logged =
            self.queues.get(id).is_some_and(|q| q.keeps_messages() && !purge.is_idle(q));
        if purge == Purge::ReadyAndInvisible
            && let Some(queue) = self.queues.get_mut(id)
        {
            for message in queue.invisible.drain() {
                if let Some(groups) = &mut queue.groups {
                    groups.remove_in_flight(message.entry.seq, 0, now);
                }
                self.log.store.release(&message.entry);
            }
        }
        if let Some(queue) = self.queues.get_mut(id) {
            // What cannot be read is purged like what can, and what is sent anew has to arrive.
            queue.unreadable.drain(..).for_each(|message| self.log.store.release(&message.entry));
            queue.deduplications = None;
        }
        let kept = if is_logged { self.unsettled_of(id) } else { Vec::new() };
        let Some(queue) = self.queues.get_mut(id) else {
            return Purged { messages: 0, ticket: Ticket::NONE };
        };
        let messages = u32::try_from(queue.ready.len()).unwrap_or(u32::MAX);
        let keeps = queue.keeps_messages();
        if is_logged || messages > 0 {
            self.purged.push_back(queue.take_ready());
            queue.invisible.forget_all();
            if let Some(groups) = &mut queue.groups {
                groups.clear_visible();
            }
            if keeps {
                self.log.store.append_purge(id, &kept);
                self.log.note_durability(Durability::Fsync);
            }
        }
        self.queues.reschedule(id);
        let ticket = self.topology_ticket(keeps && is_logged);
        Purged { messages, ticket }
    }

    /// Messages of a queue that are delivered or on their way elsewhere: a purge leaves them.
    fn unsettled_of(&self, id: QueueId) -> Vec<Seq> {
        let Some(queue) = self.queues.get(id) else {
            return Vec::new();
        };
        let invisible = queue.invisible.iter().map(|invisible| &invisible.message);
        let moving = queue.dead_letters.iter().chain(invisible);
        let mut kept: Vec<Seq> = moving
            .map(|message| message.entry)
            .filter(|entry| entry.is_durable())
            .map(|entry| entry.seq)
            .collect();
        if queue.unacked > 0 {
            let channels = self.clients.channels.values();
            let unacked = channels.flat_map(|channel| channel.unacked.iter());
            let durable = unacked.filter(|u| u.queue == id && u.entry.is_durable());
            kept.extend(durable.map(|unacked| unacked.entry.seq));
        }
        kept
    }
}

//! Emptying queues.

use std::collections::VecDeque;

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{Durability, Entry, QueuedMessage, Store, Ticket};

use super::Messaging;
use crate::queues::queue::groups::ForgottenGroups;
use crate::queues::queue::ready_messages::ReadyMessages;
use crate::queues::queue::{InvisibleMessages, Queue, release};
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
    /// Returns whether there is nothing to take.
    fn is_idle(self, queue: &Queue) -> bool {
        queue.ready.is_empty()
            && (self == Self::Ready || queue.invisible.is_empty())
            && queue.deduplications.is_none()
            && queue.unreadable() == 0
    }
}

/// What was purged, and is still in memory and in the segments' accounts.
#[derive(Debug, Default)]
pub(crate) struct PurgedMessages(VecDeque<Remains>);

#[derive(Debug)]
enum Remains {
    Ready(ReadyMessages),
    Invisible(InvisibleMessages),
    Unreadable(Vec<QueuedMessage>),
    Groups(Box<ForgottenGroups>),
}

impl PurgedMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Queues that are gone leave their groups here, too.
    pub(crate) fn add_groups(&mut self, groups: ForgottenGroups) {
        self.0.push_back(Remains::Groups(Box::new(groups)));
    }

    /// Takes up to `max` messages out of memory and accounts. Returns how many; fewer than `max` if there are no
    /// more.
    pub(crate) fn release_some(&mut self, store: &mut dyn Store, max: usize) -> usize {
        let mut released = 0;
        while let Some(first) = self.0.front_mut() {
            while released < max && first.release_one(store) {
                released += 1;
            }
            if released == max {
                break;
            }
            self.0.pop_front();
        }
        released
    }
}

impl Remains {
    /// Releases one message, or one other thing that is left. False: there are no more.
    fn release_one(&mut self, store: &mut dyn Store) -> bool {
        let message = match self {
            Self::Ready(ready) => {
                let removed = ready.pop_any();
                removed.iter().for_each(|removed| release(store, removed));
                return removed.is_some();
            }
            Self::Groups(groups) => return groups.drop_one(),
            Self::Invisible(invisible) => match invisible.pop() {
                None => return invisible.forget_one(),
                message => message,
            },
            Self::Unreadable(messages) => messages.pop(),
        };
        message.iter().for_each(|message| store.release(&message.entry));
        message.is_some()
    }
}

impl Messaging {
    /// Returns how many messages it had to look at, too: those that it leaves.
    pub(crate) fn purge(&mut self, id: QueueId, now: Timestamp, purge: Purge) -> (Purged, u64) {
        // Consumers that could already have taken what is there come first.
        self.dispatch_before_decision(id, now);
        self.queues.flush_acks(&mut self.log);
        // Looking for what is kept goes through all channels: not for a queue that has nothing.
        let is_logged =
            self.queues.get(id).is_some_and(|q| q.keeps_messages() && !purge.is_idle(q));
        let Some(queue) = self.queues.get_mut(id) else {
            return (Purged { messages: 0, ticket: Ticket::NONE }, 0);
        };
        let remains = &mut self.purged.0;
        if purge == Purge::ReadyAndInvisible {
            remains.push_back(Remains::Invisible(std::mem::take(&mut queue.invisible)));
        }
        // What cannot be read is purged like what can, and what is sent anew has to arrive.
        remains.push_back(Remains::Unreadable(std::mem::take(&mut queue.unreadable)));
        queue.deduplications = None;
        let messages = u32::try_from(queue.ready.len()).unwrap_or(u32::MAX);
        let takes_ready = is_logged || messages > 0;
        if takes_ready {
            remains.push_back(Remains::Ready(queue.take_ready()));
            remains.push_back(Remains::Invisible(queue.invisible.forget_all()));
        }
        let takes_any = takes_ready || purge == Purge::ReadyAndInvisible;
        let has_groups = queue.groups.is_some() && takes_any;
        let kept = if is_logged || has_groups { self.unsettled_of(id) } else { Vec::new() };
        if has_groups && let Some(groups) = self.queues.groups_mut(id) {
            let forgotten = groups.keep_only(kept.iter().map(|entry| entry.seq));
            self.purged.add_groups(forgotten);
        }
        if is_logged {
            let durable = kept.iter().filter(|entry| entry.is_durable());
            let durable: Vec<Seq> = durable.map(|entry| entry.seq).collect();
            self.log.store.append_purge(id, &durable);
            self.log.note_durability(Durability::Fsync);
        }
        self.queues.reschedule(id);
        let ticket = self.topology_ticket(is_logged);
        (Purged { messages, ticket }, kept.len() as u64)
    }

    /// Returns the messages of a queue that are delivered or on their way elsewhere: a purge leaves
    /// them.
    fn unsettled_of(&self, id: QueueId) -> Vec<Entry> {
        let Some(queue) = self.queues.get(id) else {
            return Vec::new();
        };
        let invisible = queue.invisible.iter().map(|invisible| &invisible.message);
        let moving = queue.dead_letters.iter().chain(invisible);
        let mut kept: Vec<Entry> = moving.map(|message| message.entry).collect();
        if queue.unacked > 0 {
            let channels = self.clients.channels.values();
            let unacked = channels.flat_map(|channel| channel.unacked.iter());
            kept.extend(unacked.filter(|u| u.queue == id).map(|unacked| unacked.entry));
        }
        kept
    }
}

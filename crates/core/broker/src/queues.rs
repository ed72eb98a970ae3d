//! The queues: found by number and by name, scheduled when they have something to do, counted in
//! memory, and read back from the log. Nothing here knows a client or an exchange.

mod arrival_times;
mod browse;
mod leaving;
mod memory;
pub(crate) mod queue;
mod read_groups;
mod reads;
mod receipts;
mod schedule;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use quelea_model::{QueueId, QueueName, Seq, Timestamp, VhostName};
use quelea_store::{LoadError, QueuedMessage, Recovered};
use rustc_hash::FxHashMap;
use slotmap::SecondaryMap;

use crate::config::BrokerConfig;
use crate::ids::VhostId;
use crate::log::Log;
use crate::report::MessageCounters;
use arrival_times::ArrivalTimes;
use browse::Browses;
pub(crate) use memory::Memory;
use queue::attributes::QueueAttributes;
use queue::groups::{Groups, NO_GROUP, group_of};
use queue::{NewQueue, Queue};
use reads::Reads;
pub(crate) use schedule::Schedule;

/// All queues, and what there is to do for them.
#[derive(Debug)]
pub(crate) struct Queues {
    config: Arc<BrokerConfig>,
    by_id: FxHashMap<QueueId, Box<Queue>>,
    by_vhost: SecondaryMap<VhostId, VhostQueues>,
    /// Of queues that are gone, their dead letters.
    leaving: FxHashMap<QueueId, Box<Queue>>,
    pub(crate) schedule: Schedule,
    pub(crate) memory: Memory,
    reads: Reads,
    browses: Browses,
    next_seq: Seq,
    arrival_times: ArrivalTimes,
    /// Deliveries are not written to the log, so after a crash any older message may have been out:
    /// clients learn that it may, as from RabbitMQ.
    maybe_delivered_below: Seq,
    next_id: QueueId,
    /// Counts changes of queues and their attributes.
    epoch: u64,
}

/// The queues of one virtual host.
#[derive(Debug, Default)]
pub(crate) struct VhostQueues {
    pub(crate) by_name: FxHashMap<QueueName, QueueId>,
    /// The same in the order of the names, for those who list them page by page.
    pub(crate) in_order: BTreeMap<QueueName, QueueId>,
    /// What queues counted that are gone.
    pub(crate) counters: MessageCounters,
}

impl VhostQueues {
    /// Returns the names that begin with `prefix` and sort after `after`, in order.
    pub(crate) fn names_after(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&QueueName, QueueId)> {
        let from = match after.filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        self.in_order
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(move |(name, _)| name.as_str().starts_with(prefix))
            .map(|(name, id)| (name, *id))
    }
}

impl Queues {
    /// Creates it without queues; numbers go on where the log ends.
    pub(crate) fn new(config: Arc<BrokerConfig>, recovered: &Recovered) -> Self {
        let next_seq = recovered.next_seq;
        Self {
            config,
            by_id: FxHashMap::default(),
            by_vhost: SecondaryMap::new(),
            leaving: FxHashMap::default(),
            schedule: Schedule::default(),
            memory: Memory::default(),
            reads: Reads::recovered(&recovered.damage),
            browses: Browses::default(),
            next_seq,
            arrival_times: ArrivalTimes::default(),
            maybe_delivered_below: if recovered.after_crash { next_seq } else { Seq(0) },
            next_id: recovered.next_queue,
            epoch: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub(crate) fn contains(&self, id: QueueId) -> bool {
        self.by_id.contains_key(&id)
    }

    #[inline]
    pub(crate) fn get(&self, id: QueueId) -> Option<&Queue> {
        self.by_id.get(&id).map(|queue| &**queue)
    }

    /// Returns the groups of a queue's messages, where they matter.
    pub(crate) fn groups_mut(&mut self, id: QueueId) -> Option<&mut Groups> {
        self.get_mut(id)?.groups.as_deref_mut()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        self.by_id.get_mut(&id).map(|queue| &mut **queue)
    }

    /// Returns a queue together with the schedule that it may enter.
    #[inline]
    pub(crate) fn with_schedule(&mut self, id: QueueId) -> Option<(&mut Queue, &mut Schedule)> {
        let queue = self.by_id.get_mut(&id)?;
        Some((queue, &mut self.schedule))
    }

    /// Returns a queue together with the totals of the memory.
    #[inline]
    pub(crate) fn with_memory(&mut self, id: QueueId) -> Option<(&mut Queue, &mut Memory)> {
        let queue = self.by_id.get_mut(&id)?;
        Some((queue, &mut self.memory))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_id.values().map(|queue| &**queue)
    }

    /// Returns the numbers of those that `which` names.
    pub(crate) fn ids_of(&self, which: impl Fn(&Queue) -> bool) -> Vec<QueueId> {
        self.iter().filter(|queue| which(queue)).map(|queue| queue.id).collect()
    }

    /// Returns the numbers of the queues that hold most of something, most first.
    pub(crate) fn ids_by(&self, bytes: impl Fn(&Queue) -> usize) -> Vec<QueueId> {
        let mut queues: Vec<_> = self
            .iter()
            .map(|queue| (bytes(queue), queue.id))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        queues.sort_unstable_by(|a, b| b.cmp(a));
        queues.into_iter().map(|(_, id)| id).collect()
    }

    pub(crate) fn in_vhost(&self, vhost: VhostId) -> Option<&VhostQueues> {
        self.by_vhost.get(vhost)
    }

    /// Returns the number of the queue of that name.
    pub(crate) fn find(&self, vhost: VhostId, name: &str) -> Option<QueueId> {
        self.by_vhost.get(vhost)?.by_name.get(name).copied()
    }

    pub(crate) fn add_vhost(&mut self, vhost: VhostId) {
        self.by_vhost.insert(vhost, VhostQueues::default());
    }

    /// Forgets a virtual host, whose queues have to be gone.
    pub(crate) fn remove_vhost(&mut self, vhost: VhostId) {
        self.by_vhost.remove(vhost);
    }

    /// Takes a number for a new queue.
    pub(crate) const fn take_id(&mut self) -> QueueId {
        let id = self.next_id;
        self.next_id = QueueId(id.0 + 1);
        id
    }

    /// A number of the log is in use.
    pub(crate) fn note_id(&mut self, id: QueueId) {
        self.next_id = self.next_id.max(QueueId(id.0 + 1));
    }

    /// Takes a number for a new message.
    #[inline]
    pub(crate) fn take_seq(&mut self, now: Timestamp) -> Seq {
        let seq = self.next_seq;
        self.next_seq = seq.next();
        self.arrival_times.note(seq, now);
        seq
    }

    /// Returns when the oldest message that is ready came; `None`: there is none, or it came before
    /// the start.
    pub(crate) fn oldest_arrived_at(&self, queue: &Queue) -> Option<Timestamp> {
        self.arrived_at(queue.ready.oldest_seq()?)
    }

    /// Returns about when the message of this number came; `None`: before the start.
    pub(crate) fn arrived_at(&self, seq: Seq) -> Option<Timestamp> {
        self.arrival_times.of(seq)
    }

    /// Returns the number of the next message.
    pub(crate) const fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Returns the number below which messages may have been delivered before the last crash.
    #[inline]
    pub(crate) const fn maybe_delivered_below(&self) -> Seq {
        self.maybe_delivered_below
    }

    /// Returns a number that changes with every queue and its attributes.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Puts a queue among the others.
    pub(crate) fn add(&mut self, new: NewQueue) {
        let queue = Queue::new(new);
        let id = queue.id;
        if let Some(vhost) = self.by_vhost.get_mut(queue.vhost) {
            vhost.by_name.insert(queue.name.clone(), id);
            vhost.in_order.insert(queue.name.clone(), id);
        }
        self.epoch += 1;
        self.by_id.insert(id, Box::new(queue));
        self.reschedule(id);
    }

    /// Takes a queue out; what it holds is the caller's matter.
    pub(crate) fn remove(&mut self, id: QueueId) -> Option<Box<Queue>> {
        let mut queue = self.by_id.remove(&id)?;
        self.schedule.forget(&mut queue);
        self.memory.forget(&mut queue);
        self.epoch += 1;
        if let Some(vhost) = self.by_vhost.get_mut(queue.vhost) {
            vhost.by_name.remove(queue.name.as_str());
            vhost.in_order.remove(&queue.name);
            vhost.counters.add(&queue.counters);
        }
        Some(queue)
    }

    /// Marks a queue as having something to do.
    pub(crate) fn wake(&mut self, id: QueueId) {
        if let Some(queue) = self.by_id.get_mut(&id) {
            self.schedule.wake(queue);
        }
    }

    /// After any change of a queue: counts its memory, and notes what is left to do for it.
    pub(crate) fn reschedule(&mut self, id: QueueId) {
        match self.by_id.get_mut(&id) {
            Some(queue) => {
                self.memory.count(queue);
                self.schedule.update(queue);
            }
            None => self.reschedule_leaving(id),
        }
    }

    /// Counts a queue's memory, and leaves the rest to [`Queues::reschedule`].
    pub(crate) fn count_memory(&mut self, id: QueueId) {
        if let Some(queue) = self.by_id.get_mut(&id) {
            self.memory.count(queue);
        }
    }

    /// Makes sure that the queue is looked at when its next deadline has come.
    pub(crate) fn arm_timer(&mut self, id: QueueId) {
        if let Some(queue) = self.by_id.get_mut(&id) {
            self.schedule.arm_timer(queue);
        }
    }

    /// Wakes the queues whose time has come, until one is met that has been unused for so long that
    /// it is to be deleted: returned. Call it again then.
    pub(crate) fn fire_timers(&mut self, now: Timestamp) -> Option<QueueId> {
        while let Some(id) = self.schedule.pop_due(now) {
            let Some(queue) = self.by_id.get_mut(&id) else {
                continue;
            };
            queue.timer = None;
            if queue.unused_deadline().is_some_and(|deadline| deadline <= now) {
                return Some(id);
            }
            // Expired heads are dropped, and the timer set anew, when it is dispatched.
            self.schedule.wake(queue);
        }
        None
    }

    /// Takes the next queue with dead letters to move on, if there still are any.
    pub(crate) fn next_dead_lettering(&mut self) -> Option<QueueId> {
        let id = self.schedule.pop_dead_lettering()?;
        self.letter_source_mut(id)?.is_dead_lettering = false;
        Some(id)
    }

    /// Writes all acknowledgements to the log.
    pub(crate) fn flush_acks(&mut self, log: &mut Log) {
        while let Some(id) = self.schedule.pop_with_acks() {
            if let Some(queue) = self.by_id.get_mut(&id) {
                queue.has_acks = false;
                log.store.append_acks(id, &queue.acks);
                queue.acks.clear();
                // A burst's room is not kept for ever.
                queue.acks.shrink_to(1024);
            }
        }
    }

    /// Returns whether a queue takes one more message of that size without refusing it.
    pub(crate) fn has_room(&self, id: QueueId, body_bytes: usize) -> bool {
        self.get(id).is_some_and(|queue| {
            !queue.refuses_overflow() || !queue.would_overflow(1, body_bytes as u64)
        })
    }

    /// Returns the queue that messages are moved to that were received too often, if there is one,
    /// and how often they may be received before that.
    pub(crate) fn redrive_target(&self, id: QueueId) -> Option<(QueueId, u16)> {
        let queue = self.letter_source(id)?;
        let redrive = queue.settings().redrive.as_ref()?;
        Some((self.find(queue.vhost, &redrive.target)?, redrive.receives_max))
    }

    /// A message that was taken to be moved stays in its queue.
    pub(crate) fn put_back(&mut self, log: &mut Log, id: QueueId, message: QueuedMessage) {
        let Some((queue, schedule)) = self.with_schedule(id) else {
            return log.store.release(&message.entry);
        };
        let seq = message.entry.seq;
        if let Some(groups) = &mut queue.groups
            && !groups.knows(seq)
        {
            groups.add_visible(seq, message.body.as_deref().map_or(NO_GROUP, group_of));
        }
        // The checkpoint has passed the visible messages, and may have passed those that move.
        log.note_requeue(id, &message);
        queue.ready.insert(message);
        schedule.wake(queue);
    }

    /// Writes a queue's attributes, if it survives a restart.
    pub(crate) fn persist_attributes(&mut self, log: &mut Log, id: QueueId) {
        self.epoch += 1;
        let queue = self.get(id).filter(|queue| queue.keeps_messages());
        if let Some(item) = queue.and_then(Queue::stored_attributes) {
            log.persist(&item);
        }
    }

    /// Takes attributes, and acts on what they change.
    pub(crate) fn apply_attributes(
        &mut self,
        log: &mut Log,
        id: QueueId,
        attributes: QueueAttributes,
    ) {
        self.epoch += 1;
        if let Some(queue) = self.get_mut(id) {
            if let Some(durability) = attributes.settings.durability {
                queue.rules.durability = durability;
            }
            queue.attributes = Some(Box::new(attributes));
        }
        self.regroup(log, id);
    }

    /// Pages index entries out of the queues that hold most, until no more than `target` bytes are left.
    pub(crate) fn page_out(&mut self, target: usize) {
        for id in self.ids_by(|queue| queue.counted.index) {
            let excess = self.memory.index.saturating_sub(target);
            let Some(queue) = self.by_id.get_mut(&id).filter(|_| excess > 0) else {
                return;
            };
            if queue.groups.is_some() {
                // Any of its messages may be the next.
                continue;
            }
            queue.ready.page_out(excess);
            self.memory.count(queue);
        }
    }

    /// Takes what was set aside since the last call because it cannot be read.
    pub(crate) fn take_missed(&mut self) -> Vec<(VhostName, QueueName, LoadError)> {
        std::mem::take(&mut self.reads.unreported)
    }

    /// Returns how many messages could not be read since the start, and what was said last.
    pub(crate) fn unreadable(&self) -> (u64, Option<&str>) {
        (self.reads.failed, self.reads.last_error.as_deref())
    }
}

//! What messages take of the memory, and what is done when it is too much: bodies that the log has
//! are dropped, others are written to the log first, and index entries are paged out.

use quelea_model::limits::TTL_MS_MAX;
use quelea_model::{QueueId, Timestamp};
use quelea_store::{EntryFlags, NEVER, NewMessage, StoreState};

use crate::Broker;
use crate::channel::Channel;
use crate::config::BrokerConfig;
use crate::queue::Queue;
use crate::unacked::Unacked;

const _: () = assert!(TTL_MS_MAX < u64::MAX, "a deadline never reaches NEVER by itself");

/// Messages that are written out in one go before the store's backlog is looked at again.
const SPILL_MESSAGES: usize = 512;

/// What the totals hold of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueMemory {
    resident: usize,
    transit: usize,
    index: usize,
    held: usize,
}

/// Totals over all queues and channels, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Bodies of ready messages.
    pub(crate) resident: usize,
    /// Messages on their way to a dead-letter exchange, and hidden ones that the log does not have.
    /// They go by themselves, so nothing is written out for them, but publishers must not bring more than are moved on.
    transit: usize,
    /// Bodies that unsettled deliveries keep, since the log does not have them.
    pub(crate) unacked: usize,
    /// Index entries.
    pub(crate) index: usize,
    /// What is known of messages that are hidden, of groups, and of deduplication ids. It cannot be
    /// written out.
    pub(crate) held: usize,
    /// What there was of bodies, and of the index, after the last relief. Without more there is
    /// no use in another.
    body_floor: usize,
    index_floor: usize,
}

impl Memory {
    /// Brings a queue's share of the totals up to date.
    pub(crate) fn count(&mut self, queue: &mut Queue) {
        let now = QueueMemory {
            resident: queue.ready.resident_bytes(),
            transit: queue.transit.resident_bytes() + queue.hidden.resident_bytes(),
            index: queue.ready.index_bytes(),
            held: queue.held_bytes(),
        };
        self.resident = self.resident - queue.counted.resident + now.resident;
        self.transit = self.transit - queue.counted.transit + now.transit;
        self.index = self.index - queue.counted.index + now.index;
        self.held = self.held - queue.counted.held + now.held;
        queue.counted = now;
    }

    /// Takes a queue's share out of the totals: it goes.
    pub(crate) const fn forget(&mut self, queue: &mut Queue) {
        self.resident -= queue.counted.resident;
        self.transit -= queue.counted.transit;
        self.index -= queue.counted.index;
        self.held -= queue.counted.held;
        queue.counted = QueueMemory { resident: 0, transit: 0, index: 0, held: 0 };
    }

    /// A delivery waits for its acknowledgement.
    pub(crate) fn delivered(&mut self, channel: &mut Channel, unacked: &Unacked) {
        if let Some(body) = &unacked.body {
            self.unacked += body.resident_bytes();
            channel.unacked_resident += body.resident_bytes();
        }
    }

    /// A delivery does not wait any more, or its body was dropped.
    pub(crate) fn settled(&mut self, channel: &mut Channel, unacked: &Unacked) {
        if let Some(body) = &unacked.body {
            self.unacked -= body.resident_bytes();
            channel.unacked_resident -= body.resident_bytes();
        }
    }

    /// Whether it is time that publishers wait until what is here has been written out.
    pub(crate) const fn is_crowded(&self, config: &BrokerConfig) -> bool {
        self.resident + self.unacked + self.transit > config.resident_bytes_max / 2 * 3
            || self.held > config.held_bytes_max
    }

    /// Why publishers have to be stopped, if writing out does not help.
    pub(crate) fn stuck_reason(&self, config: &BrokerConfig) -> Option<String> {
        if self.held > config.held_bytes_max {
            let (bytes, max) = (self.held, config.held_bytes_max);
            return Some(format!(
                "memory: delayed messages, messages in flight, groups and deduplication ids take \
                 {bytes} bytes, {max} may be kept"
            ));
        }
        let bytes = self.resident + self.unacked;
        (bytes > config.resident_bytes_max.saturating_mul(2)).then(|| {
            let max = config.resident_bytes_max;
            format!("memory: {bytes} bytes of messages wait to be written out, {max} may be kept")
        })
    }
}

impl Broker {
    /// Brings memory back below its limits, as far as the store lets it.
    pub(crate) fn relieve_memory(&mut self, now: Timestamp) {
        let max = self.config.resident_bytes_max;
        let bytes = self.memory.resident + self.memory.unacked;
        if bytes > max && (self.may_spill() || bytes > self.memory.body_floor) {
            // An eighth of room, so that this is not done again for the next message.
            let target = max - max / 8;
            self.relieve_queues(target, now);
            self.relieve_channels(target, now);
            self.memory.body_floor = self.memory.resident + self.memory.unacked + max / 16;
        } else if bytes <= max {
            self.memory.body_floor = 0;
        }
        let index_max = self.config.index_bytes_max;
        if self.memory.index > index_max && self.memory.index > self.memory.index_floor {
            self.page_out(index_max - index_max / 8);
            self.memory.index_floor = self.memory.index + index_max / 16;
        } else if self.memory.index <= index_max {
            self.memory.index_floor = 0;
        }
    }

    /// The queues that hold most of something, most first.
    fn queues_by(&self, bytes: impl Fn(&Queue) -> usize) -> Vec<QueueId> {
        let mut queues: Vec<_> = self
            .queues
            .values()
            .map(|queue| (bytes(queue), queue.id))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        queues.sort_unstable_by(|a, b| b.cmp(a));
        queues.into_iter().map(|(_, id)| id).collect()
    }

    fn relieve_queues(&mut self, target: usize, now: Timestamp) {
        for id in self.queues_by(|queue| queue.counted.resident) {
            loop {
                let excess = (self.memory.resident + self.memory.unacked).saturating_sub(target);
                let Some(queue) = self.queues.get_mut(&id).filter(|_| excess > 0) else {
                    return;
                };
                queue.ready.evict(excess);
                self.memory.count(queue);
                if !self.may_spill() || !self.spill_ready(id, now) {
                    break;
                }
            }
        }
    }

    /// Whether the store can take messages that need not be in it.
    fn may_spill(&self) -> bool {
        *self.store.state() == StoreState::Healthy
            && self.atomic.is_none()
            && self.store.pending_bytes() < self.config.store_pending_bytes_max
    }

    /// Writes some messages of a queue that are only in memory. False if there is none.
    fn spill_ready(&mut self, id: QueueId, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get_mut(&id) else {
            return false;
        };
        let unstored = queue.ready.unstored(SPILL_MESSAGES);
        for message in &unstored {
            let location = self.store.append_message(NewMessage {
                seq: message.seq,
                queues: &[id],
                durable: false,
                enqueued_at: now,
                visible_at: None,
                expiries: message.expires_at.as_slice(),
                priority: message.priority,
                message: &message.message,
            });
            queue.ready.mark_stored(message.seq, location);
        }
        !unstored.is_empty()
    }

    /// Writes what unsettled deliveries keep in memory, of the channels that keep most.
    fn relieve_channels(&mut self, target: usize, now: Timestamp) {
        let mut channels: Vec<_> = self
            .clients
            .channels
            .iter()
            .map(|(key, channel)| (channel.unacked_resident, key))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        channels.sort_unstable_by(|a, b| b.cmp(a));
        for (_, key) in channels {
            if self.memory.resident + self.memory.unacked <= target || !self.may_spill() {
                return;
            }
            let Some(channel) = self.clients.channels.get_mut(key) else {
                continue;
            };
            let mut freed = 0;
            let wanted = (self.memory.resident + self.memory.unacked).saturating_sub(target);
            for (_, unacked) in channel.unacked.after_mut(0) {
                if freed >= wanted {
                    break;
                }
                let Some(body) = unacked.body.take() else {
                    continue;
                };
                freed += body.resident_bytes();
                let expiry = Some(unacked.expires_at).filter(|at| *at != NEVER);
                unacked.entry.location = self.store.append_message(NewMessage {
                    seq: unacked.entry.seq,
                    queues: &[unacked.queue],
                    durable: false,
                    enqueued_at: now,
                    visible_at: None,
                    expiries: expiry.as_slice(),
                    priority: unacked.entry.priority,
                    message: &body,
                });
                unacked.entry.flags = unacked.entry.flags.with(EntryFlags::STORED);
            }
            channel.unacked_resident -= freed;
            self.memory.unacked -= freed;
        }
    }

    fn page_out(&mut self, target: usize) {
        for id in self.queues_by(|queue| queue.counted.index) {
            let excess = self.memory.index.saturating_sub(target);
            let Some(queue) = self.queues.get_mut(&id).filter(|_| excess > 0) else {
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
}

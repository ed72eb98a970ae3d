//! What is done when messages take too much memory: bodies that the log has are dropped, others are
//! written to the log first, and index entries are paged out.

use quelea_model::{QueueId, Resident, Timestamp};
use quelea_store::{EntryFlags, NEVER};

use super::Messaging;

/// Messages that are written out in one go before the store's backlog is looked at again.
const SPILL_MESSAGES: usize = 512;

impl Messaging {
    /// Brings memory back below its limits, as far as the store lets it.
    pub(crate) fn relieve_memory(&mut self, now: Timestamp) {
        let config = &self.clients.config;
        let (max, index_max) = (config.resident_bytes_max, config.index_bytes_max);
        let bytes = self.queues.memory.bodies();
        if bytes > max && (self.may_spill() || bytes > self.queues.memory.body_floor) {
            // An eighth of room, so that this is not done again for the next message.
            let target = max - max / 8;
            self.relieve_queues(target, now);
            self.relieve_channels(target, now);
            self.queues.memory.body_floor = self.queues.memory.bodies() + max / 16;
        } else if bytes <= max {
            self.queues.memory.body_floor = 0;
        }
        let memory = &mut self.queues.memory;
        if memory.index > index_max && memory.index > memory.index_floor {
            self.queues.page_out(index_max - index_max / 8);
            self.queues.memory.index_floor = self.queues.memory.index + index_max / 16;
        } else if memory.index <= index_max {
            memory.index_floor = 0;
        }
    }

    fn relieve_queues(&mut self, target: usize, now: Timestamp) {
        for id in self.queues.ids_by(|queue| queue.counted.resident.all) {
            loop {
                let excess = self.queues.memory.bodies().saturating_sub(target);
                let Some((queue, memory)) = self.queues.with_memory(id).filter(|_| excess > 0)
                else {
                    return;
                };
                queue.ready.evict(excess);
                memory.count(queue);
                if !self.may_spill() || !self.spill_ready(id, now) {
                    break;
                }
            }
        }
    }

    fn may_spill(&self) -> bool {
        self.log.may_spill(self.clients.config.store_pending_bytes_max)
    }

    /// Writes some messages of a queue that are only in memory. False if there is none.
    fn spill_ready(&mut self, id: QueueId, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get_mut(id) else {
            return false;
        };
        let unstored = queue.ready.unstored(SPILL_MESSAGES);
        for message in &unstored {
            let key = (message.seq, message.priority);
            let location = self.log.spill(id, key, message.expires_at, &message.message, now);
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
            .map(|(key, channel)| (channel.unacked_resident.all, key))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        channels.sort_unstable_by(|a, b| b.cmp(a));
        for (_, key) in channels {
            if self.queues.memory.bodies() <= target || !self.may_spill() {
                return;
            }
            let Some(channel) = self.clients.channels.get_mut(key) else {
                continue;
            };
            let mut freed = Resident::default();
            let wanted = self.queues.memory.bodies().saturating_sub(target);
            for (_, unacked) in channel.unacked.after_mut(0) {
                if freed.all >= wanted {
                    break;
                }
                let Some(body) = unacked.body.take() else {
                    continue;
                };
                freed += body.resident();
                let expiry = Some(unacked.expires_at).filter(|at| *at != NEVER);
                let key = (unacked.entry.seq, unacked.entry.priority);
                unacked.entry.location = self.log.spill(unacked.queue, key, expiry, &body, now);
                unacked.entry.flags = unacked.entry.flags.with(EntryFlags::STORED);
            }
            channel.unacked_resident -= freed;
            self.queues.memory.unacked -= freed;
        }
    }
}

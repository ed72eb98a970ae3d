//! Queues that are gone while dead letters of theirs are still on their way: the bodies have to be read first, or the
//! turn had no steps left for them. Their rejection, or expiry, was confirmed already.

use quelea_model::QueueId;

use super::Queues;
use super::queue::Queue;

impl Queues {
    /// Keeps the dead letters of a queue that is gone, with what moves them on.
    pub(crate) fn keep_dead_letters(&mut self, queue: &mut Queue) {
        if !queue.dead_letters.is_empty() {
            self.leaving.insert(queue.id, Box::new(queue.split_off_dead_letters()));
            self.reschedule_leaving(queue.id);
        }
    }

    /// Returns a queue that has dead letters, whether it is gone or not.
    pub(crate) fn letter_source(&self, id: QueueId) -> Option<&Queue> {
        self.by_id.get(&id).or_else(|| self.leaving.get(&id)).map(|queue| &**queue)
    }

    /// Returns the same as [`Queues::letter_source`], to be changed.
    pub(crate) fn letter_source_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        let queue = match self.by_id.get_mut(&id) {
            None => self.leaving.get_mut(&id)?,
            Some(queue) => queue,
        };
        Some(&mut **queue)
    }

    /// After any change of the dead letters of a queue that is gone. Nothing is kept of it behind the last of them.
    pub(super) fn reschedule_leaving(&mut self, id: QueueId) {
        let Some(queue) = self.leaving.get_mut(&id) else {
            return;
        };
        if !queue.dead_letters.is_empty() {
            self.memory.count(queue);
            return self.schedule.list_dead_letters(queue);
        }
        self.memory.forget(queue);
        if let Some(vhost) = self.by_vhost.get_mut(queue.vhost) {
            vhost.counters.add(&queue.counters);
        }
        self.leaving.remove(&id);
    }
}

//! A queue's consumers: who they are, and whose turn it is.
//!
//! Those who may take a message stand in rings, one a priority; the one at the front of the highest
//! ring is served and goes to the back. One who cannot take any more is parked: it leaves its ring
//! and costs nothing until its channel or connection calls it back.

use std::collections::VecDeque;

use crate::ids::ConsumerId;

/// Consumers of equal priority that may take a message, the next one first.
#[derive(Debug)]
struct Ring {
    priority: i32,
    turns: VecDeque<ConsumerId>,
}

#[derive(Debug, Default)]
pub(crate) struct QueueConsumers {
    /// All, oldest first, with their priorities.
    all: Vec<(ConsumerId, i32)>,
    /// Highest priority first. Few: most queues have one.
    rings: Vec<Ring>,
    /// Consumes alone; others are refused.
    pub(crate) exclusive: Option<ConsumerId>,
    /// The one who gets all, in a queue with a single active consumer.
    pub(crate) single_active: Option<ConsumerId>,
}

impl QueueConsumers {
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ConsumerId> {
        self.all.iter().map(|(id, _)| *id)
    }

    /// Consumers that could take a message now, as far as is known.
    pub(crate) fn with_credit(&self) -> usize {
        self.rings.iter().map(|ring| ring.turns.len()).sum()
    }

    /// Notes a new consumer. It gets no turn before `call`.
    pub(crate) fn add(&mut self, id: ConsumerId, priority: i32) {
        self.all.push((id, priority));
    }

    /// Forgets a consumer.
    pub(crate) fn remove(&mut self, id: ConsumerId) {
        self.all.retain(|(other, _)| *other != id);
        self.park(id);
        if self.exclusive == Some(id) {
            self.exclusive = None;
        }
        if self.single_active == Some(id) {
            self.single_active = None;
        }
    }

    /// Puts a consumer at the end of its ring.
    pub(crate) fn call(&mut self, id: ConsumerId, priority: i32) {
        let at = self.rings.iter().position(|ring| ring.priority <= priority);
        let at = at.unwrap_or(self.rings.len());
        if self.rings.get(at).is_none_or(|ring| ring.priority != priority) {
            self.rings.insert(at, Ring { priority, turns: VecDeque::new() });
        }
        self.rings[at].turns.push_back(id);
    }

    /// Whose turn it is.
    #[inline]
    pub(crate) fn next(&self) -> Option<ConsumerId> {
        self.rings.iter().find_map(|ring| ring.turns.front().copied())
    }

    /// The one whose turn it was goes to the end of its ring.
    #[inline]
    pub(crate) fn rotate(&mut self) {
        if let Some(ring) = self.rings.iter_mut().find(|ring| !ring.turns.is_empty()) {
            ring.turns.rotate_left(1);
        }
    }

    /// Takes a consumer out of its ring. The one whose turn it is costs nothing to find.
    pub(crate) fn park(&mut self, id: ConsumerId) {
        for at in 0..self.rings.len() {
            let turns = &mut self.rings[at].turns;
            if turns.front() == Some(&id) {
                turns.pop_front();
            } else if let Some(place) = turns.iter().position(|other| *other == id) {
                turns.remove(place);
            } else {
                continue;
            }
            if turns.is_empty() && self.rings.len() > 1 {
                self.rings.remove(at);
            }
            return;
        }
    }

    /// Who becomes the single active consumer: the highest priority, among those the oldest.
    pub(crate) fn candidate(&self) -> Option<ConsumerId> {
        let best = self.all.iter().rev().max_by_key(|(_, priority)| *priority);
        best.map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Key;

    fn id(slot: u32) -> ConsumerId {
        ConsumerId(Key { slot, generation: 0 })
    }

    fn turns(consumers: &mut QueueConsumers, count: usize) -> Vec<u32> {
        (0..count)
            .filter_map(|_| {
                let next = consumers.next()?;
                consumers.rotate();
                Some(next.0.slot)
            })
            .collect()
    }

    fn with(consumers: &[(u32, i32)]) -> QueueConsumers {
        let mut queue = QueueConsumers::default();
        for (slot, priority) in consumers {
            queue.add(id(*slot), *priority);
            queue.call(id(*slot), *priority);
        }
        queue
    }

    #[test]
    fn consumers_of_equal_priority_take_turns() {
        let mut queue = with(&[(1, 0), (2, 0), (3, 0)]);
        assert_eq!(turns(&mut queue, 5), [1, 2, 3, 1, 2]);
        queue.park(id(3));
        assert_eq!(turns(&mut queue, 4), [1, 2, 1, 2]);
        queue.call(id(3), 0);
        assert_eq!(turns(&mut queue, 3), [1, 2, 3]);
    }

    #[test]
    fn lower_priorities_get_a_turn_when_the_higher_ones_are_parked() {
        let mut queue = with(&[(1, 0), (2, 10), (3, -5), (4, 10)]);
        assert_eq!(turns(&mut queue, 3), [2, 4, 2]);
        queue.park(id(2));
        queue.park(id(4));
        assert_eq!(turns(&mut queue, 2), [1, 1]);
        queue.park(id(1));
        assert_eq!(turns(&mut queue, 1), [3]);
        queue.remove(id(3));
        assert_eq!(queue.next(), None);
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn the_oldest_of_the_highest_priority_becomes_the_active_one() {
        let mut queue = with(&[(1, 0), (2, 5), (3, 5)]);
        assert_eq!(queue.candidate(), Some(id(2)));
        queue.remove(id(2));
        assert_eq!(queue.candidate(), Some(id(3)));
    }
}

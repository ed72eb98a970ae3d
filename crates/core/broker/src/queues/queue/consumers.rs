//! A queue's consumers: who they are, and whose turn it is.
//!
//! Those who may take a message stand in rings, one a priority; the one at the front of the highest
//! ring is served and goes to the back. One who cannot take any more is parked: it leaves its ring
//! and costs nothing until its channel or connection calls it back.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use crate::ids::ConsumerId;

/// Departed consumers that may stand in the rings before they are swept out.
const STALE_MAX: usize = 64;

/// How consumers are distinguished and ordered: by priority, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    priority: Reverse<i32>,
    age: u64,
    id: ConsumerId,
}

/// Consumers of equal priority that may take a message, the next one first.
#[derive(Debug)]
struct Ring {
    priority: i32,
    turns: VecDeque<Rank>,
}

#[derive(Debug, Default)]
pub(crate) struct QueueConsumers {
    all: BTreeSet<Rank>,
    /// Highest priority first. Few: most queues have one.
    rings: Vec<Ring>,
    /// Rings may hold so many consumers that are gone; taking them out at once would cost a
    /// search each.
    stale: usize,
    next_age: u64,
    /// Consumes alone; others are refused.
    pub(crate) exclusive: Option<ConsumerId>,
    /// The one who gets all, in a queue with a single active consumer.
    pub(crate) single_active: Option<ConsumerId>,
    /// Those that their channels keep credit for until the queue has been looked at; some may have had
    /// their delivery already.
    pub(crate) called: Vec<ConsumerId>,
}

impl QueueConsumers {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the consumers by priority, then by age.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ConsumerId> {
        self.all.iter().map(|rank| rank.id)
    }

    /// Returns how many consumers could take a message now, as far as is known.
    pub(crate) fn with_credit(&self) -> usize {
        let standing: usize = self.rings.iter().map(|ring| ring.turns.len()).sum();
        standing.saturating_sub(self.stale)
    }

    /// Notes a new consumer. It gets no turn before `call`.
    pub(crate) fn add(&mut self, id: ConsumerId, priority: i32) -> Rank {
        self.next_age += 1;
        let rank = Rank { priority: Reverse(priority), age: self.next_age, id };
        self.all.insert(rank);
        rank
    }

    /// Forgets a consumer; `stands` says whether it has a turn.
    pub(crate) fn remove(&mut self, rank: Rank, stands: bool) {
        self.all.remove(&rank);
        if self.exclusive == Some(rank.id) {
            self.exclusive = None;
        }
        if self.single_active == Some(rank.id) {
            self.single_active = None;
        }
        if stands {
            self.stale += 1;
            if self.stale > STALE_MAX && self.stale > self.all.len() {
                self.sweep();
            }
        }
    }

    /// Puts a consumer at the end of its ring.
    pub(crate) fn call(&mut self, rank: Rank) {
        let priority = rank.priority.0;
        let at = self.rings.iter().position(|ring| ring.priority <= priority);
        let at = at.unwrap_or(self.rings.len());
        if self.rings.get(at).is_none_or(|ring| ring.priority != priority) {
            self.rings.insert(at, Ring { priority, turns: VecDeque::new() });
        }
        self.rings[at].turns.push_back(rank);
    }

    /// Finds whose turn it is.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<ConsumerId> {
        loop {
            let rank = *self.rings.iter().find_map(|ring| ring.turns.front())?;
            if self.stale == 0 || self.all.contains(&rank) {
                return Some(rank.id);
            }
            self.stale -= 1;
            self.park();
        }
    }

    /// The one whose turn it was goes to the end of its ring.
    #[inline]
    pub(crate) fn rotate(&mut self) {
        if let Some(ring) = self.rings.iter_mut().find(|ring| !ring.turns.is_empty()) {
            ring.turns.rotate_left(1);
        }
    }

    /// The one whose turn it is leaves its ring.
    pub(crate) fn park(&mut self) {
        let Some(at) = self.rings.iter().position(|ring| !ring.turns.is_empty()) else {
            return;
        };
        self.rings[at].turns.pop_front();
        if self.rings[at].turns.is_empty() && self.rings.len() > 1 {
            self.rings.remove(at);
        }
    }

    /// Returns who becomes the single active consumer: the highest priority, among those the
    /// oldest.
    pub(crate) fn candidate(&self) -> Option<ConsumerId> {
        self.all.first().map(|rank| rank.id)
    }

    fn sweep(&mut self) {
        let all = &self.all;
        self.rings.iter_mut().for_each(|ring| ring.turns.retain(|rank| all.contains(rank)));
        self.rings.retain(|ring| !ring.turns.is_empty());
        self.stale = 0;
    }
}

#[cfg(test)]
mod tests {
    use slotmap::{Key, KeyData};

    use super::*;

    fn id(slot: u32) -> ConsumerId {
        ConsumerId::from(KeyData::from_ffi(1 << 32 | u64::from(slot)))
    }

    fn turns(consumers: &mut QueueConsumers, count: usize) -> Vec<u32> {
        (0..count)
            .filter_map(|_| {
                let next = consumers.next()?;
                consumers.rotate();
                Some(next.data().as_ffi() as u32)
            })
            .collect()
    }

    fn with(consumers: &[(u32, i32)]) -> (QueueConsumers, Vec<Rank>) {
        let mut queue = QueueConsumers::default();
        let ranks = consumers.iter().map(|(slot, priority)| {
            let rank = queue.add(id(*slot), *priority);
            queue.call(rank);
            rank
        });
        let ranks = ranks.collect();
        (queue, ranks)
    }

    #[test]
    fn consumers_of_equal_priority_take_turns() {
        let (mut queue, ranks) = with(&[(1, 0), (2, 0), (3, 0)]);
        assert_eq!(turns(&mut queue, 5), [1, 2, 3, 1, 2]);
        queue.park();
        assert_eq!(turns(&mut queue, 4), [1, 2, 1, 2]);
        queue.call(ranks[2]);
        assert_eq!(turns(&mut queue, 3), [1, 2, 3]);
    }

    #[test]
    fn lower_priorities_get_a_turn_when_the_higher_ones_are_parked() {
        let (mut queue, ranks) = with(&[(1, 0), (2, 10), (3, -5), (4, 10)]);
        assert_eq!(turns(&mut queue, 3), [2, 4, 2]);
        queue.park();
        queue.park();
        assert_eq!(turns(&mut queue, 2), [1, 1]);
        queue.park();
        assert_eq!(turns(&mut queue, 1), [3]);
        queue.remove(ranks[2], true);
        assert_eq!(queue.next(), None);
        assert_eq!((queue.len(), queue.with_credit()), (3, 0));
    }

    #[test]
    fn the_oldest_of_the_highest_priority_becomes_the_active_one() {
        let (mut queue, ranks) = with(&[(1, 0), (2, 5), (3, 5)]);
        assert_eq!(queue.candidate(), Some(id(2)));
        queue.remove(ranks[1], true);
        assert_eq!(queue.candidate(), Some(id(3)));
    }

    #[test]
    fn consumers_that_come_and_go_leave_nothing_behind() {
        let (mut queue, _) = with(&[(0, 0)]);
        for slot in 1..10_000 {
            let rank = queue.add(id(slot), 0);
            queue.call(rank);
            queue.remove(rank, true);
        }
        let standing: usize = queue.rings.iter().map(|ring| ring.turns.len()).sum();
        assert!(standing <= STALE_MAX + 2);
        assert_eq!(turns(&mut queue, 2), [0, 0]);
    }
}

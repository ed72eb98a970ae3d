//! When each open batch has to leave at the latest.

use super::fifo::Fifo;
use super::priority::PrioritySearchQueue;
use crate::Time;

/// The deadlines of all open batches: a line for those destinations that have the endpoint's own
/// timeout, the paper's priority search queue for those that have another.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    uniform: Fifo,
    others: PrioritySearchQueue,
}

impl Deadlines {
    /// A batch began in a destination whose timeout is the endpoint's.
    pub(crate) fn arm_uniform(&mut self, slot: u32, deadline: Time) {
        self.uniform.arm(slot, deadline);
    }

    /// A batch began in a destination with a timeout of its own.
    pub(crate) fn arm_other(&mut self, slot: u32, deadline: Time) {
        self.others.set(slot, deadline);
    }

    /// The batch has left, or waits for nothing but credit.
    pub(crate) fn disarm(&mut self, slot: u32) {
        self.uniform.disarm(slot);
        self.others.delete(slot);
    }

    /// Returns the oldest of all deadlines, with its slot.
    pub(crate) fn oldest(&self) -> Option<(Time, u32)> {
        match (self.uniform.oldest(), self.others.oldest()) {
            (Some(uniform), Some(other)) => Some(if other.0 < uniform.0 { other } else { uniform }),
            (uniform, other) => uniform.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SLOTS: u32 = 12;
    const TIMEOUT_US: u64 = 100;

    /// What a queue of batches is asked, as time goes on.
    #[derive(Clone, Debug)]
    enum Step {
        /// A message for the slot: a batch begins if there is none.
        Push(u32),
        /// The slot's batch leaves, because it is full.
        Full(u32),
        /// Time passes, and what is due leaves.
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..SLOTS).prop_map(Step::Push),
            2 => (0..SLOTS).prop_map(Step::Full),
            2 => (0..80u64).prop_map(Step::Wait),
        ];
        prop::collection::vec(step, 1..200)
    }

    /// The paper's rule, word for word: each key with the time of its first message; at each turn, the
    /// one whose time is the least is looked at, and leaves if it is older than its timeout.
    #[derive(Default)]
    struct Paper {
        begun: BTreeMap<u32, (u64, u64, u64)>,
        pushes: u64,
    }

    impl Paper {
        fn push(&mut self, slot: u32, now: u64, timeout: u64) {
            self.pushes += 1;
            let order = self.pushes;
            self.begun.entry(slot).or_insert((now + timeout, order, now));
        }
        fn oldest(&self) -> Option<(u64, u32)> {
            self.begun
                .iter()
                .min_by_key(|(_, (deadline, order, _))| (*deadline, *order))
                .map(|(slot, (deadline, _, _))| (*deadline, *slot))
        }
    }

    fn us(oldest: Option<(Time, u32)>) -> Option<(u64, u32)> {
        oldest.map(|(time, slot)| (time.as_micros(), slot))
    }

    proptest! {
        #[test]
        fn the_line_and_the_search_queue_are_the_papers(steps in steps()) {
            let (mut fifo, mut queue) = (Fifo::default(), PrioritySearchQueue::default());
            let mut paper = Paper::default();
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Push(slot) => {
                        if !paper.begun.contains_key(&slot) {
                            fifo.arm(slot, Time::from_micros(now + TIMEOUT_US));
                            queue.set(slot, Time::from_micros(now + TIMEOUT_US));
                        }
                        paper.push(slot, now, TIMEOUT_US);
                    }
                    Step::Full(slot) => {
                        fifo.disarm(slot);
                        queue.delete(slot);
                        paper.begun.remove(&slot);
                    }
                    Step::Wait(us) => now += us,
                }
                while let Some((deadline, slot)) = paper.oldest().filter(|(due, _)| *due <= now) {
                    prop_assert_eq!(us(fifo.oldest()), Some((deadline, slot)));
                    prop_assert_eq!(us(queue.oldest()), Some((deadline, slot)));
                    paper.begun.remove(&slot);
                    fifo.disarm(slot);
                    queue.delete(slot);
                }
                prop_assert_eq!(us(fifo.oldest()), paper.oldest());
                prop_assert_eq!(us(queue.oldest()), paper.oldest());
                prop_assert_eq!(fifo.len(), paper.begun.len());
            }
        }

        #[test]
        fn different_timeouts_leave_in_the_order_of_their_deadlines(
            steps in steps(),
            timeouts in prop::collection::vec(1..300u64, SLOTS as usize),
        ) {
            // Even slots have the endpoint's timeout, odd ones their own.
            let timeout = |slot: u32| {
                if slot.is_multiple_of(2) { TIMEOUT_US } else { timeouts[slot as usize] }
            };
            let mut deadlines = Deadlines::default();
            let mut paper = Paper::default();
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Push(slot) => {
                        if !paper.begun.contains_key(&slot) {
                            let deadline = Time::from_micros(now + timeout(slot));
                            if slot.is_multiple_of(2) {
                                deadlines.arm_uniform(slot, deadline);
                            } else {
                                deadlines.arm_other(slot, deadline);
                            }
                        }
                        paper.push(slot, now, timeout(slot));
                    }
                    Step::Full(slot) => {
                        deadlines.disarm(slot);
                        paper.begun.remove(&slot);
                    }
                    Step::Wait(us) => now += us,
                }
                while let Some((due, slot)) = deadlines.oldest().filter(|(d, _)| d.as_micros() <= now) {
                    let (deadline, _, begun) = paper.begun[&slot];
                    prop_assert_eq!(due.as_micros(), deadline);
                    prop_assert_eq!(deadline, begun + timeout(slot));
                    prop_assert_eq!(Some(deadline), paper.oldest().map(|(time, _)| time));
                    paper.begun.remove(&slot);
                    deadlines.disarm(slot);
                }
                prop_assert_eq!(
                    deadlines.oldest().map(|(time, _)| time.as_micros()),
                    paper.oldest().map(|(time, _)| time)
                );
            }
        }

        #[test]
        fn a_deadline_may_be_changed_and_deleted_by_its_key(
            changes in prop::collection::vec((0..SLOTS, prop::option::of(0..50u64)), 1..300),
        ) {
            let mut queue = PrioritySearchQueue::default();
            let mut model = BTreeMap::new();
            for (slot, deadline) in changes {
                match deadline {
                    Some(us) => {
                        queue.set(slot, Time::from_micros(us));
                        model.insert(slot, us);
                    }
                    None => {
                        queue.delete(slot);
                        model.remove(&slot);
                    }
                }
                let least = model.values().min().copied();
                prop_assert_eq!(queue.oldest().map(|(time, _)| time.as_micros()), least);
                for slot in 0..SLOTS {
                    prop_assert_eq!(
                        queue.get(slot).map(Time::as_micros),
                        model.get(&slot).copied()
                    );
                }
            }
        }
    }
}

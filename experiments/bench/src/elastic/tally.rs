//! What a listener got of each producer: in order, once, all of it?

use serde::Serialize;

use crate::elastic::error::ElasticError;

/// Stretches of missing messages that are remembered of one flow; beyond it, what comes late counts as lost.
const HOLES_MAX: usize = 10_000;

/// One listener's counts over all producers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    flows: Vec<Flow>,
}

/// The sum over flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Order {
    /// Messages that came, repetitions included.
    pub received: u64,
    /// Messages that a later one overtook and that never came, with those missing at the end.
    pub lost: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Messages that came after a later one.
    pub out_of_order: u64,
}

/// One producer's messages at one listener.
#[derive(Debug, Clone, Default)]
struct Flow {
    expected: u64,
    order: Order,
    /// Missing below `expected`: first and one past the last, ascending.
    holes: Vec<(u64, u64)>,
}

impl Tally {
    pub(crate) fn new(producers: usize) -> Self {
        Self { flows: vec![Flow::default(); producers] }
    }

    /// Counts a message that came. Returns `false` if there is no such producer.
    pub(crate) fn take(&mut self, producer: u64, sequence: u64) -> bool {
        let Some(flow) = usize::try_from(producer).ok().and_then(|at| self.flows.get_mut(at))
        else {
            return false;
        };
        flow.order.received += 1;
        if sequence == flow.expected {
            flow.expected += 1;
        } else {
            flow.take_unexpected(sequence);
        }
        true
    }

    /// Returns one past the highest message that came of this producer.
    pub(crate) fn reached(&self, producer: usize) -> u64 {
        self.flows[producer].expected
    }

    /// Returns how many distinct messages came.
    pub(crate) fn distinct(&self) -> u64 {
        self.flows.iter().map(|flow| flow.order.received - flow.order.duplicates).sum()
    }

    /// Returns how many messages there are that a later one overtook and that have not come.
    pub(crate) fn overtaken(&self) -> u64 {
        self.flows.iter().map(|flow| flow.order.lost).sum()
    }

    /// Returns the sum over all flows, when producers have sent so many messages each.
    pub(crate) fn finish(&self, sent: &[u64]) -> Order {
        let mut sum = Order::default();
        for (flow, sent) in self.flows.iter().zip(sent) {
            sum.add(flow.order);
            sum.lost += sent.saturating_sub(flow.expected);
        }
        sum
    }
}

impl Tally {
    /// Returns how many of this producer's messages are missing without having been announced, when
    /// it has sent so many; `announced` are first and one past the last, in any order.
    pub(crate) fn unannounced(&self, producer: usize, sent: u64, announced: &[(u64, u64)]) -> u64 {
        let flow = &self.flows[producer];
        let mut announced = announced.to_vec();
        announced.sort_unstable();
        let end = (flow.expected < sent).then_some((flow.expected, sent));
        let missing = flow.holes.iter().copied().chain(end);
        missing.map(|(from, to)| uncovered(from, to, &announced)).sum()
    }
}

/// Returns how many numbers of `from..to` are in none of the ranges, which are sorted.
fn uncovered(mut from: u64, to: u64, ranges: &[(u64, u64)]) -> u64 {
    let mut uncovered = 0;
    for (first, next) in ranges {
        if from >= to || *first >= to {
            break;
        }
        uncovered += first.saturating_sub(from);
        from = from.max(*next);
    }
    uncovered + to.saturating_sub(from)
}

impl Order {
    /// Checks that each message came once, and in its order.
    ///
    /// # Errors
    /// [`ElasticError::Disorder`].
    pub(crate) fn check(self) -> Result<(), ElasticError> {
        let Self { received, lost, duplicates, out_of_order } = self;
        if lost + duplicates + out_of_order == 0 {
            return Ok(());
        }
        Err(ElasticError::Disorder { received, lost, duplicates, out_of_order })
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.received += other.received;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
    }
}

impl Flow {
    fn take_unexpected(&mut self, sequence: u64) {
        if sequence > self.expected {
            self.order.lost += sequence - self.expected;
            if self.holes.len() < HOLES_MAX {
                self.holes.push((self.expected, sequence));
            }
            self.expected = sequence + 1;
            return;
        }
        let at = self.holes.partition_point(|(_, to)| *to <= sequence);
        match self.holes.get(at).copied() {
            Some((from, to)) if from <= sequence => {
                self.order.lost -= 1;
                self.order.out_of_order += 1;
                let rest = [(from, sequence), (sequence + 1, to)];
                self.holes.splice(at..=at, rest.into_iter().filter(|(from, to)| from < to));
            }
            _ => self.order.duplicates += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a listener says that got these messages of a producer that sent `sent`.
    fn judged(messages: &[u64], sent: u64) -> Order {
        let mut tally = Tally::new(1);
        messages.iter().for_each(|sequence| assert!(tally.take(0, *sequence)));
        tally.finish(&[sent])
    }

    #[test]
    fn messages_in_order_are_nothing_but_received() {
        assert_eq!(judged(&[0, 1, 2], 3), Order { received: 3, ..Order::default() });
    }

    #[test]
    fn what_is_missing_in_the_middle_or_at_the_end_is_lost() {
        assert_eq!(judged(&[0, 3], 6), Order { received: 2, lost: 4, ..Order::default() });
        assert_eq!(judged(&[], 2), Order { lost: 2, ..Order::default() });
    }

    #[test]
    fn only_each_message_once_and_in_order_is_right() {
        assert!(judged(&[0, 1, 2], 3).check().is_ok());
        for (came, sent, why) in [
            (&[0, 2][..], 3, "of 2 deliveries 1 were lost, 0 doubled and 0 out of order"),
            (&[0, 1, 1], 2, "of 3 deliveries 0 were lost, 1 doubled and 0 out of order"),
            (&[1, 0], 2, "of 2 deliveries 0 were lost, 0 doubled and 1 out of order"),
        ] {
            assert_eq!(judged(came, sent).check().unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn what_comes_late_is_out_of_order_and_not_lost() {
        let expected = Order { received: 4, out_of_order: 2, ..Order::default() };
        assert_eq!(judged(&[0, 3, 2, 1], 4), expected);
        assert_eq!(judged(&[3, 0, 2, 1], 4), Order { out_of_order: 3, ..expected });
    }

    #[test]
    fn what_is_missing_must_have_been_announced() {
        let mut tally = Tally::new(1);
        [0, 1, 5, 6, 9].iter().for_each(|sequence| assert!(tally.take(0, *sequence)));
        let without = |announced: &[(u64, u64)]| tally.unannounced(0, 12, announced);
        assert_eq!(without(&[]), 7);
        assert_eq!(without(&[(9, 20), (2, 5), (7, 9)]), 0);
        assert_eq!(without(&[(0, 3), (2, 4)]), 5);
        assert_eq!(without(&[(3, 4), (8, 11)]), 4);
    }

    #[test]
    fn what_comes_again_is_a_duplicate_even_if_it_was_late() {
        let expected = Order { received: 5, duplicates: 2, out_of_order: 1, ..Order::default() };
        assert_eq!(judged(&[0, 2, 1, 1, 0], 3), expected);
    }

    #[test]
    fn producers_are_counted_apart_and_unknown_ones_refused() {
        let mut tally = Tally::new(2);
        assert!(tally.take(0, 0) && tally.take(1, 0) && tally.take(1, 1) && !tally.take(2, 0));
        assert_eq!((tally.reached(0), tally.reached(1), tally.distinct()), (1, 2, 3));
        assert_eq!(tally.overtaken(), 0);
        assert!(tally.take(0, 3));
        assert_eq!(tally.overtaken(), 2);
        assert_eq!(tally.finish(&[4, 3]), Order { received: 4, lost: 3, ..Order::default() });
    }
}

//! Which messages of which producer are stored: what a producer sends again after its relay died is not
//! stored twice.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use quelea_elastic_proto::limits::RELAY_ATTACHMENTS_MAX;
use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_store::Ticket;

/// Producers remembered at least; up to twice as many are. A producer that was silent while so many
/// others sent may have its last messages stored twice after a failover (at least once).
const PRODUCERS_MIN: usize = 65_536;

/// Ranges remembered of one producer. Relays bring its messages independently of one another, so each
/// relay that still owes acknowledgements may leave a hole below the range of the next one.
const RANGES_MAX: usize = RELAY_ATTACHMENTS_MAX + 1;

/// A producer's messages in one durable queue.
type Key = (Arc<str>, ClientId);

/// What is known of each producer. Forgets in two generations: what was not used while the younger one
/// filled goes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    young: HashMap<Key, Stored>,
    old: HashMap<Key, Stored>,
}

/// Which of a producer's messages are stored.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Apart from one another, the one that was added to last at the end.
    ranges: Vec<Range<u64>>,
    /// All of them are safe when the store has reached it.
    pub(crate) ticket: Ticket,
}

impl Default for Stored {
    fn default() -> Self {
        Self { ranges: Vec::new(), ticket: Ticket::NONE }
    }
}

impl Stored {
    /// Returns the end of the range that has this message: all from it on are stored, up to there.
    pub(crate) fn end_of(&self, sequence: MessageSeq) -> Option<MessageSeq> {
        let mut ranges = self.ranges.iter().rev();
        ranges.find(|range| range.contains(&sequence.0)).map(|range| MessageSeq(range.end))
    }

    /// Notes one that no range has; the ticket covers it. Beyond the bound the range is forgotten to
    /// which nothing was added for longest: what comes again of it is stored twice, and nothing lost.
    pub(crate) fn add(&mut self, sequence: MessageSeq, ticket: Ticket) {
        let mut added = sequence.0..sequence.0 + 1;
        self.ranges.retain(|range| {
            let (before, behind) = (range.end == sequence.0, range.start == sequence.0 + 1);
            if before {
                added.start = range.start;
            }
            if behind {
                added.end = range.end;
            }
            !before && !behind
        });
        self.ranges.push(added);
        if self.ranges.len() > RANGES_MAX {
            self.ranges.remove(0);
        }
        self.ticket = self.ticket.join(ticket);
    }
}

impl Ledger {
    /// Returns what is known of a producer, and notes that it was asked for.
    pub(crate) fn of(&mut self, target: &Arc<str>, producer: ClientId) -> &mut Stored {
        let key = (Arc::clone(target), producer);
        let mut known = None;
        if !self.young.contains_key(&key) {
            known = self.old.remove(&key);
            if self.young.len() >= PRODUCERS_MIN {
                self.old = std::mem::take(&mut self.young);
            }
        }
        self.young.entry(key).or_insert_with(|| known.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(stored: &mut Stored, sequences: Range<u64>) {
        sequences.for_each(|sequence| stored.add(MessageSeq(sequence), Ticket::NONE));
    }

    fn end_of(stored: &Stored, sequence: u64) -> Option<u64> {
        stored.end_of(MessageSeq(sequence)).map(|end| end.0)
    }

    #[test]
    fn it_remembers_each_producer_of_each_queue() {
        let mut ledger = Ledger::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        add(ledger.of(&a, ClientId(1)), 0..5);
        assert_eq!(end_of(ledger.of(&a, ClientId(1)), 0), Some(5));
        assert_eq!(end_of(ledger.of(&b, ClientId(1)), 0), None);
        assert_eq!(end_of(ledger.of(&a, ClientId(2)), 0), None);
    }

    #[test]
    fn it_is_bounded_and_forgets_who_was_silent_longest() {
        let mut ledger = Ledger::default();
        let queue: Arc<str> = "q".into();
        add(ledger.of(&queue, ClientId(0)), 0..1);
        for producer in 1..4 * PRODUCERS_MIN as u128 {
            add(ledger.of(&queue, ClientId(producer)), 0..1);
            // One that is used stays.
            assert_eq!(end_of(ledger.of(&queue, ClientId(0)), 0), Some(1));
            assert!(ledger.young.len() + ledger.old.len() <= 2 * PRODUCERS_MIN);
        }
        assert_eq!(end_of(ledger.of(&queue, ClientId(1)), 0), None);
    }

    #[test]
    fn a_hole_is_not_stored_and_closes_when_it_is_filled() {
        let mut stored = Stored::default();
        add(&mut stored, 0..50);
        add(&mut stored, 100..150);
        assert_eq!(end_of(&stored, 0), Some(50));
        assert_eq!((end_of(&stored, 50), end_of(&stored, 99)), (None, None));
        assert_eq!((end_of(&stored, 100), end_of(&stored, 150)), (Some(150), None));
        add(&mut stored, 50..100);
        assert_eq!(stored.ranges, [Range { start: 0, end: 150 }]);
    }

    #[test]
    fn ranges_are_bounded_and_the_one_longest_left_alone_is_forgotten() {
        let mut stored = Stored::default();
        for number in 0..RANGES_MAX as u64 {
            add(&mut stored, 10 * number..10 * number + 1);
        }
        // The first one grows: then the second one is the oldest.
        add(&mut stored, 1..2);
        add(&mut stored, 1_000..1_001);
        assert_eq!(stored.ranges.len(), RANGES_MAX);
        assert_eq!((end_of(&stored, 0), end_of(&stored, 10)), (Some(2), None));
        assert_eq!((end_of(&stored, 20), end_of(&stored, 1_000)), (Some(21), Some(1_001)));
    }
}

//! Which messages of which producer are stored: what a producer sends again after its relay died is not
//! stored twice.

use std::collections::HashMap;
use std::sync::Arc;

use quelea_elastic_proto::{ClientId, MessageSeq};
use quelea_store::Ticket;

/// Producers remembered at least; up to twice as many are. A producer that was silent while so many
/// others sent may have its last messages stored twice after a failover (at least once).
const PRODUCERS_MIN: usize = 65_536;

/// A producer's messages in one durable queue.
type Key = (Arc<str>, ClientId);

/// What is known of each producer. Forgets in two generations: what was not used while the younger one
/// filled goes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    young: HashMap<Key, Stored>,
    old: HashMap<Key, Stored>,
}

/// How far a producer's messages are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// All below were published.
    pub(crate) below: MessageSeq,
    /// They are safe when the store has reached it.
    pub(crate) ticket: Ticket,
}

impl Ledger {
    /// What is known, and that it was asked for.
    pub(crate) fn get(&mut self, target: &Arc<str>, producer: ClientId) -> Option<Stored> {
        let key = (Arc::clone(target), producer);
        if let Some(stored) = self.young.get(&key) {
            return Some(*stored);
        }
        let stored = self.old.remove(&key)?;
        self.insert(key, stored);
        Some(stored)
    }

    /// All of the producer's messages below were published; the ticket covers them.
    pub(crate) fn set(&mut self, target: &Arc<str>, producer: ClientId, stored: Stored) {
        self.insert((Arc::clone(target), producer), stored);
    }

    fn insert(&mut self, key: Key, stored: Stored) {
        if self.young.len() >= PRODUCERS_MIN && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(below: u64) -> Stored {
        Stored { below: MessageSeq(below), ticket: Ticket::NONE }
    }

    #[test]
    fn it_remembers_each_producer_of_each_queue() {
        let mut ledger = Ledger::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        ledger.set(&a, ClientId(1), stored(5));
        assert_eq!(ledger.get(&a, ClientId(1)), Some(stored(5)));
        assert_eq!(ledger.get(&b, ClientId(1)), None);
        assert_eq!(ledger.get(&a, ClientId(2)), None);
    }

    #[test]
    fn it_is_bounded_and_forgets_who_was_silent_longest() {
        let mut ledger = Ledger::default();
        let queue: Arc<str> = "q".into();
        ledger.set(&queue, ClientId(0), stored(1));
        for producer in 1..4 * PRODUCERS_MIN as u128 {
            ledger.set(&queue, ClientId(producer), stored(1));
            // One that is used stays.
            assert!(ledger.get(&queue, ClientId(0)).is_some());
            assert!(ledger.young.len() + ledger.old.len() <= 2 * PRODUCERS_MIN);
        }
        assert_eq!(ledger.get(&queue, ClientId(1)), None);
    }
}

//! The peer of an edge, as the node knows it.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;

/// What the node knows of an edge's peer.
#[derive(Debug)]
pub(crate) struct EdgePeer {
    pub(crate) waker: Waker,
    /// It wants to know what is subscribed to.
    pub(crate) follows: bool,
    pub(crate) changes: Changes,
}

impl EdgePeer {
    pub(crate) fn wake(&mut self) {
        self.waker.wake_by_ref();
    }

    pub(crate) fn subscription_changed(&mut self, prefix: &Bytes, there: bool) {
        if self.follows && self.changes.note(prefix, there) {
            self.waker.wake_by_ref();
        }
    }
}

/// Prefixes of which the peer knows something else than what holds now. A change that undoes one that
/// it does not know yet leaves nothing, so a peer that takes none for long costs an entry for each prefix
/// that there is or that it knows, however often they come and go.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub(crate) BTreeMap<Bytes, bool>);

impl Changes {
    /// Notes a change. Returns whether the peer has something to learn by it.
    pub(crate) fn note(&mut self, prefix: &Bytes, there: bool) -> bool {
        match self.0.get(prefix) {
            Some(waiting) if *waiting != there => {
                self.0.remove(prefix);
                false
            }
            Some(_) => false,
            None => {
                self.0.insert(prefix.clone(), there);
                true
            }
        }
    }

    pub(crate) fn take(&mut self) -> Option<(Bytes, bool)> {
        self.0.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(number: usize) -> Bytes {
        Bytes::from(format!("{number}."))
    }

    #[test]
    fn subscriptions_that_come_and_go_while_a_peer_takes_none_cost_nothing() {
        let mut changes = Changes::default();
        for number in 0..100_000 {
            assert!(changes.note(&prefix(number), true));
            assert!(!changes.note(&prefix(number), false));
        }
        assert_eq!(changes.take(), None);
    }

    #[test]
    fn a_peer_learns_the_difference_to_what_it_knows() {
        let mut changes = Changes::default();
        changes.note(&prefix(1), true);
        changes.note(&prefix(2), true);
        assert_eq!(changes.take(), Some((prefix(1), true)));
        // It knows the first: that it ends, and is there again after all, is nothing to it.
        changes.note(&prefix(1), false);
        changes.note(&prefix(1), true);
        changes.note(&prefix(2), false);
        changes.note(&prefix(2), true);
        assert_eq!(changes.take(), Some((prefix(2), true)));
        assert_eq!(changes.take(), None);
        changes.note(&prefix(1), false);
        assert_eq!(changes.take(), Some((prefix(1), false)));
    }
}

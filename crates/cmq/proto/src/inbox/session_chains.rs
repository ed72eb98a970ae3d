//! The proven flows of each session, so that one that ends is found without a look at the others.

use core::net::SocketAddr;
use std::collections::HashMap;

use crate::inbox::secret::Secret;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

/// A chain of slots for each session of a sender.
#[derive(Debug)]
pub(super) struct SessionChains {
    newest: HashMap<(SocketAddr, u64), u32, Secret>,
    links: Vec<Links>,
}

impl SessionChains {
    pub(super) fn new(secret: Secret) -> Self {
        Self { newest: HashMap::with_hasher(secret), links: Vec::new() }
    }

    pub(super) fn has(&self, session: (SocketAddr, u64)) -> bool {
        self.newest.contains_key(&session)
    }

    /// Returns the slots of a session, the newest first.
    pub(super) fn of(&self, session: (SocketAddr, u64)) -> impl Iterator<Item = u32> {
        let older =
            |slot: &u32| Some(self.links[*slot as usize].older).filter(|&slot| slot != NONE);
        core::iter::successors(self.newest.get(&session).copied(), older)
    }

    /// A slot that is in no chain.
    pub(super) fn add(&mut self, slot: u32, session: (SocketAddr, u64)) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, Links { newer: NONE, older: NONE });
        }
        let before = self.newest.insert(session, slot).unwrap_or(NONE);
        self.links[slot as usize] = Links { newer: NONE, older: before };
        if before != NONE {
            self.links[before as usize].newer = slot;
        }
    }

    pub(super) fn remove(&mut self, slot: u32, session: (SocketAddr, u64)) {
        let Links { newer, older } = self.links[slot as usize];
        match (newer, older) {
            (NONE, NONE) => drop(self.newest.remove(&session)),
            (NONE, older) => drop(self.newest.insert(session, older)),
            (newer, older) => self.links[newer as usize].older = older,
        }
        if older != NONE {
            self.links[older as usize].newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_own_flows_in_whatever_order_they_go() {
        let a = ("127.0.0.1:1".parse().unwrap(), 1);
        let b = ("127.0.0.1:1".parse().unwrap(), 2);
        for order in [[0, 2, 4], [4, 2, 0], [2, 0, 4], [2, 4, 0]] {
            let mut chains = SessionChains::new(Secret(7));
            for slot in 0..6 {
                chains.add(slot, if slot % 2 == 0 { a } else { b });
            }
            assert_eq!(chains.of(a).collect::<Vec<_>>(), [4, 2, 0]);
            let mut left = vec![4, 2, 0];
            for slot in order {
                chains.remove(slot, a);
                left.retain(|one| *one != slot);
                assert_eq!(chains.of(a).collect::<Vec<_>>(), left);
                assert_eq!(chains.has(a), !left.is_empty());
            }
            assert_eq!(chains.of(b).collect::<Vec<_>>(), [5, 3, 1]);
        }
    }
}

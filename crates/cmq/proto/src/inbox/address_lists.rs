//! The proven flows of each address, so that one that has as many as it may makes room for its own.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;

use quelea_model::network_of;
use slab::Slab;

use crate::inbox::secret::Secret;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    /// The place of the slot's list.
    list: u32,
    newer: u32,
    older: u32,
}

#[derive(Debug)]
struct List {
    network: IpAddr,
    newest: u32,
    oldest: u32,
    length: usize,
}

/// For each address (of IPv6, each network of 64 bits) its slots, from the one heard of last to the one
/// that was silent longest. To touch a slot takes no look-up of its address.
#[derive(Debug)]
pub(super) struct AddressLists {
    by_network: HashMap<IpAddr, u32, Secret>,
    lists: Slab<List>,
    links: Vec<Links>,
    /// Slots that one address has at most.
    most: usize,
}

impl AddressLists {
    pub(super) fn new(most: usize, secret: Secret) -> Self {
        let by_network = HashMap::with_hasher(secret);
        Self { by_network, lists: Slab::new(), links: Vec::new(), most: most.max(1) }
    }

    /// Returns the slot that has to go before another of this address comes in.
    pub(super) fn in_the_way(&self, from: SocketAddr) -> Option<u32> {
        let list = self.by_network.get(&network_of(from.ip()))?;
        let list = &self.lists[*list as usize];
        (list.length >= self.most).then_some(list.oldest)
    }

    /// A slot that is in no list becomes the newest of its address.
    pub(super) fn add(&mut self, slot: u32, from: SocketAddr) {
        let network = network_of(from.ip());
        let lists = &mut self.lists;
        let list = *self.by_network.entry(network).or_insert_with(|| {
            lists.insert(List { network, newest: NONE, oldest: NONE, length: 0 }) as u32
        });
        let unlinked = Links { list, newer: NONE, older: NONE };
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, unlinked);
        }
        self.links[slot as usize] = unlinked;
        self.link(slot);
    }

    /// It was heard of now.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        let list = self.links[slot as usize].list;
        if self.lists[list as usize].newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        let list = self.links[slot as usize].list;
        if self.lists[list as usize].length == 0 {
            let gone = self.lists.remove(list as usize);
            self.by_network.remove(&gone.network);
        }
    }

    fn link(&mut self, slot: u32) {
        let links = &mut self.links[slot as usize];
        let list = &mut self.lists[links.list as usize];
        (links.newer, links.older) = (NONE, list.newest);
        match list.newest {
            NONE => list.oldest = slot,
            before => self.links[before as usize].newer = slot,
        }
        list.newest = slot;
        list.length += 1;
    }

    fn unlink(&mut self, slot: u32) {
        let Links { list, newer, older } = self.links[slot as usize];
        let list = &mut self.lists[list as usize];
        match newer {
            NONE => list.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => list.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        list.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    #[test]
    fn an_address_makes_room_among_its_own() {
        let mut lists = AddressLists::new(3, Secret(7));
        for slot in 0..3 {
            assert_eq!(lists.in_the_way(at(1, 9)), None);
            lists.add(slot, at(1, slot as u16));
        }
        lists.add(3, at(2, 0));
        assert_eq!(lists.in_the_way(at(2, 1)), None);
        lists.touch(0);
        assert_eq!(lists.in_the_way(at(1, 9)), Some(1));
        lists.remove(1);
        assert_eq!(lists.in_the_way(at(1, 9)), None);
        lists.add(1, at(1, 9));
        assert_eq!(lists.in_the_way(at(1, 9)), Some(2));
    }

    #[test]
    fn nothing_is_kept_of_an_address_without_flows() {
        let mut lists = AddressLists::new(2, Secret(7));
        for round in 0..100u8 {
            lists.add(0, at(round, 1));
            lists.add(1, at(round, 2));
            lists.touch(0);
            lists.remove(0);
            lists.remove(1);
        }
        assert!(lists.by_network.is_empty() && lists.lists.is_empty());
    }
}

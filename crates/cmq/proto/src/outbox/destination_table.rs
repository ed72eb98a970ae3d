//! The map from key to destination. The table holds slots only: a key stands once, in its
//! destination.

use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxSeededState};
use slab::Slab;

use super::destination::Destination;
use crate::destination_id::DestinationId;
use crate::key::Key;

/// All destinations, found by key, by slot or by flow.
#[derive(Debug)]
pub(crate) struct DestinationTable {
    /// Seeded, since an application may make a destination of whoever sends to it.
    seed: usize,
    /// No `SlotMap`: arrays of timers are indexed by these dense slots, and both maps hold them in four bytes each.
    destinations: Slab<Destination>,
    by_key: HashTable<u32>,
    by_flow: FxHashMap<u32, u32>,
}

impl DestinationTable {
    /// Creates a table without destinations. `seed` must be random.
    pub(crate) fn new(seed: usize) -> Self {
        Self {
            seed,
            destinations: Slab::new(),
            by_key: HashTable::new(),
            by_flow: FxHashMap::default(),
        }
    }

    /// Returns how many destinations there are.
    pub(crate) fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Returns the slot of `key`.
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        self.by_key
            .find(self.hash(key), |slot| self.destinations[*slot as usize].key == *key)
            .copied()
    }

    /// Returns the slot of the destination that has this number on the wire.
    pub(crate) fn find_flow(&self, flow: u32) -> Option<u32> {
        self.by_flow.get(&flow).copied()
    }

    /// Adds a destination whose key and flow are new.
    pub(crate) fn insert(&mut self, destination: Destination) -> u32 {
        let (hash, flow) = (self.hash(&destination.key), destination.flow);
        let slot = u32::try_from(self.destinations.insert(destination))
            .expect("slots are as many as destinations at most, which have 20 bits");
        let (seed, destinations) = (self.seed, &self.destinations);
        let hash_of = |slot: &u32| hash_key(seed, &destinations[*slot as usize].key);
        self.by_key.insert_unique(hash, slot, hash_of);
        self.by_flow.insert(flow, slot);
        slot
    }

    /// Gives the destination another number on the wire.
    pub(crate) fn change_flow(&mut self, slot: u32, flow: u32) {
        let before = core::mem::replace(&mut self.at_mut(slot).flow, flow);
        self.by_flow.remove(&before);
        self.by_flow.insert(flow, slot);
    }

    /// Takes the key from the destination: another may have it, while this one ends.
    pub(crate) fn release_key(&mut self, slot: u32) {
        let hash = self.hash(&self.at(slot).key);
        if let Ok(entry) = self.by_key.find_entry(hash, |found| *found == slot) {
            entry.remove();
        }
    }

    /// Forgets the destination.
    pub(crate) fn remove(&mut self, slot: u32) -> Destination {
        self.release_key(slot);
        let destination = self.destinations.remove(slot as usize);
        self.by_flow.remove(&destination.flow);
        destination
    }

    /// Returns the destination of a handle, unless it was closed.
    #[inline]
    pub(crate) fn get(&self, id: DestinationId) -> Option<&Destination> {
        self.destinations
            .get(id.slot as usize)
            .filter(|destination| destination.generation == id.generation)
    }

    /// Returns the destination of a handle, unless it was closed.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: DestinationId) -> Option<&mut Destination> {
        self.destinations
            .get_mut(id.slot as usize)
            .filter(|destination| destination.generation == id.generation)
    }

    /// Returns the destination in a slot that is known to be taken.
    pub(crate) fn at(&self, slot: u32) -> &Destination {
        &self.destinations[slot as usize]
    }

    /// Returns the destination in a slot that is known to be taken.
    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut Destination {
        &mut self.destinations[slot as usize]
    }

    fn hash(&self, key: &Key) -> u64 {
        hash_key(self.seed, key)
    }

    /// Returns all destinations with their slots.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Destination)> {
        self.destinations.iter_mut().map(|(slot, destination)| (slot as u32, destination))
    }
}

fn hash_key(seed: usize, key: &Key) -> u64 {
    FxSeededState::with_seed(seed).hash_one(key)
}

//! Things that come and go and are named by small keys: a slot is used again, but never under the
//! same key, so a stale key finds nothing instead of a stranger.

/// Where a thing lives, and which of the slot's tenants it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// A growing array of slots with a free list.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// The key that the next `insert` will give.
    pub(crate) fn next_key(&self) -> Key {
        match self.free.last() {
            Some(&slot) => Key { slot, generation: self.slots[slot as usize].generation },
            None => Key { slot: self.slots.len() as u32, generation: 0 },
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        if self.free.pop().is_some() {
            self.slots[key.slot as usize].value = Some(value);
        } else {
            self.slots.push(Slot { generation: 0, value: Some(value) });
        }
        key
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize)?;
        if slot.generation == key.generation { slot.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation == key.generation { slot.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(value)
    }

    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, s)| {
            let key = Key { slot: slot as u32, generation: s.generation };
            s.value.as_ref().map(|value| (key, value))
        })
    }

    /// Slots in use or once in use: the end of a walk by slot number.
    pub(crate) const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whoever lives in that slot now.
    pub(crate) fn at_slot(&mut self, slot: usize) -> Option<(Key, &mut T)> {
        let s = self.slots.get_mut(slot)?;
        let key = Key { slot: slot as u32, generation: s.generation };
        s.value.as_mut().map(|value| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_under_another_key() {
        let mut arena = Arena::default();
        let first = arena.insert("a");
        assert_eq!(arena.remove(first), Some("a"));
        let expected = arena.next_key();
        let second = arena.insert("b");
        assert_eq!(second, expected);
        assert_eq!(second.slot, first.slot);
        assert_eq!(arena.get(first), None);
        assert_eq!(arena.remove(first), None);
        assert_eq!(arena.get(second), Some(&"b"));
        assert_eq!(arena.len(), 1);
    }
}

//! The words that the patterns of one exchange name, each with a number: a key's words are looked up
//! once, and compared as numbers from then on.

use slab::Slab;

use crate::routing::exchange::ByText;

/// A word's number; used again when no pattern names the word any more.
pub(super) type WordId = u32;

/// Words by text, with how many nodes name each.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    ids: ByText<Box<str>, WordId>,
    uses: Slab<u32>,
}

impl Vocabulary {
    pub(super) fn find(&self, word: &str) -> Option<WordId> {
        self.ids.get(word).copied()
    }

    /// Notes that one more node names the word. Returns the word's number.
    pub(super) fn acquire(&mut self, word: &str) -> WordId {
        if let Some(id) = self.find(word) {
            self.uses[id as usize] += 1;
            return id;
        }
        let id = self.uses.insert(1) as WordId;
        self.ids.insert(Box::from(word), id);
        id
    }

    /// One node less names the word.
    pub(super) fn release(&mut self, word: &str) {
        let Some(id) = self.find(word) else { return };
        let uses = &mut self.uses[id as usize];
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(id as usize);
            self.ids.remove(word);
        }
    }

    /// Returns a number that is greater than all in use.
    pub(super) fn ids_end(&self) -> usize {
        self.uses.capacity()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

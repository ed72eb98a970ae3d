//! Flows in the order in which they were last heard of, proven ones and others apart.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    newest: u32,
    oldest: u32,
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { newest: NONE, oldest: NONE, length: 0 }
    }
}

/// Two lines of slots, each from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct LruLists {
    links: Vec<Links>,
    /// At 0 what is not proven, at 1 what is.
    lines: [Line; 2],
}

impl LruLists {
    pub(super) const fn length(&self, proven: bool) -> usize {
        self.lines[proven as usize].length
    }

    pub(super) fn oldest(&self, proven: bool) -> Option<u32> {
        Some(self.lines[usize::from(proven)].oldest).filter(|&slot| slot != NONE)
    }

    /// Returns the slots of a line, the oldest first.
    pub(super) fn line(&self, proven: bool) -> impl Iterator<Item = u32> {
        let newer =
            |slot: &u32| Some(self.links[*slot as usize].newer).filter(|&slot| slot != NONE);
        core::iter::successors(self.oldest(proven), newer)
    }

    /// A slot that is in no line becomes the newest of one.
    pub(super) fn add(&mut self, slot: u32, proven: bool) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, Links { newer: NONE, older: NONE });
        }
        let line = &mut self.lines[usize::from(proven)];
        self.links[slot as usize] = Links { newer: NONE, older: line.newest };
        match line.newest {
            NONE => line.oldest = slot,
            before => self.links[before as usize].newer = slot,
        }
        line.newest = slot;
        line.length += 1;
    }

    /// Takes a slot out of its line.
    pub(super) fn remove(&mut self, slot: u32, proven: bool) {
        let line = &mut self.lines[usize::from(proven)];
        let Links { newer, older } = self.links[slot as usize];
        match newer {
            NONE => line.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => line.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        line.length -= 1;
    }

    /// Takes down that it was heard of now; returns false if it was the last one before, too.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32, proven: bool) -> bool {
        let moves = self.lines[usize::from(proven)].newest != slot;
        if moves {
            self.remove(slot, proven);
            self.add(slot, proven);
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(lru: &mut LruLists, proven: bool) -> Vec<u32> {
        let mut slots = Vec::new();
        while let Some(slot) = lru.oldest(proven) {
            lru.remove(slot, proven);
            slots.push(slot);
        }
        assert_eq!(lru.length(proven), 0);
        slots
    }

    #[test]
    fn the_oldest_is_the_one_that_was_silent_longest() {
        let mut lru = LruLists::default();
        for slot in 0..5 {
            lru.add(slot, true);
        }
        lru.touch(0, true);
        lru.touch(3, true);
        lru.remove(2, true);
        lru.touch(3, true);
        assert_eq!(lru.line(true).collect::<Vec<_>>(), [1, 4, 0, 3]);
        assert_eq!(drain(&mut lru, true), [1, 4, 0, 3]);
    }

    #[test]
    fn the_lines_are_apart() {
        let mut lru = LruLists::default();
        lru.add(7, false);
        lru.add(1, true);
        lru.remove(7, false);
        lru.add(7, true);
        assert_eq!((lru.length(false), lru.length(true)), (0, 2));
        assert_eq!(drain(&mut lru, true), [1, 7]);
    }
}

//! What a key can cost at most, known from the patterns alone.
//!
//! A step is a node that is visited or a word that is looked up at one; nodes whose visit always adds
//! to the result cost nothing. Each node keeps two bounds over all keys there are, of the walk through
//! itself and all below it: when it is entered at one position of the key, and when it is entered at
//! any set of them. A walk at many positions does no more than the walks at each of them would, nor more
//! than to go through all there is.

use quelea_model::limits::SHORT_STRING_BYTES_MAX;

/// Words of the longest key: as many dots as it has bytes, and one more.
pub(super) const WORDS_MAX: usize = SHORT_STRING_BYTES_MAX + 1;
/// Positions in the longest key.
const POSITIONS_MAX: u64 = WORDS_MAX as u64 + 1;
/// Different words of one key: the empty one, and then of one byte each with a dot between them.
const DIFFERENT_WORDS_MAX: u64 = SHORT_STRING_BYTES_MAX as u64 / 2 + 1;
/// Beyond it a bound says no more than that it is beyond all limits. Sums of as many as there are nodes
/// stay exact.
const COST_MAX: u64 = 1 << 30;

/// The bounds of one node, in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// When it is entered at one position.
    pub(super) once: u32,
    /// When it is entered at any number of them.
    pub(super) many: u32,
}

/// What the literal children of a node cost together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LiteralsCost {
    pub(super) count: u64,
    pub(super) once_max: u64,
    pub(super) many_max: u64,
    pub(super) many_sum: u64,
}

impl Cost {
    /// Returns the bounds of a node. `lists`: each visit of it adds to the result.
    pub(super) fn of(lists: bool, star: Self, hash: Self, literals: &LiteralsCost) -> Self {
        let visit = u64::from(!lists);
        let either = |star: u32| visit + u64::from(star) + u64::from(hash.many);
        // One position is before one word, which is one child's at most.
        let once = either(star.once) + literals.count.min(1) + literals.once_max;
        let lookups = literals.count.min(DIFFERENT_WORDS_MAX);
        let below = literals
            .many_sum
            .min(literals.once_max * POSITIONS_MAX)
            .min(literals.many_max * DIFFERENT_WORDS_MAX);
        let many = (either(star.many) + lookups + below).min(once * POSITIONS_MAX);
        Self { once: once.min(COST_MAX) as u32, many: many.min(COST_MAX) as u32 }
    }
}

/// The costs of many literal children, with their greatest at hand.
#[derive(Debug, Default)]
pub(super) struct CostTally {
    once: Tally,
    many: Tally,
    many_sum: u64,
}

impl CostTally {
    pub(super) fn add(&mut self, cost: Cost) {
        self.once.add(cost.once);
        self.many.add(cost.many);
        self.many_sum += u64::from(cost.many);
    }

    pub(super) fn remove(&mut self, cost: Cost) {
        self.once.remove(cost.once);
        self.many.remove(cost.many);
        self.many_sum -= u64::from(cost.many);
    }

    pub(super) fn literals(&self, count: usize) -> LiteralsCost {
        let (once_max, many_max) = (self.once.greatest(), self.many.greatest());
        LiteralsCost { count: count as u64, once_max, many_max, many_sum: self.many_sum }
    }
}

/// How often each number is there, in ascending order. Few: children that cost `n` different amounts
/// have `n²/2` nodes below them.
#[derive(Debug, Default)]
struct Tally(Vec<(u32, u32)>);

impl Tally {
    fn add(&mut self, number: u32) {
        match self.0.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (number, 1)),
        }
    }

    fn remove(&mut self, number: u32) {
        let found = self.0.binary_search_by_key(&number, |(number, _)| *number);
        debug_assert!(found.is_ok(), "what is removed was added");
        let Ok(at) = found else { return };
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }

    fn greatest(&self) -> u64 {
        self.0.last().map_or(0, |(number, _)| u64::from(*number))
    }
}

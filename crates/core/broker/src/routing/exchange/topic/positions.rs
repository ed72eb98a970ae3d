//! Sets of positions in a key: position `n` stands before the key's word `n`, and the last one behind
//! its last word.

/// A set of positions.
pub(super) trait Positions: Copy + Default + PartialEq + std::fmt::Debug {
    /// The last position that it can hold, and so the words of the longest key.
    const LAST: usize;

    fn single(position: usize) -> Self;
    fn contains(self, position: usize) -> bool;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Returns the positions, each behind the word that it stood before. [`Self::LAST`] must not be
    /// in the set.
    fn behind_next_word(self) -> Self;
    /// Returns all positions from the set's first one up to `last`. The set must not be empty.
    fn all_from_first(self, last: usize) -> Self;
    fn first(self) -> Option<usize>;
    fn len(self) -> usize;

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Positions for u64 {
    const LAST: usize = 63;

    fn single(position: usize) -> Self {
        1 << position
    }

    fn contains(self, position: usize) -> bool {
        self & Self::single(position) != 0
    }

    fn and(self, other: Self) -> Self {
        self & other
    }

    fn or(self, other: Self) -> Self {
        self | other
    }

    fn minus(self, other: Self) -> Self {
        self & !other
    }

    fn behind_next_word(self) -> Self {
        self << 1
    }

    fn all_from_first(self, last: usize) -> Self {
        (Self::MAX << self.trailing_zeros()) & (Self::MAX >> (Self::LAST - last))
    }

    fn first(self) -> Option<usize> {
        (self != 0).then(|| self.trailing_zeros() as usize)
    }

    fn len(self) -> usize {
        self.count_ones() as usize
    }
}

/// Enough for the longest key: 255 dots, and so 256 empty words.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ManyPositions([u64; 5]);

const BITS: usize = u64::BITS as usize;

impl ManyPositions {
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|at| f(self.0[at], other.0[at])))
    }
}

impl Positions for ManyPositions {
    const LAST: usize = 5 * BITS - 1;

    fn single(position: usize) -> Self {
        let mut set = Self::default();
        set.0[position / BITS] = 1 << (position % BITS);
        set
    }

    fn contains(self, position: usize) -> bool {
        self.0[position / BITS] & (1 << (position % BITS)) != 0
    }

    fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    fn minus(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    fn behind_next_word(self) -> Self {
        let carried = |at: usize| if at == 0 { 0 } else { self.0[at - 1] >> (BITS - 1) };
        Self(std::array::from_fn(|at| self.0[at] << 1 | carried(at)))
    }

    fn all_from_first(self, last: usize) -> Self {
        let first = self.first().unwrap_or(last);
        Self(std::array::from_fn(|at| {
            let begins_at = at * BITS;
            let from = first.saturating_sub(begins_at);
            let up_to = (last + 1).saturating_sub(begins_at);
            let above = if from >= BITS { 0 } else { u64::MAX << from };
            let below = if up_to >= BITS { u64::MAX } else { (1 << up_to) - 1 };
            above & below
        }))
    }

    fn first(self) -> Option<usize> {
        let at = self.0.iter().position(|bits| *bits != 0)?;
        Some(at * BITS + self.0[at].trailing_zeros() as usize)
    }

    fn len(self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set<P: Positions>(positions: &BTreeSet<usize>) -> P {
        positions.iter().fold(P::default(), |set, position| set.or(P::single(*position)))
    }

    fn all<P: Positions>(mut set: P) -> BTreeSet<usize> {
        let mut positions = BTreeSet::new();
        while let Some(first) = set.first() {
            positions.insert(first);
            set = set.minus(P::single(first));
        }
        positions
    }

    fn check<P: Positions>(a: &BTreeSet<usize>, b: &BTreeSet<usize>, last: usize) {
        let (x, y) = (set::<P>(a), set::<P>(b));
        assert_eq!(&all(x), a);
        assert_eq!(x.len(), a.len());
        assert_eq!(all(x.and(y)), a & b);
        assert_eq!(all(x.or(y)), a | b);
        assert_eq!(all(x.minus(y)), a - b);
        assert!((0..=P::LAST).all(|at| x.contains(at) == a.contains(&at)));
        let movable = a - &BTreeSet::from([P::LAST]);
        let moved: BTreeSet<_> = movable.iter().map(|at| at + 1).collect();
        assert_eq!(all(set::<P>(&movable).behind_next_word()), moved);
        if let Some(first) = a.first().filter(|first| **first <= last) {
            assert_eq!(all(x.all_from_first(last)), (*first..=last).collect());
        }
    }

    proptest! {
        #[test]
        fn positions_are_a_set(
            a in proptest::collection::btree_set(0usize..320, 0..40),
            b in proptest::collection::btree_set(0usize..320, 0..40),
            last in 0usize..320,
        ) {
            check::<ManyPositions>(&a, &b, last);
            let narrow = |set: &BTreeSet<usize>| set.iter().map(|at| at % 64).collect();
            check::<u64>(&narrow(&a), &narrow(&b), last % 64);
        }
    }
}

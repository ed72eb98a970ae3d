//! Where all randomness comes from.

use std::fmt::{self, Display, Formatter};
use std::num::ParseIntError;
use std::str::FromStr;

/// The number that a run is played from, as it is given on the command line and printed with a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns a generator of its own for one part of a run, so that what one part draws does not
    /// change what another does.
    #[must_use]
    pub fn rng(self, part: &str) -> fastrand::Rng {
        self.child(part, 0).generator()
    }

    /// Returns such a generator for the `index`th of many equal parts.
    #[must_use]
    pub fn rng_of(self, part: &str, index: u64) -> fastrand::Rng {
        self.child(part, index).generator()
    }

    /// Returns a seed for a run within the run.
    #[must_use]
    pub fn child(self, part: &str, index: u64) -> Self {
        // FNV-1a over the name, then a mix as in SplitMix64: short and the same on every machine.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ mix(self.0);
        for byte in part.bytes().chain(index.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(mix(hash))
    }

    fn generator(self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.0)
    }
}

const fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Display for Seed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_draw_apart_and_the_same_seed_draws_the_same() {
        let draw = |seed: u64, part: &str, index: u64| Seed(seed).rng_of(part, index).u64(..);
        assert_eq!(draw(1, "faults", 0), draw(1, "faults", 0));
        let others = [draw(2, "faults", 0), draw(1, "load", 0), draw(1, "faults", 1)];
        assert!(others.iter().all(|other| *other != draw(1, "faults", 0)), "{others:?}");
    }
}

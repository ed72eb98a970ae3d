//! Ids of requests, which clients quote when they ask what became of one.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Makes ids that look like UUIDs. They have to differ, not to be secret: SplitMix64 (Steele, Lea,
/// Flood 2014) costs a few instructions and no lock.
#[derive(Debug)]
pub(crate) struct RequestIds {
    state: u64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        // The hasher's keys are the only random ones that need no crate.
        Self { state: RandomState::new().build_hasher().finish() }
    }

    pub(crate) fn next(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        // Version 4, variant 1, as of random UUIDs.
        let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | 0b10 << 62);
        let mut text = String::with_capacity(36);
        let parts =
            (high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff);
        let (a, b, c, d, e) = parts;
        write!(text, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
            .expect("writing to a string cannot fail");
        text
    }

    const fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_uuids_that_differ() {
        let mut ids = RequestIds::new();
        let made: HashSet<_> = (0..1000).map(|_| ids.next()).collect();
        assert_eq!(made.len(), 1000);
        for id in made {
            let parts: Vec<_> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        }
    }
}

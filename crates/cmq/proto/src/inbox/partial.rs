//! A message that came in fragments, until it is whole.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::Time;
use crate::wire::data::{Fragment, framed_bytes};
use crate::wire::varint;

/// What an incomplete message takes of the shared memory beside its bytes.
pub(super) const PARTIAL_BYTES: usize = 256;

/// The least that its buffer grows by.
const GROWTH_BYTES: usize = 64 << 10;

/// A message of which fragments are missing. Its buffer grows as they come, not as the first one
/// claims.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) fragments: u32,
    total: u32,
    /// The message, framed, as far as it is without a gap.
    bytes: Vec<u8>,
    /// The next fragment that goes there.
    next: u32,
    /// Those behind a gap.
    later: BTreeMap<u32, Bytes>,
    /// Whether its first fragment came, with which it is counted.
    pub(super) has_begun: bool,
    pub(super) since: Time,
    /// What its mailbox keeps for its fragments.
    pub(super) room: usize,
    /// What it takes of the memory that all flows share.
    pub(super) taken: usize,
}

impl Partial {
    /// Creates the incomplete message that `fragment` is of, without any bytes.
    pub(super) const fn new(fragment: &Fragment, taken: usize, now: Time) -> Self {
        Self {
            fragments: fragment.fragments,
            total: fragment.total,
            bytes: Vec::new(),
            next: 0,
            later: BTreeMap::new(),
            has_begun: false,
            since: now,
            room: 0,
            taken,
        }
    }

    /// Returns whether `fragment` is of this message.
    pub(super) const fn agrees(&self, fragment: &Fragment) -> bool {
        fragment.fragments == self.fragments && fragment.total == self.total
    }

    /// Returns the fragment that is missing first.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Adds a fragment, which has not come before. `room` is what its mailbox keeps for it.
    pub(super) fn add(&mut self, fragment: &Fragment, piece: &[u8], room: usize) {
        self.has_begun |= fragment.index == 0;
        self.room += room;
        if fragment.index != self.next {
            self.later.insert(fragment.index, Bytes::copy_from_slice(piece));
            return;
        }
        self.append(piece);
        while let Some(piece) = self.later.remove(&self.next) {
            self.append(&piece);
        }
    }

    fn append(&mut self, piece: &[u8]) {
        if self.next == 0 {
            self.bytes.reserve_exact(framed_bytes(self.total as usize).min(GROWTH_BYTES));
            varint::write(&mut self.bytes, u64::from(self.total));
        }
        if self.bytes.capacity() - self.bytes.len() < piece.len() {
            let all = framed_bytes(self.total as usize);
            let wanted = (2 * self.bytes.len()).max(self.bytes.len() + piece.len()).min(all);
            self.bytes.reserve_exact(wanted.saturating_sub(self.bytes.len()).max(piece.len()));
        }
        self.bytes.extend_from_slice(piece);
        self.next += 1;
    }

    /// Takes the whole message, framed, if it is whole.
    pub(super) fn take_whole(&mut self) -> Option<Bytes> {
        (self.next == self.fragments).then(|| Bytes::from(core::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::data::Messages;

    #[test]
    fn fragments_in_any_order_make_the_message() {
        let message: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
        let fragments = 71;
        for step in [1, 2, 30, 70] {
            let of = |index| Fragment { index, fragments, total: 100_000 };
            let mut partial = Partial::new(&of(0), 0, Time::ZERO);
            for at in 0..fragments {
                assert!(partial.take_whole().is_none());
                let fragment = of(at * step % fragments);
                partial.add(&fragment, &message[fragment.range()], 1);
            }
            let whole = partial.take_whole().unwrap();
            assert_eq!(Messages::new(&whole, 1).next(), Some(&message[..]), "step {step}");
            assert_eq!(partial.room, 71);
        }
    }

    #[test]
    fn a_claim_takes_no_memory() {
        let fragment = Fragment { index: 0, fragments: 2, total: 64 << 20 };
        let mut partial = Partial::new(&fragment, 0, Time::ZERO);
        partial.add(&fragment, b"small", 1);
        assert!(partial.bytes.capacity() <= GROWTH_BYTES);
    }
}

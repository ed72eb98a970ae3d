//! What a message of the simulation holds: who pushed it, its number, and bytes that follow from both,
//! so that what arrives proves itself.

use std::sync::LazyLock;

/// A message's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Which flow of the plan.
    pub(crate) flow: u16,
    /// Which start of its sender.
    pub(crate) life: u16,
    /// Its number among those of that life.
    pub(crate) index: u32,
}

/// Bytes of a name; no message is smaller.
pub(crate) const NAME_BYTES: usize = 8;

/// Bytes of a message at most.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Offsets into [`NOISE`]: messages of different names have different bytes at the same place.
const OFFSETS: usize = 4_093;

/// What messages are cut from, since comparing slices is quick.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut rng = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| rng.u8(..)).take(OFFSETS + MESSAGE_BYTES_MAX).collect()
});

impl Name {
    /// Returns the message of this name with so many bytes.
    pub(crate) fn message(self, bytes: usize) -> Vec<u8> {
        let mut message = Vec::with_capacity(bytes.max(NAME_BYTES));
        message.extend_from_slice(&self.flow.to_le_bytes());
        message.extend_from_slice(&self.life.to_le_bytes());
        message.extend_from_slice(&self.index.to_le_bytes());
        message.extend_from_slice(self.rest(bytes.saturating_sub(NAME_BYTES)));
        message
    }

    /// Returns the name of a message, if it is as it was made.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        let (name, rest) = message.split_at_checked(NAME_BYTES)?;
        let word = |at: usize| u16::from_le_bytes([name[at], name[at + 1]]);
        let index = u32::from_le_bytes([name[4], name[5], name[6], name[7]]);
        let name = Self { flow: word(0), life: word(2), index };
        (rest == name.rest(rest.len())).then_some(name)
    }

    /// Returns what follows the name.
    fn rest(self, bytes: usize) -> &'static [u8] {
        let mixed = self.index as usize * 31 + usize::from(self.flow) * 7;
        &NOISE[mixed % OFFSETS..][..bytes]
    }
}

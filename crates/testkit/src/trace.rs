//! A sum over all that happened, to compare two runs of one seed.

/// A hash of what is put in (FNV-1a over words): the same in every run and on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    /// Adds a number.
    pub const fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    /// Adds bytes and how many there are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// Returns the hash of all that was added so far.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.0
    }
}

//! A sum over all that happened, to compare two runs.

/// A hash of what is fed to it (FNV-1a over words): the same in every run and on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    pub(super) const fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.number(u64::from(*byte)));
    }

    pub(super) const fn sum(self) -> u64 {
        self.0
    }
}

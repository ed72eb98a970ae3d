//! A sum over all that happened, to compare two runs.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// A hash of what is put in. Not a random one: the same in every run.
#[derive(Clone, Default)]
pub(crate) struct Trace(FxHasher);

impl Trace {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.finish()
    }
}

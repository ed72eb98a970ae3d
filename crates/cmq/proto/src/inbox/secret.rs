//! How tables are hashed whose keys peers choose.

use core::hash::BuildHasher;
use std::hash::{DefaultHasher, Hasher};

/// Hashes with a secret: peers choose sessions and numbers, and must not choose collisions.
#[derive(Clone, Debug)]
pub(super) struct Secret(pub(super) u64);

impl BuildHasher for Secret {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

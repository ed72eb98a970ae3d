//! The broker's only source of randomness: generators that are seeded from outside, so that a test
//! or a simulation gets the same names again.

use sha2::{Digest as _, Sha256};

/// Letters of base64url, in which RabbitMQ writes its random names.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// As many as 128 bits take.
const NAME_LETTERS: usize = 22;

/// Numbers are fast. Names are digests of the seed and how many there were before: nobody learns one from another, and
/// whoever knows the key of a reply may reply.
#[derive(Debug)]
pub(crate) struct Random {
    numbers: fastrand::Rng,
    seed: u64,
    names: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { numbers: fastrand::Rng::with_seed(seed), seed, names: 0 }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers.u64(..)
    }

    /// Returns a number less than `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.numbers.usize(..limit)
    }

    /// Returns `prefix` and 22 random letters.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        let digest = Sha256::new().chain_update(self.seed.to_be_bytes());
        let digest = digest.chain_update(self.names.to_be_bytes()).finalize();
        let letters = digest.iter().take(NAME_LETTERS);
        let letters = letters.map(|byte| char::from(LETTERS[usize::from(byte & 63)]));
        prefix.chars().chain(letters).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names_and_another_seed_gives_others() {
        let names = |seed| {
            let mut random = Random::new(seed);
            [random.name("amq.gen-"), random.name("amq.gen-")]
        };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        assert_ne!(names(1)[0], names(1)[1]);
        assert_eq!(names(1)[0].len(), 8 + 22);
    }
}

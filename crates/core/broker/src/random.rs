//! The broker's only source of randomness: a generator that is seeded from outside, so that a test
//! or a simulation gets the same names again.

/// Letters of base64url, in which RabbitMQ writes its random names.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// 128 random bits are 22 letters.
const NAME_LETTERS: usize = 22;

#[derive(Debug)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Less than `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// `prefix` and 22 random letters.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        let mut name = String::with_capacity(prefix.len() + NAME_LETTERS);
        name.push_str(prefix);
        let mut bits = 0;
        for at in 0..NAME_LETTERS {
            // Ten letters of six bits from each number.
            if at % 10 == 0 {
                bits = self.number();
            }
            name.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
        name
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

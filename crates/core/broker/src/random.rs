//! The broker's only source of randomness: a generator that is seeded from outside, so that a test
//! or a simulation gets the same names again.

/// Letters of base64url, in which RabbitMQ writes its random names.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// 128 random bits are 22 letters.
const NAME_LETTERS: usize = 22;

/// xoshiro256++ (Blackman and Vigna), its state filled by SplitMix64.
#[derive(Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut z = seed;
        let state = std::array::from_fn(|_| {
            z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = z;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        });
        Self { state }
    }

    pub(crate) const fn number(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
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

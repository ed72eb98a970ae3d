//! Randomness for jitter and for ids; nothing here needs to be unpredictable.

/// A small generator (xorshift64*), seeded by the system.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        // A system without randomness still gives different clients different seeds.
        let fallback = || u64::from(std::process::id()) ^ std::ptr::from_ref(&()) as u64;
        Self::seeded(getrandom::u64().unwrap_or_else(|_| fallback()))
    }

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below 1.
    pub(crate) const fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 32 hexadecimal digits that nobody else has.
    pub(crate) fn id(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_lie_evenly_below_one() {
        let mut random = Random::seeded(7);
        let drawn: Vec<f64> = (0..10_000).map(|_| random.fraction()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn ids_do_not_repeat() {
        let mut random = Random::new();
        let ids: std::collections::HashSet<String> = (0..1_000).map(|_| random.id()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.len() == 32));
    }
}

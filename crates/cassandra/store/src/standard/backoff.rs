//! When a waiting receive reads the head again, and when a change that another has overtaken is made anew.

/// The first pause, in ms.
const FIRST_MS: u64 = 20;

/// The longest, in ms: so late is what another front-end has sent, if nothing says so.
const LONGEST_MS: u64 = 400;

/// Pauses that double. Ours, since backon's jitter adds up to the whole pause, and this one may only shorten it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    last_ms: u64,
}

impl Backoff {
    /// How long to wait after another read that found nothing. `random` is below 2^32; it takes up to a quarter off, so
    /// that those who wait for the same queue do not all read at once.
    pub(crate) fn next_ms(&mut self, random: u32) -> u64 {
        self.last_ms =
            if self.last_ms == 0 { FIRST_MS } else { (self.last_ms * 2).min(LONGEST_MS) };
        self.last_ms - ((self.last_ms / 4 * u64::from(random)) >> 32)
    }

    /// Something was found.
    pub(crate) fn reset(&mut self) {
        self.last_ms = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..7).map(|_| backoff.next_ms(0)).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 400, 400]);
        backoff.reset();
        assert_eq!(backoff.next_ms(u32::MAX), 16);
    }
}

//! When a waiting receive reads the head again, and when a change that another has overtaken is made anew.

/// The first pause, in ms.
const FIRST_MS: u64 = 20;

/// The longest, in ms: so late is what another front-end has sent, if nothing says so.
const LONGEST_MS: u64 = 400;

/// The longest where nudges say so, in ms: nothing becomes visible by time alone sooner than after the shortest delay or visibility
/// timeout, a second, so that none of it is found later than without nudges.
const LONGEST_NUDGED_MS: u64 = 1_000 + LONGEST_MS;

/// Pauses that double. Ours, since backon's jitter adds up to the whole pause, and this one may only shorten it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    last_ms: u64,
}

impl Backoff {
    /// Returns how long to wait after another read that found nothing. `random` is below 2^32; it
    /// takes up to a quarter off, so that those who wait for the same queue do not all read at
    /// once.
    pub(crate) fn next_ms(&mut self, random: u32) -> u64 {
        self.next_ms_up_to(LONGEST_MS, random)
    }

    /// Returns the same where what another front-end sends is announced, and only what is sent with
    /// a delay is not: if the last read has found nothing, not even of what was written late.
    pub(crate) fn next_nudged_ms(&mut self, random: u32) -> u64 {
        self.next_ms_up_to(LONGEST_NUDGED_MS, random)
    }

    fn next_ms_up_to(&mut self, longest_ms: u64, random: u32) -> u64 {
        self.last_ms =
            if self.last_ms == 0 { FIRST_MS } else { (self.last_ms * 2).min(longest_ms) };
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
        let pauses: Vec<u64> = (0..7).map(|_| backoff.next_nudged_ms(0)).collect();
        assert_eq!(pauses, [40, 80, 160, 320, 640, 1_280, 1_400]);
        assert_eq!(backoff.next_ms(0), 400, "nudges do not come any more");
    }
}

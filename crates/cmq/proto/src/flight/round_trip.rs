//! How long a datagram and the word on it take (RFC 6298's estimate, in microseconds).

/// A round trip's estimate. Without a sample it says nothing, and others use their own defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed; zero until the first sample.
    smoothed_us: u32,
    /// Its mean deviation.
    deviation_us: u32,
    /// The last sample.
    latest_us: u32,
    /// The least ever: a receiver that claims to have waited longer than is possible is not believed.
    least_us: u32,
}

/// Nobody on this planet is farther away; a larger sample is a machine that slept.
const SAMPLE_US_MAX: u64 = 10_000_000;

impl RoundTrip {
    /// A word came `elapsed_us` after its datagram left, of which the receiver waited `waited_us`.
    pub(super) fn sample(&mut self, elapsed_us: u64, waited_us: u32) {
        // At least one, since zero stands for "no sample". The bound makes the cast safe.
        #[allow(clippy::cast_possible_truncation)]
        let elapsed = elapsed_us.clamp(1, SAMPLE_US_MAX) as u32;
        let first = self.smoothed_us == 0;
        let honest = elapsed.saturating_sub(waited_us);
        let sample = if first || honest >= self.least_us { honest.max(1) } else { elapsed };
        self.least_us = if first { sample } else { self.least_us.min(sample) };
        self.latest_us = sample;
        if first {
            self.smoothed_us = sample;
            self.deviation_us = sample / 2;
        } else {
            let off = self.smoothed_us.abs_diff(sample);
            self.deviation_us = self.deviation_us - self.deviation_us / 4 + off / 4;
            self.smoothed_us = (self.smoothed_us - self.smoothed_us / 8 + sample / 8).max(1);
        }
    }

    /// Returns the estimate, if there is one.
    pub(super) fn smoothed_us(&self) -> Option<u64> {
        (self.smoothed_us > 0).then_some(u64::from(self.smoothed_us))
    }

    /// Returns how long an answer may take that is not lost: 2 · SRTT + 4 · RTTVAR.
    pub(super) fn patience_us(&self) -> Option<u64> {
        self.smoothed_us().map(|smoothed| 2 * smoothed + 4 * u64::from(self.deviation_us))
    }

    /// Returns how old a datagram must be to count as lost once a later one arrived: 1.25 · RTT.
    pub(super) fn overdue_us(&self) -> u64 {
        let round_trip = u64::from(self.smoothed_us.max(self.latest_us));
        (round_trip + round_trip / 4).max(super::OVERDUE_US_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_samples() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.patience_us(), None);
        for _ in 0..100 {
            round_trip.sample(1_000, 0);
        }
        let patience = round_trip.patience_us().unwrap();
        assert!((1_900..=2_100).contains(&patience), "{patience}");
        for _ in 0..100 {
            round_trip.sample(50_000, 0);
        }
        assert!((45_000..=55_000).contains(&round_trip.smoothed_us().unwrap()));
    }

    #[test]
    fn what_the_receiver_waited_is_taken_off_unless_it_cannot_be() {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(1_500, 1_000);
        assert_eq!(round_trip.smoothed_us(), Some(500));
        // Nobody answers in 10 µs over this path: the wait is a lie or a clock's mistake.
        round_trip.sample(600, 590);
        assert_eq!(round_trip.latest_us, 600);
    }

    #[test]
    fn absurd_samples_neither_overflow_nor_vanish() {
        let mut round_trip = RoundTrip::default();
        for _ in 0..50 {
            round_trip.sample(u64::MAX, 0);
            round_trip.sample(0, u32::MAX);
        }
        assert!(round_trip.patience_us().unwrap() > 0);
    }
}

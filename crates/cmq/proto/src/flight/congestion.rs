//! How much a path between machines carries (RFC 8085, section 3.1.1): additive increase,
//! multiplicative decrease. Not for loopback, where the receiver's credit says it all, and not for
//! modes that repeat nothing.
//!
//! One rule is not TCP's: **a few losses are the path's nature, not congestion.** The window is halved
//! only if more than [`LOSS_PERCENT`] of a round trip's datagrams, and of [`JUDGED_DATAGRAMS_MIN`] if
//! those are more, were lost. With TCP's rule a path that loses 1.4 % at random carries
//! 1.22 / √0.014 ≈ 10 datagrams a round trip and no more; with this rule it carries what it can. A
//! queue that overflows loses more than 5 % as soon as the window is a twentieth too large, so that
//! congestion is still seen within a round trip or two.

use crate::Time;

/// Losses that are put up with.
const LOSS_PERCENT: u32 = 5;

/// Fewer are taken as this many: at 1.4 % the chance that 7 or more of 128 are lost (the least that is
/// above 5 %) is 0.3 %. With 64 it were 1.3 %, and one wrong halving costs half a window for as many
/// round trips as it has segments.
const JUDGED_DATAGRAMS_MIN: u32 = 128;

/// The least window: eight full datagrams of Ethernet, as the kernel counts them. With fewer, losses
/// are found by the timer only.
const WINDOW_BYTES_MIN: u64 = 8 * 2_300;

/// More is never under way.
const WINDOW_BYTES_MAX: u64 = super::WINDOW_BYTES_MAX;

/// What one round trip adds to the window: a segment, or if that is more this share of the window: a
/// fast and long path would otherwise take minutes to be filled.
const STEP_BYTES: u64 = 2_300;
const STEP_SHARE: u64 = 64;

/// The congestion window of one destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    window_bytes: u64,
    /// Below it the window doubles each round trip.
    slow_start_below: u64,
    arrived: u32,
    lost: u32,
    /// Bytes that arrived and did not yet make a step.
    grown: u64,
    /// When the counting of `arrived` and `lost` began. What is lost within a round trip was under
    /// way together: one event.
    counted_since: Time,
}

impl Congestion {
    pub(super) fn new(now: Time) -> Self {
        Self {
            window_bytes: super::INITIAL_WINDOW_BYTES,
            slow_start_below: u64::MAX,
            arrived: 0,
            lost: 0,
            grown: 0,
            counted_since: now,
        }
    }

    pub(super) fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// Datagrams arrived, with `bytes` in all; `used` if the window was what held the sender back.
    pub(super) fn arrived(&mut self, datagrams: u32, bytes: u64, used: bool) {
        self.arrived = self.arrived.saturating_add(datagrams);
        if !used {
            return;
        }
        if self.window_bytes < self.slow_start_below {
            self.window_bytes += bytes;
        } else {
            self.grown += bytes;
            if self.grown >= self.window_bytes {
                self.grown = 0;
                self.window_bytes += STEP_BYTES.max(self.window_bytes / STEP_SHARE);
            }
        }
        self.window_bytes = self.window_bytes.min(WINDOW_BYTES_MAX);
    }

    /// Datagrams were lost.
    pub(super) fn lost(&mut self, datagrams: u32) {
        self.lost = self.lost.saturating_add(datagrams);
    }

    /// Judges the path, once enough is known.
    pub(super) fn judge(&mut self, now: Time, round_trip_us: u64) {
        let known = self.arrived.saturating_add(self.lost).max(JUDGED_DATAGRAMS_MIN);
        let congested = u64::from(self.lost) * 100 > u64::from(known) * u64::from(LOSS_PERCENT);
        let enough = congested || known > JUDGED_DATAGRAMS_MIN;
        if !enough || now.since_us(self.counted_since) < round_trip_us {
            return;
        }
        if congested {
            // What got through is what the path carries: up to nine tenths of that the window may
            // double again at once, so that a wrong judgement costs two round trips and not hundreds.
            let carried = self.window_bytes * u64::from(known - self.lost) / u64::from(known);
            self.slow_start_below = carried * 9 / 10;
            self.window_bytes = (self.window_bytes / 2).max(WINDOW_BYTES_MIN);
            self.grown = 0;
        }
        (self.arrived, self.lost, self.counted_since) = (0, 0, now);
    }

    /// Nothing was heard for several questions: begin again as on a path that is not known.
    pub(super) fn silence(&mut self, now: Time) {
        self.slow_start_below = (self.window_bytes / 2).max(WINDOW_BYTES_MIN);
        self.window_bytes = WINDOW_BYTES_MIN;
        (self.arrived, self.lost, self.grown, self.counted_since) = (0, 0, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean window over round trips of 10 ms in which the whole window is sent in
    /// datagrams of 2,000 bytes, each lost with a chance of `percent`, and beyond `capacity` bytes
    /// a round trip all.
    fn mean_window(percent: f64, capacity: u64, seed: u64) -> u64 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut congestion = Congestion::new(Time::ZERO);
        let mut sum = 0;
        for round in 0..400_u64 {
            let now = Time::from_micros(round * 10_000);
            let window = congestion.window_bytes().min(2_000_000);
            for sent in 1..=window / 2_000 {
                if sent * 2_000 > capacity || rng.f64() * 100.0 < percent {
                    congestion.lost(1);
                } else {
                    congestion.arrived(1, 2_000, true);
                }
                congestion.judge(now, 10_000);
            }
            sum += window;
        }
        sum / 400
    }

    #[test]
    fn isolated_losses_do_not_bring_the_window_down() {
        for seed in 0..20 {
            let mean = mean_window(1.4, u64::MAX, seed);
            assert!(mean > 1_000_000, "seed {seed}: {mean} of 2,000,000 bytes");
        }
    }

    #[test]
    fn a_path_that_is_full_is_not_flooded() {
        for seed in 0..20 {
            let mean = mean_window(0.0, 200_000, seed);
            assert!((100_000..260_000).contains(&mean), "seed {seed}: {mean} on 200,000 bytes");
        }
    }

    #[test]
    fn heavy_loss_brings_it_to_the_least_and_not_below() {
        let mean = mean_window(60.0, u64::MAX, 7);
        assert!((WINDOW_BYTES_MIN..3 * WINDOW_BYTES_MIN).contains(&mean), "{mean}");
        let mut congestion = Congestion::new(Time::ZERO);
        congestion.silence(Time::ZERO);
        assert_eq!(congestion.window_bytes(), WINDOW_BYTES_MIN);
    }

    #[test]
    fn the_window_does_not_grow_while_it_is_not_used() {
        let mut congestion = Congestion::new(Time::ZERO);
        let before = congestion.window_bytes();
        congestion.arrived(1_000, 1_000_000, false);
        assert_eq!(congestion.window_bytes(), before);
    }
}

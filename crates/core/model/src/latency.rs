//! How long things took, counted in buckets for the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

/// The buckets' upper bounds in microseconds, inclusive; what took longer is in one more bucket.
pub const LATENCY_BOUNDS_US: [u64; BOUNDS] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

const BOUNDS: usize = 16;
const BUCKETS: usize = BOUNDS + 1;

/// Durations by bucket, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u64; BUCKETS],
    sum_us: u64,
}

impl LatencyHistogram {
    /// Counts `count` things that took `us` microseconds each.
    pub fn record(&mut self, us: u64, count: u64) {
        self.counts[bucket_of(us)] += count;
        self.sum_us = self.sum_us.saturating_add(us.saturating_mul(count));
    }

    /// Returns how many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the microseconds of all together.
    #[must_use]
    pub const fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// Returns each bucket's upper bound in microseconds (`None`: it has none) and how many are in it alone, the
    /// shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = LATENCY_BOUNDS_US.into_iter().map(Some).chain([None]);
        bounds.zip(self.counts)
    }
}

/// A [`LatencyHistogram`] that several threads count in.
#[derive(Debug, Default)]
pub struct SharedLatencyHistogram {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl SharedLatencyHistogram {
    /// Counts one thing that took `us` microseconds.
    pub fn record(&self, us: u64) {
        self.counts[bucket_of(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Returns what was counted so far. What is counted meanwhile may be in the sum and not yet in
    /// a bucket, or the other way round.
    #[must_use]
    pub fn snapshot(&self) -> LatencyHistogram {
        LatencyHistogram {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

fn bucket_of(us: u64) -> usize {
    LATENCY_BOUNDS_US.partition_point(|bound| *bound < us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_counts_in_its_bucket_and_longer_in_the_last() {
        let mut histogram = LatencyHistogram::default();
        for us in [0, 100, 101, 10_000_000, 10_000_001, u64::MAX] {
            histogram.record(us, 2);
        }
        let counted: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(
            counted,
            [(Some(100), 4), (Some(250), 2), (Some(10_000_000), 2), (None, 4)],
            "{histogram:?}"
        );
        assert_eq!(histogram.count(), 12);
        assert_eq!(histogram.sum_us(), u64::MAX, "the sum stays at the largest");
    }

    #[test]
    fn a_shared_one_counts_as_the_other_does() {
        let shared = SharedLatencyHistogram::default();
        let mut expected = LatencyHistogram::default();
        for us in [50, 5_000, 50, 20_000_000] {
            shared.record(us);
            expected.record(us, 1);
        }
        assert_eq!(shared.snapshot(), expected);
    }
}

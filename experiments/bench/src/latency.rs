//! Latencies in an HDR histogram: three significant digits from 1 µs to an hour.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 3_600 * 1_000_000_000;

/// A collection of latencies; some 200 kB, of which a run touches a few.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
}

/// What a report says of a [`Latencies`]: milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many were recorded.
    pub count: u64,
    /// Arithmetic mean, ms.
    pub mean_ms: f64,
    /// Median, ms.
    pub p50_ms: f64,
    /// 90th percentile, ms.
    pub p90_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// 99.9th percentile, ms.
    pub p999_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, 3)
            .expect("the bounds are constants that the crate accepts: low >= 1, high >= 2 low");
        Self { histogram }
    }

    /// Records one latency; what lies beyond an hour counts as an hour.
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.clamp(LOWEST_NS, HIGHEST_NS));
    }

    /// Records the time from `since` to `now`.
    pub(crate) fn record_since(&mut self, since: u64, now: u64) {
        self.record(now.saturating_sub(since));
    }

    /// Adds all that `other` holds.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !other.histogram.is_empty() {
            self.histogram.add(&other.histogram).expect("all have the same bounds");
        }
    }

    pub(crate) fn clear(&mut self) {
        if !self.histogram.is_empty() {
            self.histogram.reset();
        }
    }

    /// Returns the standard deviation, ms.
    pub(crate) fn deviation_ms(&self) -> f64 {
        if self.histogram.is_empty() { 0.0 } else { self.histogram.stdev() / 1e6 }
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let histogram = &self.histogram;
        if histogram.is_empty() {
            return Percentiles::default();
        }
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Percentiles {
            count: histogram.len(),
            mean_ms: histogram.mean() / 1e6,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: histogram.max() as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(milliseconds: impl Iterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        milliseconds.for_each(|ms| latencies.record(ms * 1_000_000));
        latencies
    }

    #[test]
    fn merging_two_halves_gives_what_recording_all_gives() {
        let mut merged = filled((1..=1000).filter(|ms| ms % 2 == 0));
        merged.merge(&filled((1..=1000).filter(|ms| ms % 2 == 1)));
        assert_eq!(merged.percentiles(), filled(1..=1000).percentiles());
        let found = merged.percentiles();
        assert_eq!(found.count, 1000);
        assert!((found.p50_ms - 500.0).abs() < 1.0, "{found:?}");
        assert!((found.p999_ms - 999.0).abs() < 2.0, "{found:?}");
    }

    #[test]
    fn merging_an_empty_one_changes_nothing() {
        let mut latencies = filled(1..=10);
        latencies.merge(&Latencies::new());
        assert_eq!(latencies.percentiles().count, 10);
    }

    #[test]
    fn an_empty_collection_reports_zeros() {
        assert_eq!(Latencies::new().percentiles(), Percentiles::default());
    }

    #[test]
    fn a_clock_that_runs_backwards_counts_as_the_shortest_latency() {
        let mut latencies = Latencies::new();
        latencies.record_since(2_000, 1_000);
        assert!(latencies.percentiles().max_ms < 0.003);
    }

    #[test]
    fn a_latency_beyond_an_hour_is_kept_as_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(u64::MAX);
        assert!((latencies.percentiles().max_ms - 3_600_000.0).abs() < 5_000.0);
    }

    #[test]
    fn clearing_forgets_everything() {
        let mut latencies = filled(1..=10);
        latencies.clear();
        assert_eq!(latencies.percentiles().count, 0);
    }
}

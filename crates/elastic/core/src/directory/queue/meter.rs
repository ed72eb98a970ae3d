//! Rates from counts: a producer's moving averages, and what it sent between two reports.

use quelea_elastic_proto::Epoch;
use quelea_elastic_proto::frame::ProducerReport;

use crate::plan::Load;

/// The fast moving average's time, seconds.
const FAST_S: f64 = 10.0;
/// The slow moving average's time, seconds.
const SLOW_S: f64 = 200.0;

/// A producer's counts at one relay in one report.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotCounts {
    pub(super) epoch: Epoch,
    messages: u64,
    bytes: u64,
    bytes_out: u64,
}

/// A producer's rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    pub(super) fast: Load,
    pub(super) slow: Load,
    /// Seconds that it has been measured for.
    measured_s: f64,
}

impl Meter {
    pub(super) fn is_known(&self) -> bool {
        self.measured_s > 0.0
    }

    /// Returns the higher of both averages of bytes in.
    pub(super) fn bytes_in_max(&self) -> f64 {
        f64::max(self.fast.bytes_in, self.slow.bytes_in)
    }

    /// Takes rates that held for `seconds`. While less is known than an average's time, it is the mean of
    /// what is known.
    pub(super) fn add(&mut self, rates: &Load, seconds: f64) {
        if seconds <= 0.0 {
            return;
        }
        self.measured_s += seconds;
        blend(&mut self.fast, rates, seconds / FAST_S.min(self.measured_s));
        blend(&mut self.slow, rates, seconds / SLOW_S.min(self.measured_s));
    }
}

fn blend(average: &mut Load, rates: &Load, weight: f64) {
    let weight = weight.clamp(0.0, 1.0);
    let pairs = [
        (&mut average.messages_in, rates.messages_in),
        (&mut average.bytes_in, rates.bytes_in),
        (&mut average.messages_out, rates.messages_out),
        (&mut average.bytes_out, rates.bytes_out),
    ];
    for (average, rate) in pairs {
        *average += (rate - *average) * weight;
    }
}

impl SlotCounts {
    pub(super) fn of(report: &ProducerReport) -> Self {
        let ProducerReport { epoch, messages, bytes, bytes_out, .. } = *report;
        Self { epoch, messages, bytes, bytes_out }
    }

    /// Returns the rates between two reports; of another epoch nothing is known from before.
    pub(super) fn rates_since(&self, before: Option<&Self>, seconds: f64) -> Load {
        if seconds <= 0.0 {
            return Load::default();
        }
        let before = before.filter(|before| before.epoch == self.epoch);
        let (messages, bytes, bytes_out) =
            before.map_or((0, 0, 0), |before| (before.messages, before.bytes, before.bytes_out));
        let rate = |now: u64, then: u64| as_f64(now.saturating_sub(then)) / seconds;
        Load {
            messages_in: rate(self.messages, messages),
            bytes_in: rate(self.bytes, bytes),
            bytes_out: rate(self.bytes_out, bytes_out),
            ..Load::default()
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are estimates")]
pub(super) const fn as_f64(count: u64) -> f64 {
    count as f64
}

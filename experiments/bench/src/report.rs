//! The report of a run, for people and as JSON.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::error::BenchError;
use crate::latency::Percentiles;
use crate::observer::{BrokerCost, DeviceCost};
use crate::plan::Plan;
use crate::units::{milliseconds, thousands};
use crate::watch::Measured;

/// What a load did. All counts are of the measured time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Product and version, as the broker says.
    pub broker: String,
    /// The load in words.
    pub load: String,
    /// Seconds measured.
    pub seconds: f64,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
    /// Bytes of a message's body.
    pub size: usize,
    /// Messages published.
    pub sent: u64,
    /// Messages that the broker confirmed.
    pub confirmed: u64,
    /// Messages that it refused (`basic.nack`).
    pub refused: u64,
    /// Mandatory messages that came back.
    pub returned: u64,
    /// Deliveries.
    pub received: u64,
    /// Published per second.
    pub sent_per_s: f64,
    /// Confirmed per second.
    pub confirmed_per_s: f64,
    /// Delivered per second.
    pub received_per_s: f64,
    /// From sending to delivery.
    pub latency: Percentiles,
    /// From sending to the confirm.
    pub confirm_latency: Percentiles,
    /// Latencies count from the intended time (open loop), so that a stall shows in full.
    pub corrected: bool,
    /// Messages that the costs below are divided by: deliveries by copies, or publishes if nothing
    /// was consumed.
    pub messages: u64,
    /// CPU time of the broker per message, µs.
    pub broker_cpu_us_per_message: Option<f64>,
    /// The broker's process.
    pub broker_process: Option<BrokerCost>,
    /// Bytes written to the device for each byte of body.
    pub written_per_body_byte: Option<f64>,
    /// The device of the data directory.
    pub device: Option<DeviceCost>,
    /// CPU time of this generator per message, µs.
    pub generator_cpu_us_per_message: f64,
}

impl Report {
    pub(crate) fn new(broker: String, plan: &Plan, measured: &Measured) -> Self {
        let counts = measured.counts;
        let consumed = counts.received / plan.copies;
        let messages = if plan.consumers > 0 { consumed } else { counts.sent };
        let per_message = |value: u64| value as f64 / messages.max(1) as f64;
        let per_s = |count: u64| count as f64 / measured.seconds.max(1e-9);
        let body_bytes = counts.sent.max(consumed) * plan.size as u64;
        Self {
            broker,
            load: plan.describe(),
            seconds: measured.seconds,
            interrupted: measured.interrupted,
            size: plan.size,
            sent: counts.sent,
            confirmed: counts.confirmed,
            refused: counts.refused,
            returned: counts.returned,
            received: counts.received,
            sent_per_s: per_s(counts.sent),
            confirmed_per_s: per_s(counts.confirmed),
            received_per_s: per_s(counts.received),
            latency: measured.records.delivery.percentiles(),
            confirm_latency: measured.records.confirm.percentiles(),
            corrected: plan.rate.is_some(),
            messages,
            broker_cpu_us_per_message: measured
                .broker
                .filter(|_| messages > 0)
                .map(|broker| per_message(broker.cpu_us)),
            broker_process: measured.broker,
            written_per_body_byte: measured
                .device
                .as_ref()
                .filter(|_| body_bytes > 0)
                .map(|device| device.written_bytes as f64 / body_bytes as f64),
            device: measured.device.clone(),
            generator_cpu_us_per_message: per_message(measured.own_cpu_us),
        }
    }

    /// Returns the report in some ten lines.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.broker, self.load);
        let mut line = |name: &str, words: String| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "  {name:<10} {words}");
        };
        let ended = if self.interrupted { ", interrupted" } else { "" };
        line("measured", format!("{:.1} s{ended}", self.seconds));
        let rates = [
            ("sent", self.sent, self.sent_per_s),
            ("confirmed", self.confirmed, self.confirmed_per_s),
            ("received", self.received, self.received_per_s),
        ];
        for (name, count, rate) in rates.into_iter().filter(|(_, count, _)| *count > 0) {
            let megabytes = rate * self.size as f64 / 1e6;
            let (count, rate) = (thousands(count as f64), thousands(rate));
            line(name, format!("{count} messages, {rate}/s, {megabytes:.1} MB/s"));
        }
        for (name, count) in [("refused", self.refused), ("returned", self.returned)] {
            if count > 0 {
                line(name, format!("{} messages", thousands(count as f64)));
            }
        }
        let origin = if self.corrected { "intended sending time" } else { "sending, closed loop" };
        for (name, found) in [("latency", &self.latency), ("confirm", &self.confirm_latency)] {
            if found.count > 0 {
                line(name, format!("{} (from {origin})", percentiles(found)));
            }
        }
        if let Some(broker) = &self.broker_process {
            line("broker", self.broker_words(broker));
        }
        if let (Some(device), Some(ratio)) = (&self.device, self.written_per_body_byte) {
            let megabytes = device.written_bytes as f64 / 1e6;
            let flushes = thousands(device.flushes as f64);
            let words = format!(
                "{}: {megabytes:.1} MB written, {ratio:.2} x the bodies, {flushes} flushes",
                device.name
            );
            line("device", words);
        }
        line("generator", format!("{:.2} µs CPU a message", self.generator_cpu_us_per_message));
        text
    }

    fn broker_words(&self, broker: &BrokerCost) -> String {
        let cost = self
            .broker_cpu_us_per_message
            .map_or_else(String::new, |cost| format!("{cost:.2} µs CPU a message, "));
        let cores = broker.cpu_us as f64 / 1e6 / self.seconds.max(1e-9);
        format!(
            "{cost}{cores:.2} cores, memory peak {:.1} MB, now {:.1} MB (pid {})",
            broker.peak_bytes as f64 / 1e6,
            broker.resident_bytes as f64 / 1e6,
            broker.pid
        )
    }
}

/// Prints `text` and writes `value` to `json`, if given; `-` prints the JSON instead.
pub(crate) fn publish<T: Serialize>(
    text: &str,
    value: &T,
    json: Option<&Path>,
) -> Result<(), BenchError> {
    let Some(path) = json else {
        print!("{text}");
        return Ok(());
    };
    let error = |source: io::Error| BenchError::File {
        doing: "cannot write the report to",
        path: path.to_owned(),
        source,
    };
    let encoded = serde_json::to_string_pretty(value).map_err(|e| error(e.into()))?;
    if path == Path::new("-") {
        println!("{encoded}");
        return Ok(());
    }
    print!("{text}");
    std::fs::write(path, encoded + "\n").map_err(error)
}

pub(crate) fn percentiles(found: &Percentiles) -> String {
    let ms = milliseconds;
    format!(
        "p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        ms(found.p50_ms),
        ms(found.p90_ms),
        ms(found.p99_ms),
        ms(found.p999_ms),
        ms(found.max_ms)
    )
}

//! The report of a fan-out, for people and as JSON.

use serde::Serialize;

use crate::elastic::args::FanoutArgs;
use crate::elastic::load::Outcome;
use crate::elastic::tally::Order;
use crate::latency::Percentiles;
use crate::units::{milliseconds, thousands};

/// What one relay did. A delivery is one message at one listener.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FanoutReport {
    wire: &'static str,
    load: String,
    seconds: f64,
    interrupted: bool,
    /// Messages while it was measured.
    sent: u64,
    sent_per_s: f64,
    deliveries: u64,
    deliveries_per_s: f64,
    deliveries_per_min: f64,
    /// The listener that got least and the one that got most, a second.
    listener_per_s_min: f64,
    listener_per_s_max: f64,
    latency: Percentiles,
    /// Latencies count from the intended time.
    corrected: bool,
    /// Of the whole run.
    sent_in_all: u64,
    order: Order,
    server_cpu_us_per_delivery: Option<f64>,
    server_cores: Option<f64>,
    server_resident_bytes: Option<u64>,
    server_peak_bytes: Option<u64>,
    generator_cpu_us_per_delivery: f64,
}

impl FanoutReport {
    pub(crate) fn new(args: &FanoutArgs, outcome: &Outcome) -> Self {
        let deliveries: u64 = outcome.delivered.iter().sum();
        let seconds = outcome.seconds.max(1e-9);
        let per_s = |count: u64| count as f64 / seconds;
        let per_delivery = |us: u64| us as f64 / deliveries.max(1) as f64;
        let server = outcome.server;
        Self {
            wire: args.wire.name(),
            load: describe(args),
            seconds: outcome.seconds,
            interrupted: outcome.interrupted,
            sent: outcome.sent,
            sent_per_s: per_s(outcome.sent),
            deliveries,
            deliveries_per_s: per_s(deliveries),
            deliveries_per_min: per_s(deliveries) * 60.0,
            listener_per_s_min: per_s(outcome.delivered.iter().copied().min().unwrap_or(0)),
            listener_per_s_max: per_s(outcome.delivered.iter().copied().max().unwrap_or(0)),
            latency: outcome.latencies.percentiles(),
            corrected: args.rate.is_some(),
            sent_in_all: outcome.sent_in_all,
            order: outcome.order,
            server_cpu_us_per_delivery: server
                .filter(|_| deliveries > 0)
                .map(|server| per_delivery(server.cpu_us)),
            server_cores: server.map(|server| server.cpu_us as f64 / 1e6 / seconds),
            server_resident_bytes: server.map(|server| server.resident_bytes),
            server_peak_bytes: server.map(|server| server.peak_bytes),
            generator_cpu_us_per_delivery: per_delivery(outcome.own_cpu_us),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        let order = self.order;
        let mut text = format!(
            "{}: {}\n  measured   {:.1} s{ended}\n  sent       {}/s\n  delivered  {}/s ({} million a \
             minute), a listener {} to {}/s\n  latency    mean {}  p50 {}  p99 {}  max {}\n  whole run  \
             {} sent, {} received, {} lost, {} duplicates, {} out of order\n",
            self.wire,
            self.load,
            self.seconds,
            thousands(self.sent_per_s),
            thousands(self.deliveries_per_s),
            format_args!("{:.2}", self.deliveries_per_min / 1e6),
            thousands(self.listener_per_s_min),
            thousands(self.listener_per_s_max),
            milliseconds(self.latency.mean_ms),
            milliseconds(self.latency.p50_ms),
            milliseconds(self.latency.p99_ms),
            milliseconds(self.latency.max_ms),
            thousands(self.sent_in_all as f64),
            thousands(order.received as f64),
            thousands(order.lost as f64),
            thousands(order.duplicates as f64),
            thousands(order.out_of_order as f64),
        );
        if let (Some(cpu), Some(cores)) = (self.server_cpu_us_per_delivery, self.server_cores) {
            let megabytes = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / 1e6;
            text += &format!(
                "  server     {cpu:.2} µs CPU a delivery, {cores:.2} cores, memory peak {:.1} MB, now {:.1} MB\n",
                megabytes(self.server_peak_bytes),
                megabytes(self.server_resident_bytes),
            );
        }
        text + &format!(
            "  generator  {:.2} µs CPU a delivery\n",
            self.generator_cpu_us_per_delivery
        )
    }
}

fn describe(args: &FanoutArgs) -> String {
    let rate = args.rate.map_or_else(
        || "as fast as they are taken".to_owned(),
        |rate| format!("{}/s", thousands(rate)),
    );
    let stalled = match args.stalled {
        0 => String::new(),
        stalled => format!(" and {stalled} that never read"),
    };
    format!(
        "{} producers, {} listeners{stalled}, {} B, {rate}",
        args.producers,
        args.listeners,
        thousands(args.size as f64),
    )
}

/// Returns mean and percentiles on one line.
pub(crate) fn short(found: &Percentiles) -> String {
    let [mean, p50, p99, max] =
        [found.mean_ms, found.p50_ms, found.p99_ms, found.max_ms].map(milliseconds);
    format!("mean {mean}  p50 {p50}  p99 {p99}  max {max}")
}

/// Returns what became of all messages, on one line.
pub(crate) fn order_words(sent: u64, order: &Order, gaps: u64) -> String {
    let [sent, received, lost, duplicates, out_of_order, gaps] =
        [sent, order.received, order.lost, order.duplicates, order.out_of_order, gaps]
            .map(|count| thousands(count as f64));
    format!(
        "{sent} sent, {received} received, {lost} lost, {duplicates} duplicates, {out_of_order} out of \
         order, {gaps} gaps announced"
    )
}

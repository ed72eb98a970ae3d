//! `quelea bench elastic stalled`: the listeners' rate without and with some that take nothing.

use serde::Serialize;
use serde_json::json;

use crate::clock::{SECOND_NS, now_ns, seconds_between, seconds_to_ns};
use crate::elastic::args::StalledArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize};
use crate::elastic::report::{order_words, short};
use crate::elastic::site::Site;
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::latency::Percentiles;
use crate::report::publish;
use crate::units::thousands;

/// Before each measurement.
const SETTLE_NS: u64 = SECOND_NS;

/// What was measured.
#[derive(Debug, Serialize)]
struct StalledReport {
    producers: u32,
    listeners: u32,
    stalled: u32,
    size: usize,
    rate_per_s: f64,
    interrupted: bool,
    /// Deliveries of the listeners that take messages.
    alone_per_s: f64,
    beside_per_s: f64,
    kept: f64,
    alone: Percentiles,
    beside: Percentiles,
    sent: u64,
    /// Of the listeners that take messages.
    order: Order,
    gaps: u64,
}

pub(crate) fn run(args: &StalledArgs) -> Result<(), BenchError> {
    let size = FleetSize::of(&args.fleet)?;
    if !(1..=1_000).contains(&args.stalled) || !(0.1..=3_600.0).contains(&args.duration_s) {
        let words = "--stalled takes 1 to 1000, --duration-s 0.1 to 3600";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let site = Site::open(&args.site)?;
    let report = measure(args, size, &site)?;
    publish(&report.to_text(), &report, args.site.json.as_deref())
}

fn measure(
    args: &StalledArgs,
    size: FleetSize,
    site: &Site,
) -> Result<StalledReport, ElasticError> {
    let queue = site.make_queue(&json!({ "relays_min": 1, "relays_max": 1 }))?;
    let mut fleet = Fleet::open(site, &queue.name, size)?;
    fleet.join_all(args.fleet.rate)?;
    let (alone_per_s, alone) = window(site, &fleet, args.duration_s)?;
    for _ in 0..args.stalled {
        fleet.add_stalled()?;
    }
    let (beside_per_s, beside) = window(site, &fleet, args.duration_s)?;
    let outcome = fleet.finish()?;
    Ok(StalledReport {
        producers: args.fleet.producers,
        listeners: args.fleet.listeners,
        stalled: args.stalled,
        size: args.fleet.size,
        rate_per_s: args.fleet.rate,
        interrupted: site.interrupt.is_set(),
        alone_per_s,
        beside_per_s,
        kept: beside_per_s / alone_per_s.max(1e-9),
        alone,
        beside,
        sent: outcome.sent,
        order: outcome.order,
        gaps: outcome.gaps,
    })
}

fn window(
    site: &Site,
    fleet: &Fleet<'_>,
    seconds: f64,
) -> Result<(f64, Percentiles), ElasticError> {
    site.pause(SETTLE_NS);
    fleet.take_latencies();
    let (begin, before) = (now_ns(), fleet.delivered());
    site.pause(seconds_to_ns(seconds));
    let (end, after) = (now_ns(), fleet.delivered());
    fleet.check()?;
    let rate = (after - before) as f64 / seconds_between(begin, end).max(1e-9);
    Ok((rate, fleet.take_latencies().percentiles()))
}

impl StalledReport {
    fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        format!(
            "{} producers, {} listeners and {} that take nothing, {} B, {} messages/s{ended}\n  without    \
             {}/s, {}\n  with       {}/s, {}\n  kept       {:.1} %\n  messages   {}\n",
            self.producers,
            self.listeners,
            self.stalled,
            thousands(self.size as f64),
            thousands(self.rate_per_s),
            thousands(self.alone_per_s),
            short(&self.alone),
            thousands(self.beside_per_s),
            short(&self.beside),
            100.0 * self.kept,
            order_words(self.sent, &self.order, self.gaps),
        )
    }
}

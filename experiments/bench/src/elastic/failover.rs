//! `quelea bench elastic failover`: a relay is killed under load, again and again.

use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;

use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::elastic::args::FailoverArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize};
use crate::elastic::report::order_words;
use crate::elastic::site::{Queue, Site};
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::report::publish;
use crate::serve_process::send_signal;
use crate::units::thousands;

/// How long messages may take to flow again.
const FLOW_S: u64 = 60;
/// Between two kills, at least: the new relay's listeners have come by then.
const REST_NS: u64 = SECOND_NS;

/// What was measured.
#[derive(Debug, Serialize)]
struct FailoverReport {
    acknowledge: &'static str,
    relays: u32,
    producers: u32,
    listeners: u32,
    size: usize,
    rate_per_s: f64,
    interrupted: bool,
    /// By kill: until every listener had a message of each of its producers that was meant to leave after
    /// the kill, seconds.
    flowing_s: Vec<f64>,
    median_s: f64,
    max_s: f64,
    sent: u64,
    order: Order,
    gaps: u64,
    /// Missing messages that no gap's notice announced.
    unannounced: u64,
}

pub(crate) fn run(args: &FailoverArgs) -> Result<(), BenchError> {
    let size = FleetSize::of(&args.fleet)?;
    if !(1..=100).contains(&args.relays) || !(1..=100_000).contains(&args.rounds) {
        let words = "--relays takes 1 to 100, --rounds 1 to 100000";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let site = Site::open(&args.site)?;
    let report = measure(args, size, &site)?;
    publish(&report.to_text(), &report, args.site.json.as_deref())
}

fn measure(
    args: &FailoverArgs,
    size: FleetSize,
    site: &Site,
) -> Result<FailoverReport, ElasticError> {
    let definition = json!({
        "relays_min": args.relays,
        "relays_max": args.relays + 1,
        "acknowledge": args.acknowledge.name(),
        // What is missing is then missing for the kills alone, not for listeners that were too slow.
        "slow": "hold_producers",
    });
    let queue = site.make_queue(&definition)?;
    queue.wait_for_relays(args.relays as usize)?;
    let mut fleet = Fleet::open(site, &queue.name, size)?;
    fleet.join_all(args.fleet.rate)?;
    let mut flowing_s = Vec::new();
    while flowing_s.len() < args.rounds as usize && !site.interrupt.is_set() {
        queue.wait_for_relays(args.relays as usize)?;
        site.pause(REST_NS);
        let took = kill_one(site, &queue, &fleet)?;
        if !args.site.quiet {
            eprintln!("flowing after {took:.3} s");
        }
        flowing_s.push(took);
    }
    let outcome = fleet.finish()?;
    let mut sorted = flowing_s.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(FailoverReport {
        acknowledge: args.acknowledge.name(),
        relays: args.relays,
        producers: args.fleet.producers,
        listeners: args.fleet.listeners,
        size: args.fleet.size,
        rate_per_s: args.fleet.rate,
        interrupted: site.interrupt.is_set(),
        median_s: sorted.get(sorted.len() / 2).copied().unwrap_or(0.0),
        max_s: sorted.last().copied().unwrap_or(0.0),
        flowing_s,
        sent: outcome.sent,
        order: outcome.order,
        gaps: outcome.gaps,
        unannounced: outcome.unannounced,
    })
}

/// Kills the relay with most producers; returns how long until their messages flowed again.
fn kill_one(site: &Site, queue: &Queue<'_>, fleet: &Fleet<'_>) -> Result<f64, ElasticError> {
    let (victim, pid) = site.wait_for("there is a relay to kill", FLOW_S, || {
        let relays = queue.relays()?.into_iter().filter(|relay| relay.up && relay.producers > 0);
        let victim = relays.max_by_key(|relay| relay.producers);
        Ok(victim.and_then(|relay| Some((relay.id, relay.pid?))))
    })?;
    let producers = fleet.producers();
    let there = |relay: Option<quelea_elastic_client::RelayId>| {
        relay.is_some_and(|relay| relay.0 == victim)
    };
    let hit: Vec<usize> =
        producers.iter().filter(|(.., relay, _)| there(*relay)).map(|it| it.0).collect();
    if !send_signal(pid, Signal::KILL) {
        let what = format!("relay {victim}, process {pid}, is killed");
        return Err(ElasticError::Late { what, seconds: 0 });
    }
    let killed = now_ns();
    fleet.mark(killed);
    let flowing = site.wait_for("messages flow again", FLOW_S, || {
        fleet.check()?;
        Ok(fleet.flowing_since(&hit))
    })?;
    Ok(seconds_between(killed, flowing))
}

impl FailoverReport {
    fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        format!(
            "kill -9 of one of {} relays, {} times; acknowledged when {}; {} producers, {} listeners, {} B, {} \
             messages/s\n  flowing again after {:.2} s (median), {:.2} s (longest){ended}\n  messages   {}\n  \
             missing and not announced: {}\n",
            self.relays,
            self.flowing_s.len(),
            self.acknowledge,
            self.producers,
            self.listeners,
            thousands(self.size as f64),
            thousands(self.rate_per_s),
            self.median_s,
            self.max_s,
            order_words(self.sent, &self.order, self.gaps),
            thousands(self.unannounced as f64),
        )
    }
}

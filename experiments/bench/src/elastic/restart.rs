//! `quelea bench elastic restart`: the directory is ended under load and started again, by `kill -9` and by
//! Ctrl-C in turns.

use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;

use crate::clock::SECOND_NS;
use crate::elastic::args::RestartArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize};
use crate::elastic::report::order_words;
use crate::elastic::site::{Queue, Site};
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::report::publish;
use crate::units::thousands;

/// How long messages may take to flow again.
const FLOW_S: u64 = 60;
/// Before each restart and after it: clients have attached everywhere by then, and what was late has come.
const REST_NS: u64 = 2 * SECOND_NS;

/// How a directory is ended.
const ENDS: [(&str, Signal); 2] = [("kill -9", Signal::KILL), ("Ctrl-C", Signal::INT)];

/// What was measured.
#[derive(Debug, Serialize)]
struct RestartReport {
    acknowledge: &'static str,
    relays: u32,
    producers: u32,
    listeners: u32,
    size: usize,
    rate_per_s: f64,
    interrupted: bool,
    ends: Vec<EndReport>,
    sent: u64,
    order: Order,
    gaps: u64,
    /// Missing messages that no gap's notice announced.
    unannounced: u64,
}

/// The restarts after one kind of end.
#[derive(Debug, Default, Serialize)]
struct EndReport {
    how: &'static str,
    /// By restart: the longest that a message took that was meant to leave about then, from its intended time on.
    pauses_s: Vec<f64>,
    median_s: f64,
    max_s: f64,
    /// By restart: until the old process had ended, and then until the new one was ready.
    ended_s: Vec<f64>,
    ready_s: Vec<f64>,
    /// Relays that were there before and after, of all restarts.
    relays_kept: u64,
}

pub(crate) fn run(args: &RestartArgs) -> Result<(), BenchError> {
    let size = FleetSize::of(&args.fleet)?;
    if !(1..=100).contains(&args.relays) || !(1..=100_000).contains(&args.rounds) {
        let words = "--relays takes 1 to 100, --rounds 1 to 100000";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let site = Site::open(&args.site)?;
    if !site.is_ours() {
        let words = "a directory that runs already is not restarted: leave --directory out";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let report = measure(args, size, &site)?;
    publish(&report.to_text(), &report, args.site.json.as_deref())
}

fn measure(
    args: &RestartArgs,
    size: FleetSize,
    site: &Site,
) -> Result<RestartReport, ElasticError> {
    let definition = json!({
        "relays_min": args.relays,
        "relays_max": args.relays,
        "acknowledge": args.acknowledge.name(),
        // What is missing is then missing for the restarts alone, not for listeners that were too slow.
        "slow": "hold_producers",
    });
    let queue = site.make_queue(&definition)?;
    queue.wait_for_relays(args.relays as usize)?;
    let mut fleet = Fleet::open(site, &queue.name, size)?;
    fleet.join_all(args.fleet.rate)?;
    let mut ends = ENDS.map(|(how, _)| EndReport { how, ..EndReport::default() });
    for round in 0..args.rounds {
        for (end, (how, signal)) in ends.iter_mut().zip(ENDS) {
            if site.interrupt.is_set() {
                break;
            }
            restart_once(args, site, &queue, &fleet, signal, end)?;
            if !args.site.quiet {
                let pause = end.pauses_s.last().copied().unwrap_or_default();
                eprintln!("{how}, round {}: pause {pause:.3} s", round + 1);
            }
        }
    }
    for end in &mut ends {
        end.summarize();
    }
    let outcome = fleet.finish()?;
    Ok(RestartReport {
        acknowledge: args.acknowledge.name(),
        relays: args.relays,
        producers: args.fleet.producers,
        listeners: args.fleet.listeners,
        size: args.fleet.size,
        rate_per_s: args.fleet.rate,
        interrupted: site.interrupt.is_set(),
        ends: ends.into(),
        sent: outcome.sent,
        order: outcome.order,
        gaps: outcome.gaps,
        unannounced: outcome.unannounced,
    })
}

fn restart_once(
    args: &RestartArgs,
    site: &Site,
    queue: &Queue<'_>,
    fleet: &Fleet<'_>,
    signal: Signal,
    end: &mut EndReport,
) -> Result<(), ElasticError> {
    let before = queue.wait_for_relays(args.relays as usize)?;
    site.pause(REST_NS);
    drop(fleet.take_latencies());
    let restarted = site.restart(signal)?;
    fleet.mark(restarted.ready_ns);
    let all: Vec<usize> = fleet.producers().iter().map(|producer| producer.0).collect();
    site.wait_for("messages flow again", FLOW_S, || {
        fleet.check()?;
        Ok(fleet.flowing_since(&all))
    })?;
    let after = queue.wait_for_relays(args.relays as usize)?;
    site.pause(REST_NS);
    end.pauses_s.push(fleet.take_latencies().percentiles().max_ms / 1e3);
    end.ended_s.push(restarted.ended_s);
    end.ready_s.push(restarted.ready_s);
    let was_there = |id: u64| before.iter().any(|relay| relay.id == id);
    end.relays_kept += after.iter().filter(|relay| was_there(relay.id)).count() as u64;
    Ok(())
}

impl EndReport {
    fn summarize(&mut self) {
        self.median_s = median(&self.pauses_s);
        self.max_s = self.pauses_s.iter().copied().fold(0.0, f64::max);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

impl RestartReport {
    fn to_text(&self) -> String {
        let interrupted = if self.interrupted { ", interrupted" } else { "" };
        let mut text = format!(
            "the directory of {} relays ended and started again; acknowledged when {}; {} producers, {} listeners, \
             {} B, {} messages/s{interrupted}\n",
            self.relays,
            self.acknowledge,
            self.producers,
            self.listeners,
            thousands(self.size as f64),
            thousands(self.rate_per_s),
        );
        for end in &self.ends {
            text += &format!(
                "  {:10} {} times: pause {:.2} s (median), {:.2} s (longest); ended after {:.2} s, ready {:.2} s later \
                 (medians); {} of {} relays kept\n",
                end.how,
                end.pauses_s.len(),
                end.median_s,
                end.max_s,
                median(&end.ended_s),
                median(&end.ready_s),
                end.relays_kept,
                end.pauses_s.len() as u64 * u64::from(self.relays),
            );
        }
        text += &format!(
            "  messages   {}\n  missing and not announced: {}\n",
            order_words(self.sent, &self.order, self.gaps),
            thousands(self.unannounced as f64),
        );
        text
    }
}

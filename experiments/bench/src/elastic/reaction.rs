//! `quelea bench elastic reaction`: the load exceeds what one relay may carry. How long until other relays
//! carry so much of it that none is above its limit?

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::elastic::args::ReactionArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize, Outcome};
use crate::elastic::report::order_words;
use crate::elastic::site::Site;
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::report::publish;
use crate::units::thousands;

/// The paper took 2 to 3 minutes.
const REACTION_S: u64 = 300;
/// Of the overload, before it.
const BEFORE: f64 = 1.0 / 3.0;

/// What was measured.
#[derive(Debug, Serialize)]
struct ReactionReport {
    producers: u32,
    listeners: u32,
    size: usize,
    rate_per_s: f64,
    overload: f64,
    interrupted: bool,
    rounds: Vec<Round>,
    median_s: f64,
    max_s: f64,
    sent: u64,
    order: Order,
    gaps: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Round {
    /// Until a first producer was at another relay.
    first_move_s: f64,
    /// Until no relay was above its limit.
    moved_s: f64,
    relays: usize,
}

pub(crate) fn run(args: &ReactionArgs) -> Result<(), BenchError> {
    let size = FleetSize::of(&args.fleet)?;
    if size.producers < 2 || !(1.01..=100.0).contains(&args.overload) {
        let words = "--producers takes 2 or more, --overload 1.01 to 100";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    if !(0.0..=3_600.0).contains(&args.settle_s) || !(1..=10_000).contains(&args.rounds) {
        let words = "--settle-s takes 0 to 3600, --rounds 1 to 10000";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let site = Site::open(&args.site)?;
    let report = measure(args, size, &site)?;
    publish(&report.to_text(), &report, args.site.json.as_deref())
}

fn measure(
    args: &ReactionArgs,
    size: FleetSize,
    site: &Site,
) -> Result<ReactionReport, ElasticError> {
    let (mut rounds, mut sum) = (Vec::new(), Outcome::default());
    while rounds.len() < args.rounds as usize && !site.interrupt.is_set() {
        let (round, outcome) = round(args, size, site)?;
        if !args.site.quiet {
            eprintln!(
                "first move after {:.2} s, all moved after {:.2} s",
                round.first_move_s, round.moved_s
            );
        }
        rounds.push(round);
        sum.sent += outcome.sent;
        sum.order.add(outcome.order);
        sum.gaps += outcome.gaps;
    }
    let mut took: Vec<f64> = rounds.iter().map(|round| round.moved_s).collect();
    took.sort_unstable_by(f64::total_cmp);
    Ok(ReactionReport {
        producers: args.fleet.producers,
        listeners: args.fleet.listeners,
        size: args.fleet.size,
        rate_per_s: args.fleet.rate,
        overload: args.overload,
        interrupted: site.interrupt.is_set(),
        median_s: took.get(took.len() / 2).copied().unwrap_or(0.0),
        max_s: took.last().copied().unwrap_or(0.0),
        rounds,
        sent: sum.sent,
        order: sum.order,
        gaps: sum.gaps,
    })
}

fn round(
    args: &ReactionArgs,
    size: FleetSize,
    site: &Site,
) -> Result<(Round, Outcome), ElasticError> {
    let limit = args.fleet.rate / args.overload;
    let definition = json!({
        "relays_min": 1,
        "relays_max": 16,
        "messages_in_per_s_max": limit as u64,
    });
    let queue = site.make_queue(&definition)?;
    queue.wait_for_relays(1)?;
    let mut fleet = Fleet::open(site, &queue.name, size)?;
    fleet.join_all(args.fleet.rate * BEFORE)?;
    site.pause(seconds_to_ns(args.settle_s));
    let crossed = now_ns();
    fleet.set_rate(args.fleet.rate);
    let each = args.fleet.rate / size.producers as f64;
    let mut first_move = None;
    let (moved, relays) = site.wait_for("no relay is above its limit", REACTION_S, || {
        fleet.check()?;
        // Who is between two relays counts for none: all must be at one.
        let mut at = BTreeMap::new();
        for (_, _, relay, _) in fleet.producers() {
            let Some(relay) = relay else { return Ok(None) };
            *at.entry(relay.0).or_insert(0.0) += each;
        }
        if at.len() > 1 && first_move.is_none() {
            first_move = Some(now_ns());
        }
        Ok(at.values().all(|load| *load <= limit).then(|| (now_ns(), at.len())))
    })?;
    let outcome = fleet.finish()?;
    let since = |at| seconds_between(crossed, at);
    let first_move_s = since(first_move.unwrap_or(moved));
    Ok((Round { first_move_s, moved_s: since(moved), relays }, outcome))
}

impl ReactionReport {
    fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        let took: Vec<String> =
            self.rounds.iter().map(|round| format!("{:.2}", round.moved_s)).collect();
        format!(
            "{} producers, {} listeners, {} B, {} messages/s are {} of what a relay may take\n  moved after \
             {} s{ended}\n  median     {:.2} s, longest {:.2} s\n  messages   {}\n",
            self.producers,
            self.listeners,
            thousands(self.size as f64),
            thousands(self.rate_per_s),
            self.overload,
            took.join(", "),
            self.median_s,
            self.max_s,
            order_words(self.sent, &self.order, self.gaps),
        )
    }
}

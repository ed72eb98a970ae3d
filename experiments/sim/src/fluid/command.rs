//! `quelea-sim fluid`.

use std::fmt::Write as _;

use quelea_elastic_core::directory::{Definition, DefinitionError};
use quelea_elastic_core::plan::Policy;
use quelea_elastic_core::sla::Sla;

use super::compare::Comparison;
use super::figures::Figures;
use super::fleet::{heavy_tailed, play_all, play_fleet};
use super::scenario::Scenario;
use crate::Seed;

/// What is played, besides the seeds.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Producers of a queue, on average.
    #[arg(long, default_value_t = 100)]
    producers: u32,
    /// A producer's mean rate as a share of a relay's limit; 0: the queue needs some nine relays.
    #[arg(long, default_value_t = 0.0)]
    mean_rate: f64,
    /// Hours of virtual time.
    #[arg(long, default_value_t = 4.0)]
    hours: f64,
    /// Hours of a day: short ones press a day's rise and fall into a short run.
    #[arg(long, default_value_t = 4.0)]
    day_hours: f64,
    /// Plays a fleet under one policy with about that many relays, in queues of heavy-tailed sizes with
    /// 100 producers on average, always gated; 0: see --queues.
    #[arg(long, default_value_t = 0)]
    relays: u64,
    /// Queues of a run with one policy; 0: the policies are compared, with a queue for each seed.
    #[arg(long, default_value_t = 0)]
    queues: u64,
    /// The limit of policy `paper` as a share of what a relay carries.
    #[arg(long, default_value_t = 0.8)]
    paper_limit: f64,
    /// What the agreement says besides: a JSON object with fields of a queue's definition. A relay's limit of bytes in is
    /// the simulator's own.
    #[arg(long, default_value = "{}", value_parser = agreement)]
    agreement: Agreement,
    /// Part of its host's memory that a relay uses when it carries its limit.
    #[arg(long, default_value_t = 0.0)]
    memory_at_limit: f64,
    /// The same of its host's network.
    #[arg(long, default_value_t = 0.0)]
    network_at_limit: f64,
    /// The planner is asked only when it may find something to do.
    #[arg(long)]
    gated: bool,
    /// `steady` or `paper`, for a run with one policy.
    #[arg(long, default_value = "steady", value_parser = policy)]
    policy: Policy,
}

/// See [`Options::agreement`].
#[derive(Clone, Debug)]
struct Agreement(Sla);

fn agreement(text: &str) -> Result<Agreement, DefinitionError> {
    let base = Definition { sla: Scenario::default().sla, ..Definition::default() };
    Definition::parse_over(&base, text.as_bytes()).map(|definition| Agreement(definition.sla))
}

fn policy(text: &str) -> Result<Policy, String> {
    match text {
        "steady" => Ok(Policy::Steady),
        "paper" => Ok(Policy::Paper),
        other => Err(format!("{other:?} is neither steady nor paper")),
    }
}

/// Load of the queue that is compared, in relays' limits.
const USUAL_LOAD: f64 = 5.0;
/// Relays of a fleet's queue under `steady`, on average, with so many producers: measured.
const FLEET_RELAYS_PER_QUEUE: f64 = 9.6;
const FLEET_PRODUCERS_PER_QUEUE: u64 = 100;

impl Options {
    /// Returns the scenario that they say.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let usual = USUAL_LOAD / f64::from(self.producers.max(1));
        Scenario {
            policy: self.policy,
            seconds: (self.hours * 3_600.0) as u32,
            day_s: self.day_hours * 3_600.0,
            producers: self.producers,
            mean_rate: if self.mean_rate > 0.0 { self.mean_rate } else { usual },
            gated: self.gated,
            paper_limit: self.paper_limit,
            sla: self.agreement.0.clone(),
            memory_at_limit: self.memory_at_limit,
            network_at_limit: self.network_at_limit,
            ..Scenario::default()
        }
        .under(self.policy)
    }

    /// Plays it; returns what is to be printed.
    ///
    /// # Errors
    /// What is printed, if a property is broken. An aim that is missed is only reported.
    pub fn play(&self, first: Seed, seeds: u64) -> Result<String, String> {
        let scenario = self.scenario();
        if self.relays > 0 {
            let queues = (self.relays as f64 / FLEET_RELAYS_PER_QUEUE).ceil() as u64;
            let members = heavy_tailed(first, queues, queues * FLEET_PRODUCERS_PER_QUEUE);
            let scenario = Scenario { seconds: scenario.seconds, ..Scenario::fleet() };
            let scenario = scenario.under(self.policy);
            return Ok(report(queues, &scenario, &play_fleet(first, &members, &scenario)));
        }
        if self.queues > 0 {
            let figures = play_all(first, self.queues, &scenario);
            return Ok(report(self.queues, &scenario, &figures));
        }
        let comparison = Comparison::play(first, seeds, &scenario);
        let mut text = comparison.to_string();
        for miss in comparison.misses() {
            let _ = writeln!(text, "MISSED: {miss}");
        }
        match comparison.broken() {
            None => Ok(text),
            Some(broken) => Err(format!("{text}BROKEN: {broken}\n")),
        }
    }
}

/// Returns a report, hour by hour, and in sum.
fn report(queues: u64, scenario: &Scenario, figures: &Figures) -> String {
    let hours = scenario.seconds.div_ceil(3_600).max(1);
    let mut text = String::new();
    for (at, hour) in figures.hours.iter().enumerate() {
        let seconds = f64::from(hour.seconds.max(1));
        let _ = writeln!(
            text,
            "hour {:>3}: {:>10.0} relays {:>10.0} producers, mean load {:.3}, {:>9} moves, +{} -{} \
                 relays, {} breach-seconds",
            at + 1,
            hour.relay_s / seconds,
            hour.producer_s / seconds,
            hour.load_s / hour.relay_s.max(1.0),
            hour.moves,
            hour.scaled.0,
            hour.scaled.1,
            hour.breach_s
        );
    }
    let _ = writeln!(
        text,
        "{} queues, {hours} hours, {:.0} relays on average, {} moves, {} flaps, {:.6} of the \
             relay-seconds overloaded, {} plans",
        queues,
        figures.relay_s as f64 / f64::from(scenario.seconds.max(1)),
        figures.moves,
        figures.flaps,
        figures.overloaded_s as f64 / figures.relay_s.max(1) as f64,
        figures.plans
    );
    text
}

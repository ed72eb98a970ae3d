//! `quelea-sim fluid`.

use std::fmt::Write as _;

use quelea_elastic::plan::Policy;

use super::compare::Comparison;
use super::fleet::play_all;
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
    /// Queues of a run with one policy; 0: the policies are compared, with a queue for each seed.
    #[arg(long, default_value_t = 0)]
    queues: u64,
    /// The limit of policy `paper` as a share of what a relay carries.
    #[arg(long, default_value_t = 0.8)]
    paper_limit: f64,
    /// The planner is asked only when it may find something to do.
    #[arg(long)]
    gated: bool,
    /// `steady` or `paper`, for a run with one policy.
    #[arg(long, default_value = "steady", value_parser = policy)]
    policy: Policy,
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

impl Options {
    /// The scenario that they say.
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
            ..Scenario::default()
        }
        .under(self.policy)
    }

    /// Plays it; gives what is to be printed.
    ///
    /// # Errors
    /// What is printed, if a property is broken. An aim that is missed is only told.
    pub fn play(&self, first: Seed, seeds: u64) -> Result<String, String> {
        let scenario = self.scenario();
        if self.queues > 0 {
            return Ok(self.play_one(first, &scenario));
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

    fn play_one(&self, seed: Seed, scenario: &Scenario) -> String {
        let figures = play_all(seed, self.queues, scenario);
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
            self.queues,
            figures.relay_s as f64 / f64::from(scenario.seconds.max(1)),
            figures.moves,
            figures.flaps,
            figures.overloaded_s as f64 / figures.relay_s.max(1) as f64,
            figures.plans
        );
        text
    }
}

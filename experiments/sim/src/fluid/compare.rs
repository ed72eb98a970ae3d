//! Both policies on the same seeds, side by side.

use std::fmt::{self, Display, Formatter};

use quelea_elastic_core::plan::Policy;

use super::figures::Figures;
use super::fleet::play_all;
use super::scenario::Scenario;
use crate::Seed;

/// What issue 5 asks of `steady`: shares of `paper`'s figures.
const MOVES_SHARE_MAX: f64 = 0.70;
const RELAY_HOURS_SHARE_MAX: f64 = 0.75;

/// Sums over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How many seeds.
    pub seeds: u64,
    /// Policy `paper`.
    pub paper: Figures,
    /// Policy `steady`.
    pub steady: Figures,
}

impl Comparison {
    /// Plays that many seeds from the first one on under both policies.
    #[must_use]
    pub fn play(first: Seed, seeds: u64, scenario: &Scenario) -> Self {
        let play = |policy| play_all(first, seeds, &scenario.under(policy));
        Self { seeds, paper: play(Policy::Paper), steady: play(Policy::Steady) }
    }

    /// Returns which property did not hold, of those that hold whatever the workload
    /// (research/eqs.md, G2).
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        let flaps = self.steady.flaps;
        (flaps > 0).then(|| format!("steady flaps {flaps} times, the most is 0 (G2)"))
    }

    /// Returns which of issue 5's shares are not reached; empty if all are.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        let (paper, steady) = (&self.paper, &self.steady);
        let mut misses = Vec::new();
        let rows = [
            ("moves", steady.moves as f64, paper.moves as f64, MOVES_SHARE_MAX),
            ("relay-seconds", steady.relay_s as f64, paper.relay_s as f64, RELAY_HOURS_SHARE_MAX),
            (
                "overloaded relay-seconds",
                steady.overloaded_s as f64,
                paper.overloaded_s as f64,
                1.0,
            ),
        ];
        for (what, steady, paper, share) in rows {
            if steady > paper * share {
                misses.push(format!(
                    "steady has {steady:.0} {what}, the most is {share:.2} of paper's {paper:.0}"
                ));
            }
        }
        misses
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (paper, steady) = (&self.paper, &self.steady);
        writeln!(f, "{:<34}{:>14}{:>14}{:>9}", "", "paper", "steady", "share")?;
        let count = |count: u64| count as f64;
        let rows = [
            ("moves", count(paper.moves), count(steady.moves)),
            (
                "  off relays that are too loaded",
                count(paper.relief_moves),
                count(steady.relief_moves),
            ),
            ("  to relays that have just begun", count(paper.fill_moves), count(steady.fill_moves)),
            ("  off relays that drain", count(paper.drain_moves), count(steady.drain_moves)),
            ("load moved (relays' limits)", paper.moved_load, steady.moved_load),
            ("relays started for load", count(paper.started), count(steady.started)),
            ("relays drained", count(paper.drained), count(steady.drained)),
            ("flaps (out, in within 15 min)", count(paper.flaps), count(steady.flaps)),
            ("in, out again within 15 min", count(paper.rebounds), count(steady.rebounds)),
            ("relay-hours", hours(paper.relay_s), hours(steady.relay_s)),
            ("  if all were full", hours(paper.ideal_relay_s), hours(steady.ideal_relay_s)),
            ("cost", paper.cost_micros / 1e6, steady.cost_micros / 1e6),
            ("overloaded relay-seconds", count(paper.overloaded_s), count(steady.overloaded_s)),
            ("lost capacity (relay-seconds)", paper.lost_s, steady.lost_s),
            ("broken agreement (seconds)", count(paper.breach_s), count(steady.breach_s)),
            ("relays that died", count(paper.crashes), count(steady.crashes)),
            ("producers given another relay", count(paper.rehoused), count(steady.rehoused)),
            ("starts that failed", count(paper.boot_failures), count(steady.boot_failures)),
            ("plans", count(paper.plans), count(steady.plans)),
        ];
        for (what, paper, steady) in rows {
            let share = if paper > 0.0 { format!("{:.2}", steady / paper) } else { "-".to_owned() };
            writeln!(f, "{what:<34}{paper:>14.1}{steady:>14.1}{share:>9}")?;
        }
        Ok(())
    }
}

fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3_600.0
}

//! Resolution L2: many clients, every message. The same state machines and the same world as in
//! [`crate::packets`], without faults and with as many clients as are asked for: how long messages take,
//! and how long a relay takes to drain.

use std::fmt::Write as _;

use quelea_elastic_proto::frame::Acknowledge;

use crate::Seed;
use crate::packets::plan::{Command, Plan};
use crate::packets::{Outcome, play};

/// How many of what.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Producers, at most 1,000,000.
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    producers: u32,
    /// Listeners, every second of which takes two messages of three, at most 10,000.
    #[arg(long, default_value = "10", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    listeners: u32,
    /// Relays, one of which is drained half-way, 2 to 16.
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(2..=16))]
    relays: u32,
    /// Milliseconds between two messages of a producer.
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u64).range(1..))]
    gap_ms: u64,
    /// Seconds of publishing.
    #[arg(long, default_value = "10", value_parser = clap::value_parser!(u64).range(4..=3_600))]
    seconds: u64,
}

impl Options {
    /// Plays so many seeds from the first on; returns a table of what came of them.
    ///
    /// # Errors
    /// If a run breaks a promise.
    pub fn play(&self, first: Seed, seeds: u64) -> Result<String, String> {
        let mut text = String::from(
            "seed    messages  deliveries  p50 us  p99 us  max us  drain ms  moves  signals\n",
        );
        for number in 0..seeds {
            let seed = Seed(first.0.saturating_add(number));
            let outcome = play(&self.plan(seed), false);
            if let Some(wrong) = &outcome.wrong {
                return Err(format!("{text}seed {seed}: {wrong}\n"));
            }
            row(&mut text, seed, &outcome);
        }
        Ok(text)
    }

    /// Returns the run that a seed stands for.
    #[must_use]
    pub fn plan(&self, seed: Seed) -> Plan {
        let mut plan = Plan::plain(seed, Acknowledge::Relayed);
        (plan.producers, plan.listeners) = (self.producers, self.listeners);
        plan.relays = self.relays - 1;
        (plan.gap_ms, plan.body_bytes) = (self.gap_ms, 100);
        plan.ring_bytes_max = 64 << 20;
        plan.paths.buffer_bytes = 1 << 20;
        plan.publish_ms = (3_000, 3_000 + self.seconds * 1_000);
        let half_ms = 3_000 + self.seconds * 500;
        plan.commands = vec![(1_500, Command::Start), (half_ms, Command::Drain)];
        plan
    }
}

fn row(text: &mut String, seed: Seed, outcome: &Outcome) {
    let [median, most, longest] = outcome.latency_us;
    let moves = outcome.events.get("moved").copied().unwrap_or(0);
    let row = writeln!(
        text,
        "{seed:<6}  {:>8}  {:>10}  {median:>6}  {most:>6}  {longest:>6}  {:>8}  {moves:>5}  {:>7}",
        outcome.messages, outcome.deliveries, outcome.drain_ms, outcome.steps
    );
    debug_assert!(row.is_ok(), "a string takes what is written");
}

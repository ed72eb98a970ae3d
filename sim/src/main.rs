//! `quelea-sim`: plays the elastic queue in virtual time. `make sim SEED=…` runs it.

use clap::{Parser, Subcommand};
use quelea_sim::Seed;

/// Plays the elastic queue in virtual time.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    resolution: Resolution,
}

/// The seeds of a run, the same for every resolution.
#[derive(clap::Args)]
struct Seeds {
    /// The first seed.
    #[arg(long, default_value = "1")]
    seed: Seed,
    /// How many seeds are played, from the first on.
    #[arg(long, default_value = "1")]
    seeds: u64,
}

#[derive(Subcommand)]
enum Resolution {
    /// A few nodes with faults, frame by frame.
    Packets(Seeds),
    /// Many clients, message by message.
    Flow(Seeds),
    /// Queues as rates: the planner's policies on the same seeds.
    Fluid(Seeds),
    /// A week at a million producers, as a page with plots.
    Report(Seeds),
}

fn main() {
    let (name, seeds) = match Arguments::parse().resolution {
        Resolution::Packets(seeds) => ("packets", seeds),
        Resolution::Flow(seeds) => ("flow", seeds),
        Resolution::Fluid(seeds) => ("fluid", seeds),
        Resolution::Report(seeds) => ("report", seeds),
    };
    let last = seeds.seed.0.saturating_add(seeds.seeds.saturating_sub(1));
    eprintln!("{name}: nothing is played yet for seeds {} to {last}", seeds.seed);
    std::process::exit(1);
}

//! `quelea-sim`: plays the elastic queue in virtual time. `make sim SEED=…` runs it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quelea_sim::{Seed, flow, fluid, packets};

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
    Packets(packets::PacketsArgs),
    /// Many clients, message by message.
    Flow {
        #[command(flatten)]
        seeds: Seeds,
        #[command(flatten)]
        options: flow::Options,
    },
    /// Queues as rates: the planner's policies on the same seeds.
    Fluid {
        #[command(flatten)]
        seeds: Seeds,
        #[command(flatten)]
        options: fluid::Options,
    },
    /// A week at a million producers, as a page with plots.
    Report(fluid::Report),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().resolution {
        Resolution::Packets(command) => command.run(),
        Resolution::Flow { seeds, options } => options.play(seeds.seed, seeds.seeds),
        Resolution::Fluid { seeds, options } => options.play(seeds.seed, seeds.seeds),
        Resolution::Report(report) => report.play(),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprint!("{text}");
            ExitCode::FAILURE
        }
    }
}

//! The programs of the stock exchange.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use quelea_stock_exchange::error::Error;
use quelea_stock_exchange::program::Outcome;
use quelea_stock_exchange::{engine, gateway, reporter, run, ticker};

#[derive(Debug, Parser)]
#[command(about = "A stock exchange over any AMQP broker", version)]
struct Args {
    #[command(subcommand)]
    command: Exchange,
}

#[derive(Debug, Subcommand)]
enum Exchange {
    /// Sends random orders at a given rate, and measures when they are answered
    Gateway(gateway::GatewayArgs),
    /// Takes orders and answers with confirmations, trades and quotes
    Engine(engine::EngineArgs),
    /// Writes the measurements that come through the broker to a file
    Reporter(reporter::ReporterArgs),
    /// Looks at the quotes by one way of the feed, and measures how late they are
    Ticker(ticker::TickerArgs),
    /// Runs all of them, and prints what was measured
    Run(run::RunArgs),
}

fn main() -> ExitCode {
    run::end_with_parent();
    let result = match Args::parse().command {
        Exchange::Gateway(args) => gateway::run(&args).map(print),
        Exchange::Engine(args) => engine::run(&args).map(print),
        Exchange::Reporter(args) => reporter::run(&args).map(print),
        Exchange::Ticker(args) => ticker::run(&args).map(print),
        Exchange::Run(args) => {
            let result = run::run(&args);
            if let Err(error) = &result {
                complain(error);
            }
            return if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever runs all three reads it there.
            println!("{error}");
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// `eprintln!` would panic where the terminal was closed.
fn complain(error: &Error) {
    let _ = writeln!(std::io::stderr(), "stock-exchange: {error}");
}

/// The last line, which [`run`] reads.
fn print(outcome: Outcome) {
    match serde_json::to_string(&outcome) {
        Ok(line) => println!("{line}"),
        Err(error) => println!("{error}"),
    }
}

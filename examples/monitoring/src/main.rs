//! Monitoring over an elastic queue, as the EQS paper ends with: probes on many hosts send what they
//! measure; a few aggregators share the samples by topic prefixes and find complex events; alerts go
//! through a queue of their own. Start with [`rule`], which says what an event is; [`probe`],
//! [`aggregate`] and [`alerts`] are the three programs around it.

mod aggregate;
mod alerts;
mod host;
mod probe;
mod rule;
mod sample;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use quelea_elastic_client::{Client, Error, Options};

/// Monitors hosts over elastic queues
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures this host: CPU, memory, network
    Probe(probe::ProbeArgs),
    /// Finds events in the samples of many hosts, and sends alerts
    Aggregate(aggregate::AggregateArgs),
    /// Prints alerts, a line of JSON for each
    Alerts(alerts::AlertsArgs),
}

/// Where the queues are.
#[derive(Debug, Clone, Args)]
struct Queues {
    /// Directories of the site; any of them will do
    #[arg(long, default_value = "127.0.0.1:5670", value_delimiter = ',', value_name = "HOST:PORT")]
    directory: Vec<String>,
    /// The queue of samples
    #[arg(long, default_value = "monitoring.samples", value_name = "NAME")]
    samples: String,
    /// The queue of alerts
    #[arg(long, default_value = "monitoring.alerts", value_name = "NAME")]
    alerts: String,
}

impl Queues {
    fn client(&self, name: &str) -> Result<Client, Error> {
        let options = Options { name: name.to_owned(), ..Options::default() };
        Client::connect(self.directory.clone(), options)
    }
}

fn main() -> ExitCode {
    let line = Line::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            tokio::select! {
                outcome = run(&line.command) => outcome,
                () = asked_to_stop() => Ok(()),
            }
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quelea-monitoring: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn run(command: &Command) -> Outcome {
    match command {
        Command::Probe(args) => probe::run(args).await,
        Command::Aggregate(args) => aggregate::run(args).await,
        Command::Alerts(args) => alerts::run(args).await,
    }
}

/// SIGTERM, or Ctrl-C.
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await; // Then signals just end us.
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

//! `quelea-monitoring probe`: sends what a host measures.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::time::{MissedTickBehavior, interval};

use crate::host::Host;
use crate::sample::{Sample, unix_ms};
use crate::{Outcome, Queues};

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    queues: Queues,
    /// The host's name, without a dot in it
    #[arg(long, value_parser = word)]
    host: String,
    /// The group of hosts that it is looked at with
    #[arg(long, default_value = "all", value_parser = word)]
    group: String,
    /// Between two measurements
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    interval_ms: u64,
    /// Where the host's /proc is: in a container, where it is mounted
    #[arg(long, default_value = "/proc")]
    proc: PathBuf,
}

pub(crate) async fn run(args: &ProbeArgs) -> Outcome {
    let client = args.queues.client(&args.host)?;
    // Waits for a relay; after that the library follows moves and failures by itself.
    let producer = client.producer(args.queues.samples.as_str()).await?;
    let mut host = Host::default();
    let mut ticks = interval(Duration::from_millis(args.interval_ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        for (metric, value) in host.measure(&args.proc)? {
            let (group, host) = (args.group.clone(), args.host.clone());
            let sample =
                Sample { metric: metric.to_owned(), group, host, value, unix_ms: unix_ms() };
            producer.publish(sample.topic(), serde_json::to_vec(&sample)?).await?;
        }
    }
}

/// Checks a part of a topic, and returns it.
fn word(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.contains('.') => {
            Err("must have no dot: it stands between a topic's parts".to_owned())
        }
        text => Ok(text.to_owned()),
    }
}

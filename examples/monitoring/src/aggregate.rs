//! `quelea-monitoring aggregate`: finds events, and sends alerts.

use std::collections::HashMap;

use clap::Args;
use quelea_elastic_client::Event;

use crate::rule::{Rule, Watch};
use crate::sample::Sample;
use crate::{Outcome, Queues};

#[derive(Debug, Args)]
pub(crate) struct AggregateArgs {
    #[command(flatten)]
    queues: Queues,
    /// Prefixes of the topics METRIC.GROUP.HOST that it takes, as cpu. or memory.web.; all of a metric's
    /// group must come to one aggregator
    #[arg(long, default_value = "", value_delimiter = ',', value_name = "PREFIX")]
    take: Vec<String>,
    /// Thresholds; CPU and memory are parts of 1, network is bytes a second
    #[arg(long, default_value = "cpu=0.9,memory=0.9", value_delimiter = ',', value_name = "METRIC=VALUE",
          value_parser = threshold)]
    threshold: Vec<(String, f64)>,
    /// So many hosts of a group make an event
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hosts: u32,
    /// If they cross the threshold within so long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    within_s: u64,
}

pub(crate) async fn run(args: &AggregateArgs) -> Outcome {
    let thresholds: HashMap<String, f64> = args.threshold.iter().cloned().collect();
    let (hosts, within_ms) = (args.hosts as usize, args.within_s * 1_000);
    let mut watch = Watch::new(Rule { thresholds, hosts, within_ms });
    let client = args.queues.client("aggregator")?;
    let alerts = client.producer(args.queues.alerts.as_str()).await?;
    let mut samples = client.listener(args.queues.samples.as_str(), &args.take).await?;
    eprintln!("taking {:?}", args.take);
    loop {
        match samples.next().await? {
            Event::Message(message) => match serde_json::from_slice::<Sample>(message.body()) {
                Ok(sample) => {
                    if let Some(alert) = watch.take(sample) {
                        alerts.publish(alert.topic(), serde_json::to_vec(&alert)?).await?;
                        // An alert that no relay has is none: wait until it is on its way.
                        alerts.acknowledged().await?;
                    }
                }
                Err(error) => eprintln!("no sample: {error}"),
            },
            // A rule that looks for a crossing may miss one here: whoever runs this wants to know.
            Event::Gap(gap) => eprintln!("samples {}..{} are missing", gap.from.0, gap.to.0),
            Event::Notice { text, .. } => eprintln!("{text}"),
        }
    }
}

fn threshold(text: &str) -> Result<(String, f64), String> {
    let (metric, value) = text.split_once('=').ok_or("must be METRIC=VALUE")?;
    let value: f64 = value.parse().map_err(|_| format!("{value:?} is no number"))?;
    Ok((metric.to_owned(), value))
}

//! `quelea-monitoring alerts`: prints alerts.

use std::collections::{HashSet, VecDeque};
use std::io::Write as _;

use clap::Args;
use quelea_elastic_client::Event;

use crate::sample::Alert;
use crate::{Outcome, Queues};

/// Alerts that are remembered, to report each once however many aggregators found it.
const REMEMBERED_MAX: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    #[command(flatten)]
    queues: Queues,
    /// Prefixes of the topics METRIC.GROUP
    #[arg(long, default_value = "", value_delimiter = ',', value_name = "PREFIX")]
    take: Vec<String>,
}

pub(crate) async fn run(args: &AlertsArgs) -> Outcome {
    let client = args.queues.client("alerts")?;
    let mut alerts = client.listener(args.queues.alerts.as_str(), &args.take).await?;
    eprintln!("waiting for alerts");
    let (mut known, mut order) = (HashSet::new(), VecDeque::new());
    loop {
        let message = match alerts.next().await? {
            Event::Message(message) => message,
            Event::Gap(gap) => {
                eprintln!("alerts {}..{} are missing", gap.from.0, gap.to.0);
                continue;
            }
            Event::Notice { text, .. } => {
                eprintln!("{text}");
                continue;
            }
        };
        let alert: Alert = match serde_json::from_slice(message.body()) {
            Ok(alert) => alert,
            Err(error) => {
                eprintln!("no alert: {error}");
                continue;
            }
        };
        let key = alert.key();
        if !known.insert(key.clone()) {
            continue; // Another aggregator has reported it.
        }
        order.push_back(key);
        if order.len() > REMEMBERED_MAX
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&alert)?)?;
        out.flush()?;
    }
}

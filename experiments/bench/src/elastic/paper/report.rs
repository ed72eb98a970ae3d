//! What a run of the paper's workload gives.

use serde::Serialize;

use crate::elastic::args::PaperQueueArgs;
use crate::elastic::fleet::Outcome;
use crate::elastic::report::{order_words, short};
use crate::elastic::tally::Order;
use crate::latency::Percentiles;
use crate::units::{milliseconds, thousands};

/// The whole run.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct PaperReport {
    pub load: String,
    pub policy: &'static str,
    /// The joins' spacing and the sending time are the paper's, divided by this.
    pub speed: f64,
    pub per_min: f64,
    pub seconds: f64,
    pub interrupted: bool,
    /// Mean over the time in which all producers sent.
    pub full_deliveries_per_min: f64,
    pub full_latency: Percentiles,
    pub latency: Percentiles,
    pub relays_max: u64,
    pub sent: u64,
    pub order: Order,
    pub gaps: u64,
    pub moves: u64,
    pub moves_aborted: u64,
    pub notices: Vec<String>,
    pub bins: Vec<Bin>,
    pub events: Vec<Happened>,
}

/// A minute of the paper's run.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Bin {
    /// Its end, minutes of real time.
    pub minute: f64,
    pub sent_per_min: f64,
    pub delivered_per_min: f64,
    /// Messages that listeners began to miss in it, as later ones of the same producer came.
    pub overtaken: u64,
    /// All producers sent, from its beginning to its end.
    pub full: bool,
    pub latency_mean_ms: f64,
    pub latency_deviation_ms: f64,
    pub latency_p99_ms: f64,
    /// At its end.
    pub relays_up: u64,
    pub relays: Vec<RelayBin>,
}

/// A relay in that minute, as it reported itself.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct RelayBin {
    pub id: u64,
    pub messages_in_per_min: f64,
    pub messages_out_per_min: f64,
    pub producers: f64,
}

/// What the directory decided or saw.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Happened {
    pub minute: f64,
    pub kind: String,
    pub subject: String,
    pub reason: String,
}

impl PaperReport {
    pub(crate) fn new(
        args: &PaperQueueArgs,
        course: (Vec<Bin>, Percentiles, Percentiles),
        outcome: &Outcome,
    ) -> Self {
        let (bins, latency, full_latency) = course;
        let full: Vec<f64> =
            bins.iter().filter(|bin| bin.full).map(|bin| bin.delivered_per_min).collect();
        Self {
            load: format!(
                "{} producers join {} s apart and send {} messages/min of {} B for {} min; {} \
                 listeners; at most {} relays, rule at {} Mbit/s in",
                args.producers,
                args.join_s,
                args.per_min,
                thousands(args.size as f64),
                args.send_min,
                args.listeners,
                args.relays_max,
                args.limit_mbit
            ),
            policy: args.policy.name(),
            speed: args.speed,
            per_min: args.per_min,
            full_deliveries_per_min: full.iter().sum::<f64>() / full.len().max(1) as f64,
            relays_max: bins.iter().map(|bin| bin.relays_up).max().unwrap_or(0),
            sent: outcome.sent,
            order: outcome.order,
            gaps: outcome.gaps,
            notices: outcome.notices.clone(),
            latency,
            full_latency,
            bins,
            ..Self::default()
        }
    }

    /// Returns when relays came up, in minutes of real time, and which relay it was.
    pub(crate) fn relays_up(&self) -> impl Iterator<Item = (f64, &str)> {
        let up = self.events.iter().filter(|event| event.kind == "up");
        up.map(|event| (event.minute, event.subject.as_str()))
    }

    pub(crate) fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        let up: Vec<String> =
            self.relays_up().map(|(at, relay)| format!("{relay} at {at:.1} min")).collect();
        let mut text = format!(
            "{}\n  policy     {}, {} x the paper's speed, {:.1} s{ended}\n  full load  {} million \
             deliveries a minute; {}\n  whole run  {}\n  messages   {}\n  relays     {} at most; up: {}\n  moves      \
             {} done, {} given up\n",
            self.load,
            self.policy,
            self.speed,
            self.seconds,
            format_args!("{:.3}", self.full_deliveries_per_min / 1e6),
            short(&self.full_latency),
            short(&self.latency),
            order_words(self.sent, &self.order, self.gaps),
            self.relays_max,
            up.join(", "),
            self.moves,
            self.moves_aborted,
        );
        for notice in &self.notices {
            text += &format!("  notice     {notice}\n");
        }
        text
    }
}

impl Bin {
    /// Returns a line of progress.
    pub(crate) fn to_text(&self) -> String {
        let relays: Vec<String> = self
            .relays
            .iter()
            .map(|relay| {
                format!("{}: {:.0} ({:.1})", relay.id, relay.messages_in_per_min, relay.producers)
            })
            .collect();
        format!(
            "{:6.2} min  sent {}/min  delivered {}/min  mean {}  p99 {}  relays (producers) {}",
            self.minute,
            thousands(self.sent_per_min),
            thousands(self.delivered_per_min),
            milliseconds(self.latency_mean_ms),
            milliseconds(self.latency_p99_ms),
            relays.join("  "),
        )
    }
}

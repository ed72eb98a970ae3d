//! The paper's load, on front-ends of the site: how it is asked for, repeated, and put into rows.

use serde_json::Value;

use crate::bdqs::args::BdqsArgs;
use crate::bdqs::error::BdqsError;
use crate::bdqs::site::{FrontEnd, Site};
use crate::bdqs::table::{Row, Unit};
use crate::error::BenchError;
use crate::sqs::args::{EndpointArgs, SqsArgs};
use crate::sqs::experiment::{Moment, measure};
use crate::sqs::report::ExperimentReport;

/// What all experiments have: the options, and where they run.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub args: &'a BdqsArgs,
    pub site: Site,
}

/// What an experiment has where no option says another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub queues: u32,
    pub senders: u32,
    pub receivers: u32,
    pub messages: u32,
    pub send_delay_s: f64,
    pub receive_delay_s: f64,
    pub batch: bool,
}

/// Queues, T_send, T_recv, m of BDQS §V-D, without delays.
pub(crate) const PAPER: Load = Load {
    queues: 400,
    senders: 3,
    receivers: 3,
    messages: 100,
    send_delay_s: 0.0,
    receive_delay_s: 0.0,
    batch: false,
};

/// A figure of a run: name, unit, where it stands.
pub(crate) type Column = (&'static str, Unit, fn(&ExperimentReport) -> f64);

pub(crate) const SENDS: Column = ("sends", Unit::PerSecond, |run| run.send.per_s);
pub(crate) const RECEIVES: Column = ("receive+delete", Unit::PerSecond, |run| run.receive.per_s);
pub(crate) const LAMBDA: Column =
    ("duplication λ", Unit::Share, |run| run.consistency.duplication_rate);
pub(crate) const CAUSED: Column =
    ("λ that must be", Unit::Share, |run| run.consistency.caused_duplication_rate);
pub(crate) const LOST: Column = ("lost", Unit::Count, |run| run.consistency.lost as f64);
pub(crate) const LOSS: Column = ("loss ε", Unit::Share, |run| run.consistency.loss_rate);
pub(crate) const GIVEN_UP: Column =
    ("sends given up", Unit::Count, |run| run.consistency.unconfirmed as f64);
pub(crate) const OUT_OF_ORDER: Column =
    ("out of order", Unit::Share, |run| run.consistency.out_of_order_rate);
pub(crate) const DISPLACEMENT: Column =
    ("displacement", Unit::Ratio, |run| run.consistency.average_displacement);
/// Of each whole queue, over all receivers, by when answers arrived: calls that overlap make it look worse than it is.
pub(crate) const OUT_OF_ORDER_OF_QUEUES: Column =
    ("out of order of whole queues", Unit::Share, |run| {
        run.consistency.out_of_order_rate_of_queues
    });
pub(crate) const PROVEN: Column = ("out of order over all receivers", Unit::Share, |run| {
    run.consistency.provably_out_of_order_rate
});
pub(crate) const SEND_MEAN: Column =
    ("send mean", Unit::Milliseconds, |run| run.send.response.mean_ms);
pub(crate) const SEND_P99: Column =
    ("send p99", Unit::Milliseconds, |run| run.send.response.p99_ms);
pub(crate) const RECEIVE_MEAN: Column =
    ("receive mean", Unit::Milliseconds, |run| run.receive.response.mean_ms);
pub(crate) const RECEIVE_P99: Column =
    ("receive p99", Unit::Milliseconds, |run| run.receive.response.p99_ms);

/// The measures of BDQS §V-A, and the order over all receivers by two stricter ones.
pub(crate) const CONSISTENCY: [Column; 6] =
    [LAMBDA, LOST, OUT_OF_ORDER, DISPLACEMENT, OUT_OF_ORDER_OF_QUEUES, PROVEN];

impl<'a> Bench<'a> {
    pub(crate) fn open(args: &'a BdqsArgs) -> Result<Self, BenchError> {
        Ok(Self { args, site: Site::open(&args.site, args.load.smoke)? })
    }

    pub(crate) fn front_ends(&self) -> Result<Vec<FrontEnd>, BenchError> {
        Ok(self.site.front_ends(self.args.site.front_ends)?)
    }

    /// Returns the usual load, smaller in a smoke run, with what the options say.
    pub(crate) fn load(&self, usual: Load) -> Load {
        let args = &self.args.load;
        let small = |usual: u32, smoke: u32| args.or_smoke(usual, usual.min(smoke));
        let brief = |usual: f64| args.or_smoke(usual, usual.min(0.02));
        Load {
            queues: args.queues.first().copied().unwrap_or_else(|| small(usual.queues, 4)),
            senders: args.senders.unwrap_or(usual.senders),
            receivers: args.receivers.first().copied().unwrap_or(usual.receivers),
            messages: args.messages.unwrap_or_else(|| small(usual.messages, 20)),
            send_delay_s: args.send_delay_s.unwrap_or_else(|| brief(usual.send_delay_s)),
            receive_delay_s: args.receive_delay_s.unwrap_or_else(|| brief(usual.receive_delay_s)),
            batch: usual.batch,
        }
    }

    /// Returns the options of `quelea bench sqs` for a load on these front-ends, with a visibility
    /// timeout of 10 s, as in the paper.
    pub(crate) fn experiment(&self, load: Load, front_ends: &[FrontEnd]) -> SqsArgs {
        SqsArgs {
            service: service(front_ends),
            queues: load.queues,
            senders: load.senders,
            receivers: load.receivers,
            messages: load.messages,
            size: self.args.load.size,
            send_delay_s: load.send_delay_s,
            receive_delay_s: load.receive_delay_s,
            order_hint: None,
            fifo: false,
            batch: load.batch,
            patience_s: 30.0,
            visibility_timeout_s: self.args.load.or_smoke(10, 3),
            concurrent: false,
            request_loss: 0.0,
            response_loss: 0.0,
            forget: 0.0,
            crash: 0.0,
            seed: self.args.load.seed,
        }
    }

    /// Runs a load as often as asked for, each time with failures and payloads of its own.
    pub(crate) fn repeat(
        &self,
        label: &str,
        experiment: &SqsArgs,
    ) -> Result<Vec<ExperimentReport>, BenchError> {
        self.runs_of(experiment).map(|again| self.measure(label, &again, &mut |_| {})).collect()
    }

    /// Returns the same experiment as often as asked for, each time with another seed.
    pub(crate) fn runs_of(&self, experiment: &SqsArgs) -> impl Iterator<Item = SqsArgs> {
        (0..self.args.load.repeat).map(|run| SqsArgs {
            seed: experiment.seed + u64::from(run) * 1_000_003,
            ..experiment.clone()
        })
    }

    pub(crate) fn measure(
        &self,
        label: &str,
        experiment: &SqsArgs,
        between: &mut dyn FnMut(Moment),
    ) -> Result<ExperimentReport, BenchError> {
        let report = measure(experiment, &self.site.interrupt, between)?;
        if self.site.interrupt.is_set() {
            // What nobody has waited for is not lost.
            return Err(BdqsError::Interrupted.into());
        }
        if report.consistency.lost > 0 {
            self.site.note_lost(report.consistency.lost);
        }
        if !self.args.quiet {
            eprintln!("{label}\n{}", report.to_text());
        }
        Ok(report)
    }
}

/// Returns the options with which `quelea bench sqs` finds these front-ends.
pub(crate) fn service(front_ends: &[FrontEnd]) -> EndpointArgs {
    EndpointArgs {
        endpoint: front_ends.iter().map(FrontEnd::endpoint).collect(),
        access_key_id: None,
        secret_access_key: None,
        region: "us-east-1".to_owned(),
        connect_timeout_s: 0.0,
        pid: front_ends.iter().filter_map(FrontEnd::pid).collect(),
        queue_attributes: Vec::new(),
        json: None,
        quiet: true,
    }
}

impl Row {
    /// Returns a row with these figures of all runs.
    pub(crate) fn of(
        label: impl Into<String>,
        runs: &[ExperimentReport],
        columns: &[Column],
    ) -> Self {
        let mut row = Self::new(label);
        for (name, unit, figure) in columns {
            row.add(name, *unit, &runs.iter().map(figure).collect::<Vec<f64>>());
        }
        row.runs =
            runs.iter().map(|run| serde_json::to_value(run).unwrap_or(Value::Null)).collect();
        row
    }
}

impl Load {
    /// Returns the load in words, as in the paper.
    pub(crate) fn to_words(self, size: usize) -> String {
        let Self { queues, senders, receivers, messages, .. } = self;
        let mut words = format!(
            "Q = {queues}, T_send = {senders}, T_recv = {receivers}, m = {messages}, L = {size} B"
        );
        let delays = [("δ_send", self.send_delay_s), ("δ_recv", self.receive_delay_s)];
        for (name, seconds) in delays.into_iter().filter(|(_, seconds)| *seconds > 0.0) {
            words += &format!(", {name} = {seconds} s");
        }
        words + if self.batch { ", ten a call" } else { "" }
    }
}

/// Looks at the options before anything is started.
pub(crate) fn check(args: &BdqsArgs) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    let load = &args.load;
    let too_small = |counts: &[u32]| counts.contains(&0);
    if [&load.queues, &load.receivers, &load.widths, &load.depths]
        .into_iter()
        .any(|it| too_small(it))
    {
        return refuse("--queues, --receivers, --widths and --depths take at least 1");
    }
    if load.depths.iter().any(|depth| *depth > 9) {
        return refuse("--depths takes 9 nodes at most");
    }
    if !(1.0..=1_000.0).contains(&load.compress) {
        return refuse("--compress takes 1 to 1000");
    }
    let times = load.mttf_s.iter().chain([&load.mttr_s]);
    if times.into_iter().any(|seconds| !(0.1..=1e6).contains(seconds)) {
        return refuse("--mttf-s and --mttr-s take 0.1 to 1,000,000");
    }
    if load.duration_s.is_some_and(|seconds| !(0.1..=3_600.0).contains(&seconds)) {
        return refuse("--duration-s takes 0.1 to 3,600");
    }
    if load.passed == Some(0) {
        return refuse("--passed takes at least 1");
    }
    Ok(())
}

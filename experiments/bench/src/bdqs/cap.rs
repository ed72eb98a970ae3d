//! `cap`: what a queue gives and costs whose reads and writes are answered by most replicas, and by one: the paper's open
//! question on other points of CAP.

use crate::bdqs::load::{
    Bench, CONSISTENCY, Column, LOSS, Load, PAPER, RECEIVE_MEAN, RECEIVES, SEND_MEAN, SENDS,
};
use crate::bdqs::requests::{self, Counted};
use crate::bdqs::servers;
use crate::bdqs::site::FrontEnd;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;
use crate::sqs::report::ExperimentReport;

/// The queue attribute `Consistency`: ours, and the paper's.
const LEVELS: [&str; 2] = ["LOCAL_QUORUM", "ONE"];
const RATES: [Column; 4] = [SENDS, RECEIVES, SEND_MEAN, RECEIVE_MEAN];

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let cases = [
        ("client batches of ten", bench.load(Load { queues: 200, batch: true, ..PAPER }), None),
        ("single calls", bench.load(Load { queues: 200, messages: 20, ..PAPER }), None),
        ("K = 1", bench.load(Load { receive_delay_s: 1.0, ..PAPER }), Some("1".to_owned())),
    ];
    let mut rows = Vec::new();
    for (name, load, order_hint) in &cases {
        for level in LEVELS {
            let label = format!("{name}, {level}");
            let order_hint = order_hint.clone();
            let usual = SqsArgs { order_hint, ..bench.experiment(*load, &front_ends) };
            let experiment = at_level(usual, level);
            rows.push(row(&label, &measured(bench, &label, &experiment, &front_ends)?));
        }
    }
    // Those that fail are others.
    drop(front_ends);
    let mut notes = Vec::new();
    // With one node there is none left when it fails.
    if bench.site.has_nodes() && bench.site.contact_points().len() > 1 {
        for level in LEVELS {
            rows.push(servers::row_at(bench, level, |usual| at_level(usual, level))?);
        }
    } else {
        let why = "Without servers that fail: that takes several nodes that were started for it.";
        notes.push(why.to_owned());
    }
    if bench.site.replication == 1 {
        notes.push("With one replica both levels are the same.".to_owned());
    }
    let load = cases[0].1.to_words(bench.args.load.size);
    Ok(Section { experiment: "cap", load, rows, notes, ..Section::default() })
}

fn at_level(mut experiment: SqsArgs, level: &str) -> SqsArgs {
    experiment.service.queue_attributes.push(("Consistency".to_owned(), level.to_owned()));
    experiment
}

/// All runs, with the requests to Cassandra that were counted.
fn measured(
    bench: &Bench<'_>,
    label: &str,
    experiment: &SqsArgs,
    front_ends: &[FrontEnd],
) -> Result<Vec<(ExperimentReport, Counted)>, BenchError> {
    bench.runs_of(experiment).map(|run| requests::counted(bench, label, &run, front_ends)).collect()
}

fn row(label: &str, runs: &[(ExperimentReport, Counted)]) -> Row {
    let reports: Vec<ExperimentReport> = runs.iter().map(|(report, _)| report.clone()).collect();
    let mut row = Row::of(label, &reports, &RATES);
    requests::add_life(&mut row, runs);
    let cpu_us_per_message = |report: &ExperimentReport| {
        let cost = report.server.map_or(f64::NAN, |server| server.cpu_us as f64);
        cost / report.consistency.messages.max(1) as f64
    };
    let costs: Vec<f64> = reports.iter().map(cpu_us_per_message).collect();
    row.add("front-ends' CPU a message", Unit::Microseconds, &costs);
    let given = Row::of("", &reports, &[&[LOSS][..], &CONSISTENCY].concat());
    row.figures.extend(given.figures);
    row
}

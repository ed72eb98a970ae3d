//! `requests`: how many requests to Cassandra a message takes over its life, as the front-ends count them.

use crate::bdqs::load::{Bench, LOST, Load, PAPER};
use crate::bdqs::metrics::Requests;
use crate::bdqs::site::FrontEnd;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;
use crate::sqs::experiment::Moment;
use crate::sqs::report::ExperimentReport;

/// What front-ends had counted before a run, when all was sent, and when all was received.
pub(crate) type Counted = [Requests; 3];
/// Requests that carry messages, of a message over its life.
const LIFE: &str = "life";

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let many = bench.load(Load { queues: 200, batch: true, ..PAPER });
    // All 64 clients meet at one front-end: what is gathered there is what comes there.
    let one_queue = Load {
        queues: 1,
        senders: 64,
        receivers: 64,
        messages: bench.load(PAPER).messages,
        ..PAPER
    };
    let alone = Load { queues: 1, senders: 1, receivers: 1, ..one_queue };
    let cases = [
        ("client batches of ten", many, &front_ends[..]),
        ("single calls, 64 clients of one queue at one front-end", one_queue, &front_ends[..1]),
        ("the same at all front-ends", one_queue, &front_ends[..]),
        ("single calls, one client", alone, &front_ends[..1]),
    ];
    let rows: Result<Vec<Row>, BenchError> = cases
        .into_iter()
        .map(|(label, load, called)| {
            let experiment = bench.experiment(load, called);
            let runs = bench.runs_of(&experiment);
            let runs: Result<Vec<_>, BenchError> =
                runs.map(|run| counted(bench, label, &run, &front_ends)).collect();
            Ok(row(label, &runs?))
        })
        .collect();
    let notes = vec![
        "Each request touches one partition. Upkeep are queues' rows, buckets, marks, counts and clocks: it grows with \
         time, queues and front-ends, not with messages."
            .to_owned(),
    ];
    let load = many.to_words(bench.args.load.size);
    Ok(Section { experiment: "requests", load, rows: rows?, notes, ..Section::default() })
}

/// Carries out a run. Returns its report, with what these front-ends counted.
pub(crate) fn counted(
    bench: &Bench<'_>,
    label: &str,
    experiment: &SqsArgs,
    front_ends: &[FrontEnd],
) -> Result<(ExperimentReport, Counted), BenchError> {
    let mut counted = Vec::new();
    let mut between = |_: Moment| counted.push(Requests::of(front_ends));
    let report = bench.measure(label, experiment, &mut between)?;
    let mut all = [Requests::default(); 3];
    for (place, one) in all.iter_mut().zip(counted) {
        *place = one?;
    }
    Ok((report, all))
}

fn row(label: &str, runs: &[(ExperimentReport, Counted)]) -> Row {
    let reports: Vec<ExperimentReport> = runs.iter().map(|(report, _)| report.clone()).collect();
    let mut row = Row::of(label, &reports, &[]);
    add(&mut row, "sending", runs, |[before, sent, _]| sent.since(*before).messages);
    add(&mut row, "receiving and deleting", runs, |[_, sent, after]| after.since(*sent).messages);
    add_life(&mut row, runs);
    add(&mut row, "upkeep", runs, |[before, _, after]| after.since(*before).upkeep);
    add(&mut row, "life with upkeep", runs, |[before, _, after]| {
        let counted = after.since(*before);
        counted.messages + counted.upkeep
    });
    add(&mut row, "heartbeats and sweeps", runs, |[before, _, after]| after.since(*before).apart);
    let lost = Row::of("", &reports, &[LOST]);
    row.figures.extend(lost.figures);
    row
}

/// Adds the requests of a message over its life.
pub(crate) fn add_life(row: &mut Row, runs: &[(ExperimentReport, Counted)]) {
    add(row, LIFE, runs, |[before, _, after]| after.since(*before).messages);
}

fn add(
    row: &mut Row,
    name: &'static str,
    runs: &[(ExperimentReport, Counted)],
    of: fn(&Counted) -> f64,
) {
    let per_message = |(report, counted): &(ExperimentReport, Counted)| {
        of(counted) / report.consistency.messages.max(1) as f64
    };
    row.add(name, Unit::Ratio, &runs.iter().map(per_message).collect::<Vec<f64>>());
}

//! What a message gets and costs, in one row: rates, requests to Cassandra, front-ends' CPU time, loss, doubles and order.

use crate::bdqs::load::{
    Bench, CONSISTENCY, Column, LOSS, RECEIVE_MEAN, RECEIVES, SEND_MEAN, SENDS,
};
use crate::bdqs::requests;
use crate::bdqs::site::FrontEnd;
use crate::bdqs::table::{Row, Unit};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;
use crate::sqs::report::ExperimentReport;

const RATES: [Column; 4] = [SENDS, RECEIVES, SEND_MEAN, RECEIVE_MEAN];

/// Carries an experiment out as often as asked for.
pub(crate) fn row(
    bench: &Bench<'_>,
    label: &str,
    experiment: &SqsArgs,
    front_ends: &[FrontEnd],
) -> Result<Row, BenchError> {
    let runs = bench.runs_of(experiment);
    let runs: Vec<_> = runs
        .map(|run| requests::counted(bench, label, &run, front_ends))
        .collect::<Result<_, BenchError>>()?;
    let reports: Vec<ExperimentReport> = runs.iter().map(|(report, _)| report.clone()).collect();
    let mut row = Row::of(label, &reports, &RATES);
    requests::add_life(&mut row, &runs);
    let cpu_us_per_message = |report: &ExperimentReport| {
        let cost = report.server.map_or(f64::NAN, |server| server.cpu_us as f64);
        cost / report.consistency.messages.max(1) as f64
    };
    let costs: Vec<f64> = reports.iter().map(cpu_us_per_message).collect();
    row.add("front-ends' CPU a message", Unit::Microseconds, &costs);
    let given = Row::of("", &reports, &[&[LOSS][..], &CONSISTENCY].concat());
    row.figures.extend(given.figures);
    Ok(row)
}

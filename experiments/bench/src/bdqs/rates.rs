//! `rates`: client batches of ten beside raw rows of the same size, as many a batch, through the same driver, in the same run.

use crate::bdqs::load::{
    Bench, CONSISTENCY, Load, PAPER, RECEIVE_MEAN, RECEIVES, SEND_MEAN, SENDS,
};
use crate::bdqs::raw_rows::RawLoad;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::call::BATCH;

/// Batches of raw rows under way at once: the better of the two counts.
const RAW_BATCHES: [usize; 2] = [32, 128];
const RAW_NAME: &str = "rows";
/// Sends, and receives with deletes, as a part of raw rows.
const OF_RAW: [&str; 2] = ["sends of raw", "receive+delete of raw"];

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let batches = bench.load(Load { queues: 200, batch: true, ..PAPER });
    let single = bench.load(Load { queues: 200, messages: 20, ..PAPER });
    let mut raw = raw_rows(bench)?;
    let mut rows = Vec::new();
    for load in [batches, single] {
        let label = if load.batch { "client batches of ten" } else { "single calls" };
        let runs = bench.repeat(label, &bench.experiment(load, &front_ends))?;
        let mut row = Row::of(label, &runs, &[SENDS, RECEIVES, SEND_MEAN, RECEIVE_MEAN]);
        let consistency = Row::of("", &runs, &CONSISTENCY);
        row.figures.extend(consistency.figures);
        rows.push(row);
        // What else the machine does changes: raw rows are measured before and after.
        if load.batch {
            raw.extend(raw_rows(bench)?);
        }
    }
    let mut raw_row = Row::new("raw rows");
    raw_row.add(RAW_NAME, Unit::PerSecond, &raw);
    let raw_per_s = raw_row.mean(RAW_NAME).unwrap_or(f64::NAN);
    for row in &mut rows {
        for (of_raw, rate) in OF_RAW.into_iter().zip([SENDS.0, RECEIVES.0]) {
            let share = row.mean(rate).unwrap_or(f64::NAN) / raw_per_s;
            row.add(of_raw, Unit::Share, &[share]);
        }
    }
    rows.insert(0, raw_row);
    let load = format!(
        "{}; single calls m = {}; raw rows in batches of {BATCH}",
        batches.to_words(bench.args.load.size),
        single.messages
    );
    Ok(Section { experiment: "rates", load, rows, ..Section::default() })
}

fn raw_rows(bench: &Bench<'_>) -> Result<Vec<f64>, BenchError> {
    let args = &bench.args.load;
    let driver = bench.site.driver()?;
    let best = RAW_BATCHES.into_iter().try_fold(0.0, |best: f64, batches| {
        let load = RawLoad {
            replication: bench.site.replication,
            rows: BATCH,
            size: args.size,
            batches,
            duration_s: args.duration_s.unwrap_or_else(|| args.or_smoke(5.0, 1.0)),
        };
        driver.rows_per_s(load).map(|rate| best.max(rate))
    });
    Ok(vec![best?])
}

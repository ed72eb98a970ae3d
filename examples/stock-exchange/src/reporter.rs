//! The statistics reporter: writes the measurements that come through the broker to a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::connection::Route;
use crate::error::Error;
use crate::messages::{Message, Source};
use crate::program::{Line, Outcome, ProgramArgs, cpu_s};

/// At the lowest rate a sample takes 100 s.
const SAMPLE_MAX: Duration = Duration::from_secs(300);

/// Options of the reporter.
#[derive(Clone, Debug, clap::Args)]
pub struct ReporterArgs {
    /// Options of all programs
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Where the measurements go, as CSV
    #[arg(long, default_value = "stock-exchange.csv", value_name = "FILE")]
    pub csv: PathBuf,
}

/// A sample's row: the gateway's rates, the engine's, completion times.
#[derive(Debug, Default)]
struct Row {
    gateway: Option<(u32, u32)>,
    engine: Option<(u32, u32)>,
    completion: Option<(u64, u64, u64)>,
}

impl Row {
    const fn is_whole(&self) -> bool {
        self.gateway.is_some() && self.engine.is_some() && self.completion.is_some()
    }

    /// Returns whether what `message` measures has come.
    const fn has(&self, message: &Message) -> bool {
        match message {
            Message::Throughput { source: Source::Gateway, .. } => self.gateway.is_some(),
            Message::Throughput { source: Source::Engine, .. } => self.engine.is_some(),
            _ => self.completion.is_some(),
        }
    }
}

/// How often what has come is written meanwhile: whoever ends this program has it.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Takes the measurements of all samples. What has come is written also if it fails.
///
/// # Errors
/// If the broker fails, something is lost, or the file cannot be written.
pub fn run(args: &ReporterArgs) -> Result<Outcome, Error> {
    let mut rows = BTreeMap::new();
    let taken = take_all(args, &mut rows);
    write_csv(&args.csv, &rows)?;
    let reconnects = taken?;
    Ok(Outcome { orders: args.program.orders, cpu_s: cpu_s(), reconnects, ..Outcome::default() })
}

fn take_all(args: &ReporterArgs, rows: &mut BTreeMap<u32, Row>) -> Result<u32, Error> {
    // An earlier run's are none of this one's.
    write_csv(&args.csv, rows)?;
    let (mut written_at, mut written) = (Instant::now(), 0);
    let mut line = Line::open(&args.program, Route::Statistics)?;
    let samples = args.program.samples();
    let is_done = |rows: &BTreeMap<u32, Row>| {
        rows.len() == samples as usize && rows.values().all(Row::is_whole)
    };
    while !is_done(rows) || !line.connection.is_flushed() {
        let take = |rows: &mut BTreeMap<u32, Row>, message| {
            take(message, rows, samples, args.program.durable)
        };
        let missing =
            |rows: &BTreeMap<u32, Row>| format!("{} of {samples} samples have come", rows.len());
        if let Err(error) = line.step(rows, take, SAMPLE_MAX, missing) {
            line.recover(error)?;
        }
        let whole = rows.values().filter(|row| row.is_whole()).count();
        if whole > written && written_at.elapsed() >= WRITE_EVERY {
            write_csv(&args.csv, rows)?;
            (written_at, written) = (Instant::now(), whole);
        }
    }
    let reconnects = line.reconnects;
    line.connection.close()?;
    Ok(reconnects)
}

fn take(
    message: Message,
    rows: &mut BTreeMap<u32, Row>,
    samples: u32,
    may_repeat: bool,
) -> Result<(), Error> {
    let (Message::Throughput { sample, .. } | Message::Completion { sample, .. }) = message else {
        return Err(unexpected(format!("{message:?}")));
    };
    if sample >= samples {
        return Err(unexpected(format!("sample {sample}, where the last is {}", samples - 1)));
    }
    let has = |sample| rows.get(&sample).is_some_and(|row: &Row| row.has(&message));
    if has(sample) {
        let twice = || unexpected(format!("{message:?}, as before: doubled"));
        return if may_repeat { Ok(()) } else { Err(twice()) };
    }
    if sample.checked_sub(1).is_some_and(|before| !has(before)) {
        return Err(unexpected(format!("{message:?}, where one before is lost or out of order")));
    }
    let row = rows.entry(sample).or_default();
    match message {
        Message::Throughput { source, orders_per_s, answers_per_s, .. } => {
            let rates = match source {
                Source::Gateway => &mut row.gateway,
                Source::Engine => &mut row.engine,
            };
            *rates = Some((orders_per_s, answers_per_s));
        }
        Message::Completion { mean_ns, p50_ns, p99_ns, .. } => {
            row.completion = Some((mean_ns, p50_ns, p99_ns));
        }
        _ => {}
    }
    Ok(())
}

fn write_csv(path: &Path, rows: &BTreeMap<u32, Row>) -> Result<(), Error> {
    let write = || {
        let beside = path.with_added_extension("part");
        let mut file = BufWriter::new(File::create(&beside)?);
        writeln!(
            file,
            "sample,gateway_orders_per_s,gateway_answers_per_s,engine_orders_per_s,engine_answers_per_s,\
             completion_mean_us,completion_p50_us,completion_p99_us"
        )?;
        for (sample, row) in rows {
            let (gateway, engine) =
                (row.gateway.unwrap_or_default(), row.engine.unwrap_or_default());
            let (mean, p50, p99) = row.completion.unwrap_or_default();
            let us = |ns: u64| ns as f64 / 1e3;
            writeln!(
                file,
                "{sample},{},{},{},{},{:.1},{:.1},{:.1}",
                gateway.0,
                gateway.1,
                engine.0,
                engine.1,
                us(mean),
                us(p50),
                us(p99)
            )?;
        }
        file.flush()?;
        // Whole or not at all: whoever looks meanwhile, or ends this program, has what was there before.
        std::fs::rename(&beside, path)
    };
    write().map_err(|source| Error::System { what: format!("--csv {}", path.display()), source })
}

fn unexpected(what: String) -> Error {
    Error::Unexpected { who: "reporter", what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_come_once_and_in_their_order() {
        let rates = |source, sample| Message::Throughput {
            source,
            sample,
            orders_per_s: 1,
            answers_per_s: 2,
        };
        let times = |sample| Message::Completion { sample, mean_ns: 1, p50_ns: 2, p99_ns: 3 };
        let (gateway, engine) = (Source::Gateway, Source::Engine);
        let whole = [rates(gateway, 0), times(0), rates(gateway, 1), rates(engine, 0), times(1)];
        let take_all = |messages: &[Message], may_repeat| {
            let mut rows = BTreeMap::new();
            let took = |message: &Message| take(*message, &mut rows, 2, may_repeat);
            messages.iter().try_for_each(took).map(|()| rows)
        };
        let rows = take_all(&whole, false).unwrap();
        assert!(rows[&0].is_whole() && !rows[&1].is_whole());
        let doubled = [times(0), times(0)];
        assert!(take_all(&doubled, false).is_err() && take_all(&doubled, true).is_ok());
        for wrong in [times(1), rates(engine, 2), Message::Confirmed { id: 1 }] {
            assert!(take_all(&[rates(gateway, 0), wrong], true).is_err(), "{wrong:?}");
        }
    }
}

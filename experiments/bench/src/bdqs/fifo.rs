//! `fifo`: what strict order costs. FIFO queues, which have an owner among the front-ends, beside standard ones of the same load.

use crate::bdqs::costs;
use crate::bdqs::load::{Bench, Load, PAPER};
use crate::bdqs::table::{Row, Section};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let batches = bench.load(Load { queues: 200, batch: true, ..PAPER });
    let single = bench.load(Load { queues: 200, messages: 20, ..PAPER });
    // As many groups as senders.
    let one_queue = Load { queues: 1, senders: 64, receivers: 64, ..batches };
    let mut rows: Vec<Row> = Vec::new();
    for (name, load) in [
        ("client batches of ten", batches),
        ("single calls", single),
        ("one queue, 64 clients, batches of ten", one_queue),
    ] {
        for (kind, fifo) in [("standard", false), ("FIFO", true)] {
            let experiment = SqsArgs { fifo, ..bench.experiment(load, &front_ends) };
            rows.push(costs::row(bench, &format!("{name}, {kind}"), &experiment, &front_ends)?);
        }
    }
    let load = format!(
        "{}; single calls m = {}; each sending thread is a message group",
        batches.to_words(bench.args.load.size),
        single.messages
    );
    Ok(Section { experiment: "fifo", load, rows, ..Section::default() })
}

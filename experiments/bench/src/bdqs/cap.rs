//! `cap`: what a queue gives and costs whose reads and writes are answered by most replicas, and by one: the paper's open
//! question on other points of CAP.

use crate::bdqs::costs;
use crate::bdqs::load::{Bench, Load, PAPER};
use crate::bdqs::servers;
use crate::bdqs::table::Section;
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;

/// The queue attribute `Consistency`: ours, and the paper's.
const LEVELS: [&str; 2] = ["LOCAL_QUORUM", "ONE"];

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
            rows.push(costs::row(bench, &label, &experiment, &front_ends)?);
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

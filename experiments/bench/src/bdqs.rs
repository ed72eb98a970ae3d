//! `quelea bench bdqs`: the experiments of the BDQS paper, section V, on replicated queues, and the figures of issue 15. The load
//! and its measures are those of `quelea bench sqs`; here are the nodes and front-ends, what is done to them, and tables.
//! Begin with [`site`], then [`run`], then any experiment; [`servers`] has the most to it.

pub(crate) mod args;
mod cap;
mod closed_loops;
mod consistency;
mod costs;
mod delaying_proxy;
pub(crate) mod error;
mod failures;
mod fifo;
mod head;
mod load;
mod metrics;
mod poll;
mod queueing;
mod rates;
mod raw_rows;
mod requests;
mod scaling;
mod servers;
mod site;
mod table;

use std::fs;
use std::path::Path;

use serde::Serialize;

pub use args::{BdqsArgs, BdqsExperiment, BdqsLoadArgs, BdqsSiteArgs};
pub use error::BdqsError;

use crate::bdqs::load::Bench;
use crate::bdqs::table::Section;
use crate::error::BenchError;
use crate::report::publish;

#[derive(Debug, Serialize)]
struct BdqsReport {
    processors: usize,
    nodes: Vec<String>,
    replication: u32,
    front_ends: u32,
    smoke: bool,
    sections: Vec<Section>,
}

/// Carries the experiments out, one after the other.
pub(crate) fn run(args: &BdqsArgs) -> Result<(), BenchError> {
    load::check(args)?;
    let mut bench = Bench::open(args)?;
    let (mut sections, mut failed) = (Vec::new(), None);
    for experiment in &args.experiments {
        // What the others measured is reported all the same.
        let section = match carry_out(&mut bench, *experiment) {
            Ok(section) => section,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        if !args.quiet {
            eprintln!("{}", section.to_text());
        }
        if let Some(directory) = &args.figures {
            write_figures(directory, &section)?;
        }
        sections.push(section);
    }
    if sections.is_empty()
        && let Some(error) = failed
    {
        return Err(error);
    }
    let report = BdqsReport {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        nodes: bench.site.contact_points().to_vec(),
        replication: bench.site.replication,
        front_ends: args.site.front_ends,
        smoke: args.load.smoke,
        sections,
    };
    publish(&report.to_text(), &report, args.json.as_deref())?;
    failed.map_or_else(|| Ok(bench.site.check_lost()?), Err)
}

fn carry_out(bench: &mut Bench<'_>, experiment: BdqsExperiment) -> Result<Section, BenchError> {
    if bench.site.interrupt.is_set() {
        return Err(BdqsError::Interrupted.into());
    }
    match experiment {
        BdqsExperiment::Rates => rates::run(bench),
        BdqsExperiment::Requests => requests::run(bench),
        BdqsExperiment::Scalability => scaling::scalability(bench),
        BdqsExperiment::Response => scaling::response(bench),
        BdqsExperiment::Consistency => consistency::run(bench),
        BdqsExperiment::Network => failures::network(bench),
        BdqsExperiment::Clients => failures::clients(bench),
        BdqsExperiment::Servers => servers::run(bench, servers::Kind::Servers),
        BdqsExperiment::FrontEnds => servers::run(bench, servers::Kind::FrontEnds),
        BdqsExperiment::Cap => cap::run(bench),
        BdqsExperiment::Fifo => fifo::run(bench),
        BdqsExperiment::Head => head::run(bench),
        BdqsExperiment::Poll => poll::run(bench),
        BdqsExperiment::Cpu => closed_loops::cpu(bench),
        BdqsExperiment::ShareNothing => closed_loops::share_nothing(bench),
    }
}

fn write_figures(directory: &Path, section: &Section) -> Result<(), BenchError> {
    let write = || {
        fs::create_dir_all(directory)?;
        section.plots.iter().try_for_each(|(name, plot)| {
            fs::write(directory.join(format!("{name}.svg")), plot.to_svg())
        })
    };
    write().map_err(|source| BenchError::File {
        doing: "cannot write the figures to",
        path: directory.to_owned(),
        source,
    })
}

impl BdqsReport {
    fn to_text(&self) -> String {
        let mut text = format!(
            "{} nodes of Cassandra, R = {}, {} front-ends, {} processors for all of it{}\n",
            self.nodes.len(),
            self.replication,
            self.front_ends,
            self.processors,
            if self.smoke { ", a smoke run" } else { "" },
        );
        for section in &self.sections {
            text += &format!("\n{}", section.to_text());
        }
        text
    }
}

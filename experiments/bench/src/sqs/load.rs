//! `quelea bench sqs-load`: closed loops of single calls, batches, and a mix.

use serde::Serialize;

use crate::connections::allow_descriptors;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::report::publish;
use crate::sqs::args::SqsLoadArgs;
use crate::sqs::phase::{Measured, Phase};
use crate::sqs::service::Service;

/// Most connections: each is a thread.
const CONNECTIONS_MAX: u32 = 4_096;
/// Largest body that SQS takes.
const SIZE_MAX: usize = 1_048_576;

#[derive(Debug, Serialize)]
struct LoadReport {
    endpoint: String,
    connections: u32,
    queues: u32,
    phases: Vec<Measured>,
}

pub(crate) fn run(args: &SqsLoadArgs) -> Result<(), BenchError> {
    check(args)?;
    allow_descriptors(u64::from(args.connections))?;
    let interrupt = Interrupt::install();
    let mut service = Service::open(&args.service)?;
    let measured = play(args, &mut service, &interrupt);
    let deleted = service.delete_queues();
    let report = LoadReport {
        endpoint: service.endpoints(),
        connections: args.connections,
        queues: args.queues,
        phases: measured?,
    };
    publish(&to_text(&report), &report, args.service.json.as_deref())?;
    deleted
}

fn check(args: &SqsLoadArgs) -> Result<(), BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    if !(1..=CONNECTIONS_MAX).contains(&args.connections) {
        return refuse(format!("--connections takes 1 to {CONNECTIONS_MAX}"));
    }
    if !(1..=args.connections).contains(&args.queues) {
        return refuse("--queues takes 1 to the number of connections".to_owned());
    }
    if args.sizes.iter().any(|size| !(1..=SIZE_MAX).contains(size)) {
        return refuse("--sizes: a message has 1 byte to 1 MiB".to_owned());
    }
    if !(args.duration_s > 0.0 && args.duration_s <= 3_600.0) {
        return refuse("--duration-s takes more than 0 and at most 3,600".to_owned());
    }
    Ok(())
}

fn play(
    args: &SqsLoadArgs,
    service: &mut Service,
    interrupt: &Interrupt,
) -> Result<Vec<Measured>, BenchError> {
    let mut measured = Vec::new();
    for size in &args.sizes {
        let mut queues: Vec<String> = Vec::new();
        for kind in &args.phases {
            if interrupt.is_set() {
                return Ok(measured);
            }
            // A sending phase begins with empty queues: fresh ones, since services allow one purge
            // a minute.
            if queues.is_empty() || !kind.drains() {
                queues = (0..args.queues)
                    .map(|_| service.create_queue(&[]))
                    .collect::<Result<_, _>>()?;
            }
            let phase = Phase {
                kind: *kind,
                queues: &queues,
                connections: args.connections,
                size: *size,
                duration_s: args.duration_s,
            };
            let found = phase.run(service)?;
            if !args.service.quiet {
                eprintln!("{}", found.row());
            }
            measured.push(found);
        }
    }
    Ok(measured)
}

fn to_text(report: &LoadReport) -> String {
    let LoadReport { endpoint, connections, queues, phases } = report;
    let plural = if *queues == 1 { "queue" } else { "queues" };
    let mut text = format!("{endpoint}: {connections} connections, {queues} {plural}\n");
    for phase in phases {
        text += &phase.row();
        text.push('\n');
    }
    text
}

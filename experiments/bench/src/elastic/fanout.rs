//! `quelea bench elastic fanout`.

use crate::elastic::args::FanoutArgs;
use crate::elastic::load;
use crate::elastic::report::FanoutReport;
use crate::elastic::stamp::STAMP_BYTES;
use crate::elastic::wire::Wire;
use crate::error::BenchError;
use crate::process::listening_pid;
use crate::report::publish;

/// A message is smaller than every server's default limit.
const SIZE_MAX: usize = 1 << 20;
/// Clients of one kind: each is a connection, and all are looked at one by one.
const CLIENTS_MAX: u32 = 1_000;

pub(crate) fn run(args: &FanoutArgs) -> Result<(), BenchError> {
    check(args)?;
    let listeners_at = args.listeners_at.as_ref().unwrap_or(&args.producers_at).clone();
    let (producers_at, queue) = (args.producers_at.clone(), args.queue.clone());
    let wire = Wire { kind: args.wire, producers_at, listeners_at, queue };
    let mut args = args.clone();
    if args.server_pid.is_none() {
        let port = args.producers_at.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        // A server that is not found has no costs, which the report then leaves out.
        args.server_pid = port.and_then(|port| listening_pid(port).ok());
    }
    let outcome = load::carry(&args, &wire)?;
    let report = FanoutReport::new(&args, &outcome);
    publish(&report.to_text(), &report, args.json.as_deref())
}

fn check(args: &FanoutArgs) -> Result<(), BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    if !(STAMP_BYTES..=SIZE_MAX).contains(&args.size) {
        return refuse(format!("--size takes {STAMP_BYTES} to {SIZE_MAX}, not {}", args.size));
    }
    for (name, count) in [("--producers", args.producers), ("--listeners", args.listeners)] {
        if !(1..=CLIENTS_MAX).contains(&count) {
            return refuse(format!("{name} takes 1 to {CLIENTS_MAX}, not {count}"));
        }
    }
    if args.stalled > CLIENTS_MAX {
        return refuse(format!("--stalled takes 0 to {CLIENTS_MAX}, not {}", args.stalled));
    }
    if args.rate.is_some_and(|rate| !(0.1..=1e9).contains(&rate)) {
        return refuse("--rate takes 0.1 to 1,000,000,000 messages a second".to_owned());
    }
    for (name, seconds) in [
        ("--duration-s", args.duration_s),
        ("--warmup-s", args.warmup_s),
        ("--patience-s", args.patience_s),
    ] {
        if !(0.0..=86_400.0).contains(&seconds) {
            return refuse(format!("{name} takes 0 to 86400, not {seconds}"));
        }
    }
    Ok(())
}

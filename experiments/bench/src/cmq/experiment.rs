//! `quelea bench cmq`: all sizes, both kinds, 1,000 messages and sustained.

use std::time::Duration;

use serde::Serialize;

use crate::cmq::args::{CmqArgs, Kind};
use crate::cmq::error::CmqError;
use crate::cmq::number::NUMBER_BYTES;
use crate::cmq::order::Run;
use crate::cmq::pair::{Pair, PairOutcome};
use crate::cmq::role;
use crate::cmq::spread::Spread;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::report::publish;
use crate::units::{milliseconds, thousands};

/// Lossy modes: a receiver gives up what did not come for so long.
const IDLE: Duration = Duration::from_secs(1);
/// Messages of one run at most: their numbers must not come round.
const MESSAGES_MAX: u64 = 100_000_000;
/// Messages of the first runs, which warm up and tell how many make a sustained one.
const CALIBRATION_MESSAGES: u64 = 1_000;

#[derive(Debug, Serialize)]
struct CmqReport {
    wire: String,
    processes: bool,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    kind: Kind,
    size: usize,
    sustained: bool,
    messages: u64,
    /// Messages of all runs, and how many of them did not arrive.
    sent: u64,
    not_received: u64,
    /// How many the library says are lost.
    lost: u64,
    wall_ns: Spread,
    per_s: f64,
    /// A message, of all threads of both ends.
    cpu_ns: Spread,
    cpu_send_ns: f64,
    cpu_receive_ns: f64,
    cpu_other_ns: f64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
}

pub(crate) fn run(args: &CmqArgs) -> Result<(), BenchError> {
    if let Some(role) = args.role {
        return Ok(role::run(args, role)?);
    }
    check(args)?;
    let interrupt = Interrupt::install();
    let mut rows = Vec::new();
    'all: for kind in &args.kinds {
        for size in &args.sizes {
            rows.extend(measure(args, *kind, *size)?);
            if interrupt.is_set() {
                break 'all;
            }
        }
    }
    let report = CmqReport { wire: args.wire.describe(), processes: !args.threads, rows };
    publish(&report.to_text(), &report, args.json.as_deref())
}

fn check(args: &CmqArgs) -> Result<(), BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    let most = args.wire.config().message_bytes_max;
    if args.sizes.iter().any(|size| !(NUMBER_BYTES..=most).contains(size)) {
        return refuse(format!("--sizes: a message has {NUMBER_BYTES} to {most} bytes"));
    }
    if !(1..=MESSAGES_MAX).contains(&args.messages) || args.samples == 0 || args.repeat == 0 {
        return refuse(format!(
            "--messages takes 1 to {MESSAGES_MAX}, --samples and --repeat at least 1"
        ));
    }
    if !(0.0..=600.0).contains(&args.duration_s) {
        return refuse("--duration-s takes 0 to 600".to_owned());
    }
    Ok(())
}

/// Measures one size: the paper's measure, then sustained.
fn measure(args: &CmqArgs, kind: Kind, size: usize) -> Result<Vec<Row>, CmqError> {
    let mut pair = Pair::start(args)?;
    let idle = (!args.wire.destination().mode.is_reliable()).then_some(IDLE);
    let run = |messages| Run { kind, size, messages, idle, base: 0 };
    pair.run(&run(CALIBRATION_MESSAGES))?;
    let samples: Result<Vec<PairOutcome>, CmqError> =
        (0..args.samples).map(|_| pair.run(&run(args.messages))).collect();
    let mut rows: Vec<Row> = Row::of(&run(args.messages), false, &samples?).into_iter().collect();
    if args.duration_s > 0.0 {
        let messages = calibrate(&mut pair, run, args.duration_s)?;
        let samples: Result<Vec<PairOutcome>, CmqError> =
            (0..args.repeat).map(|_| pair.run(&run(messages))).collect();
        rows.extend(Row::of(&run(messages), true, &samples?));
    }
    Ok(rows)
}

/// Measures how many messages take so long.
fn calibrate(pair: &mut Pair, run: impl Fn(u64) -> Run, seconds: f64) -> Result<u64, CmqError> {
    let mut messages = CALIBRATION_MESSAGES;
    loop {
        let run = run(messages);
        let taken = (wall_ns(run.kind, &pair.run(&run)?) / 1e9).max(1e-6);
        let wanted = messages as f64 * seconds / taken;
        if taken > seconds / 5.0 || messages >= MESSAGES_MAX {
            return Ok((wanted as u64).clamp(CALIBRATION_MESSAGES, MESSAGES_MAX));
        }
        messages = (wanted.min(messages as f64 * 10.0) as u64).clamp(messages, MESSAGES_MAX);
    }
}

/// Returns the time from before the first message to the arrival of the last; of a ping-pong, to
/// the last answer.
fn wall_ns(kind: Kind, both: &PairOutcome) -> f64 {
    let ended = match kind {
        Kind::OneWay => both.received.ended_ns,
        Kind::PingPong => both.sent.ended_ns,
    };
    ended.saturating_sub(both.sent.begun_ns) as f64
}

impl Row {
    fn of(run: &Run, sustained: bool, samples: &[PairOutcome]) -> Option<Self> {
        let a_message = |ns: u64| ns as f64 / run.messages as f64;
        let median = |of: &dyn Fn(&PairOutcome) -> Option<f64>| {
            Spread::of(samples.iter().filter_map(of)).map(|spread| spread.median)
        };
        let wall_ns = Spread::of(samples.iter().map(|both| wall_ns(run.kind, both)))?;
        let sent = run.messages * samples.len() as u64;
        // A ping that was sent twice is answered twice.
        let arrived = |both: &PairOutcome| both.received.count.min(run.messages);
        let cost = |both: &PairOutcome| both.cpu_send_ns + both.cpu_receive_ns + both.cpu_other_ns;
        Some(Self {
            kind: run.kind,
            size: run.size,
            sustained,
            messages: run.messages,
            sent,
            not_received: sent - samples.iter().map(arrived).sum::<u64>(),
            lost: samples.iter().filter_map(|both| both.received.lost).sum(),
            per_s: run.messages as f64 * 1e9 / wall_ns.median.max(1.0),
            wall_ns,
            cpu_ns: Spread::of(samples.iter().map(|both| a_message(cost(both))))?,
            cpu_send_ns: median(&|both| Some(a_message(both.cpu_send_ns)))?,
            cpu_receive_ns: median(&|both| Some(a_message(both.cpu_receive_ns)))?,
            cpu_other_ns: median(&|both| Some(a_message(both.cpu_other_ns)))?,
            p50_ns: median(&|both| both.sent.p50_ns.map(|ns| ns as f64)),
            p99_ns: median(&|both| both.sent.p99_ns.map(|ns| ns as f64)),
        })
    }

    fn to_text(&self) -> String {
        let kind = match self.kind {
            Kind::OneWay => "one-way",
            Kind::PingPong => "ping-pong",
        };
        let wall = format!(
            "{} ± {}",
            milliseconds(self.wall_ns.median / 1e6),
            milliseconds(self.wall_ns.mad / 1e6)
        );
        let mut line = format!(
            "  {kind:<9} {:>8} B {:>12} {wall:>20} {:>14}/s {:>9.1} ± {:<7.1} {:>8.1} {:>8.1}",
            thousands(self.size as f64),
            thousands(self.messages as f64),
            thousands(self.per_s),
            self.cpu_ns.median,
            self.cpu_ns.mad,
            self.cpu_send_ns,
            self.cpu_receive_ns,
        );
        if let (Some(p50), Some(p99)) = (self.p50_ns, self.p99_ns) {
            let words = [milliseconds(p50 / 1e6), milliseconds(p99 / 1e6)];
            line += &format!("   round trip p50 {}, p99 {}", words[0], words[1]);
        }
        if self.not_received + self.lost > 0 {
            let words = [thousands(self.not_received as f64), thousands(self.lost as f64)];
            line += &format!("   NOT RECEIVED {}, counted lost {}", words[0], words[1]);
        }
        line + "\n"
    }
}

impl CmqReport {
    fn to_text(&self) -> String {
        let ends = if self.processes { "two processes" } else { "two threads" };
        let head = format!(
            "CMQ, {}; {ends}; medians ± MAD; CPU in ns a message\n  {:<9} {:>10} {:>12} {:>20} {:>16} {:>9}   {:<7} {:>8} {:>8}\n",
            self.wire, "", "size", "messages", "wall", "messages", "CPU", "", "sender", "receiver",
        );
        self.rows.iter().fold(head, |text, row| text + &row.to_text())
    }
}

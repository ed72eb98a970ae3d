//! The five benchmarks of Subramoni, Marsh, Narravula, Lai, Panda: "Design and Evaluation of
//! Benchmarks for Financial Applications using Advanced Message Queuing Protocol (AMQP) over
//! InfiniBand", section 3: for every message size a publisher sends a number of messages, each
//! consumer answers the last of them (in ping-pong each of them), and the clock stops when the
//! publisher has all answers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use crate::args::{AmqpArgs, Mode, Preset};
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::control::{Control, Counts, Phase, Records};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::latency::Percentiles;
use crate::observer::Observer;
use crate::paper_setup::Testbed;
use crate::plan::Plan;
use crate::preset::Paper;
use crate::report::publish;
use crate::session::open;
use crate::setup::Admin;
use crate::units::{milliseconds, thousands};
use crate::worker::Worker;

/// How often the watcher looks whether a round is over.
const STEP: Duration = Duration::from_millis(2);
/// Without any movement for so long a round has failed.
const STALL_S: u64 = 60;

/// One size's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Round {
    /// Bytes of a message.
    pub size: usize,
    /// Messages published by all publishers.
    pub messages: u64,
    /// From the first message to the last answer.
    pub seconds: f64,
    /// Messages published per second.
    pub messages_per_s: f64,
    /// Messages delivered per second.
    pub deliveries_per_s: f64,
    /// 10^6 bytes of bodies published per second.
    pub megabytes_per_s: f64,
    /// From publisher to consumer.
    pub latency: Percentiles,
    /// Ping-pong: from sending to the answer.
    pub round_trip: Percentiles,
    /// CPU time of the broker per published message, µs.
    pub broker_cpu_us_per_message: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PaperReport {
    broker: String,
    benchmark: &'static str,
    pairs: u32,
    fanout: u32,
    patterns_without_match: u32,
    rounds: Vec<Round>,
}

/// Runs a preset over its sizes and prints a table.
pub(crate) fn run(args: &AmqpArgs, preset: Preset) -> Result<(), BenchError> {
    let paper = Paper::new(preset, &args.paper)?;
    let plan = Plan::new(&args.load, Mode::Both)?;
    let interrupt = Interrupt::install();
    let (mut admin, observer) = open(&args.broker)?;
    let uri = args.broker.parsed_uri()?;
    let mut testbed = Testbed::new(&mut admin, &uri, &plan, &paper)?;
    let quiet = args.broker.quiet;
    let rounds = play_all(&mut testbed, &paper, &observer, &interrupt, quiet);
    let closed = testbed.close();
    let cleaned = Testbed::delete(&mut admin, &paper);
    let report = report(&admin, &paper, rounds?);
    publish(&to_text(&report), &report, args.broker.json.as_deref())?;
    closed.and(cleaned)
}

fn play_all(
    testbed: &mut Testbed,
    paper: &Paper,
    observer: &Observer,
    interrupt: &Interrupt,
    quiet: bool,
) -> Result<Vec<Round>, BenchError> {
    let mut rounds = Vec::new();
    // Connections, queues and code are cold in the first round, which is not reported.
    let cold = paper.sizes.first().map(|size| (*size, false));
    for (size, is_warm) in cold.into_iter().chain(paper.sizes.iter().map(|size| (*size, true))) {
        let messages = paper.messages_per_publisher(size);
        testbed.begin_round(paper, size, messages);
        let before = observer.snapshot();
        let Some(records) = play(&mut testbed.workers, interrupt)? else { break };
        let cost = observer.broker_cost(&before, &observer.snapshot());
        if !is_warm {
            continue;
        }
        let (started, finished) = testbed.span_ns();
        let total = messages * u64::from(paper.pairs);
        let seconds = seconds_between(started, finished).max(1e-9);
        let rate = total as f64 / seconds;
        let round = Round {
            size,
            messages: total,
            seconds,
            messages_per_s: rate,
            deliveries_per_s: rate * f64::from(paper.fanout),
            megabytes_per_s: rate * size as f64 / 1e6,
            latency: records.delivery.percentiles(),
            round_trip: if paper.is_ping_pong() {
                records.confirm.percentiles()
            } else {
                Percentiles::default()
            },
            broker_cpu_us_per_message: cost.map(|cost| cost.cpu_us as f64 / total as f64),
        };
        if !quiet {
            eprintln!("{} {}", paper.name(), row(&round, paper.is_ping_pong()));
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Runs all workers until every publisher has its answers; `None` if the user ended it.
fn play(workers: &mut [Worker], interrupt: &Interrupt) -> Result<Option<Records>, BenchError> {
    let control = Control::new(Phase::Measure);
    let gauges: Vec<_> = workers.iter().map(|worker| worker.gauge.clone()).collect();
    let mut moved = (now_ns(), Counts::default());
    let mut was_interrupted = false;
    let ended: Result<(), BenchError> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            workers.iter_mut().map(|worker| scope.spawn(|| worker.run(&control, true))).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(STEP);
            let (now, counts) = (now_ns(), Counts::read(gauges.iter().map(AsRef::as_ref)));
            if counts != moved.1 {
                moved = (now, counts);
            }
            let has_stalled = now > moved.0 + STALL_S * SECOND_NS;
            // One that failed leaves the others waiting for answers that cannot come.
            let has_failed = gauges.iter().any(|gauge| gauge.failed.load(Ordering::Relaxed));
            was_interrupted |= interrupt.is_set();
            if has_stalled || has_failed || was_interrupted {
                control.enter(Phase::Stopped);
            }
        }
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    ended?;
    let mut records = Records::new(Phase::Measure);
    for gauge in &gauges {
        gauge.collect(|part| records.merge(part));
    }
    if was_interrupted {
        return Ok(None);
    }
    if control.phase() == Phase::Stopped {
        let state = format!("{} sent, {} delivered", moved.1.sent, moved.1.received);
        return Err(BenchError::Stalled { seconds: STALL_S, state });
    }
    Ok(Some(records))
}

fn report(admin: &Admin, paper: &Paper, rounds: Vec<Round>) -> PaperReport {
    PaperReport {
        broker: admin.client.product().to_owned(),
        benchmark: paper.name(),
        pairs: paper.pairs,
        fanout: paper.fanout,
        patterns_without_match: paper.strangers,
        rounds,
    }
}

fn to_text(report: &PaperReport) -> String {
    let mut text = format!("{}: {}", report.broker, report.benchmark);
    if report.pairs > 1 {
        text += &format!(", {} pairs", report.pairs);
    }
    if report.fanout > 1 {
        text += &format!(", {} consumers", report.fanout);
    }
    if report.patterns_without_match > 0 {
        text += &format!(", {} patterns that do not match", report.patterns_without_match);
    }
    text.push('\n');
    for round in &report.rounds {
        text += &row(round, round.round_trip.count > 0);
        text.push('\n');
    }
    text
}

fn row(round: &Round, is_ping_pong: bool) -> String {
    let ms = milliseconds;
    let mut row = format!(
        "{:>9} B  {:>7} messages  {:>9} msg/s  {:>8.2} MB/s",
        thousands(round.size as f64),
        thousands(round.messages as f64),
        thousands(round.messages_per_s),
        round.megabytes_per_s,
    );
    if is_ping_pong {
        // The paper's latency is half the round trip.
        let (half, found) = (round.round_trip.mean_ms / 2.0, &round.round_trip);
        row += &format!(
            "  latency {}  round trip p50 {} p99 {}",
            ms(half),
            ms(found.p50_ms),
            ms(found.p99_ms)
        );
    } else {
        let found = &round.latency;
        row += &format!("  {:>9} deliveries/s", thousands(round.deliveries_per_s));
        row += &format!(
            "  latency mean {} p50 {} p99 {}",
            ms(found.mean_ms),
            ms(found.p50_ms),
            ms(found.p99_ms)
        );
    }
    if let Some(cost) = round.broker_cpu_us_per_message {
        row += &format!("  broker {cost:.1} µs");
    }
    row
}

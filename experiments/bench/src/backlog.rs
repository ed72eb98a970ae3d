//! `quelea bench backlog`: fills queues, then publishes on, and lets consumers attach half-way:
//! a broker that reads its backlog on the publishers' path slows them down.

use std::time::Duration;

use serde::Serialize;

use crate::args::{BacklogArgs, Mode};
use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::control::{Counts, Phase, Records};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::latency::Percentiles;
use crate::observer::{BrokerCost, Observer};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::{percentiles, publish};
use crate::session::open;
use crate::setup::{connect_consumers, connect_producers};
use crate::units::thousands;
use crate::uri::BrokerUri;
use crate::watch::{End, Watch};
use crate::worker_pool::WorkerPool;

/// How often the watcher looks around.
const STEP: Duration = Duration::from_millis(5);
/// How long the workers may take to hand over their latencies.
const HANDOVER: Duration = Duration::from_millis(60);
/// Publishing before the measurement.
const WARMUP_S: f64 = 1.0;

/// The publishers over some seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Interval {
    /// Seconds measured.
    pub seconds: f64,
    /// Published a second.
    pub sent_per_s: f64,
    /// Delivered a second.
    pub received_per_s: f64,
    /// From (intended) sending to the confirm.
    pub confirm_latency: Percentiles,
}

/// What the consumers did to the publishers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct BacklogReport {
    /// Product and version, as the broker says.
    pub broker: String,
    /// The load in words.
    pub load: String,
    /// Messages in the queues when the consumers attached.
    pub backlog: u64,
    /// Published a second while the backlog was made.
    pub fill_per_s: f64,
    /// Before the consumers.
    pub before: Interval,
    /// With them.
    pub after: Interval,
    /// The publishers' rate after over before.
    pub kept: f64,
    /// The broker's process over both stretches.
    pub broker_process: Option<BrokerCost>,
}

pub(crate) fn run(args: &BacklogArgs) -> Result<(), BenchError> {
    let plan = Plan::new(&args.load, Mode::Both)?;
    let (mut admin, observer) = open(&args.broker)?;
    // Not before: a signal ends what waits for a broker at once.
    let interrupt = Interrupt::install();
    let uri = args.broker.parsed_uri()?;
    if !plan.predeclared {
        admin.declare(&plan)?;
    }
    let result = measure(args, &plan, &uri, &observer, &interrupt, admin.client.product());
    let cleaned = if plan.predeclared || plan.keep { Ok(()) } else { admin.delete(&plan) };
    let report = result?;
    publish(&to_text(&report), &report, args.broker.json.as_deref())?;
    cleaned.and_then(|()| admin.close())
}

fn measure(
    args: &BacklogArgs,
    plan: &Plan,
    uri: &BrokerUri,
    observer: &Observer,
    interrupt: &Interrupt,
    broker: &str,
) -> Result<BacklogReport, BenchError> {
    let fill_per_s = fill(args, plan, uri, observer, interrupt)?;
    let mut peers = connect_producers(uri, plan, None)?;
    let start_ns = now_ns();
    for (peer, index) in peers.iter_mut().zip(0..) {
        if let Some(publisher) = &mut peer.publisher {
            publisher.set_pace(plan.pace_of(index, start_ns));
        }
    }
    // The consumers' connections are made before, so that only consuming begins at the turn.
    let mut run = Run {
        publishers: WorkerPool::new(Phase::Measure),
        consumers: WorkerPool::new(Phase::Measure),
        progress: Progress::new(args.broker.quiet, plan.copies),
        interrupt,
    };
    run.publishers.start(peers, plan.threads)?;
    run.pass(WARMUP_S)?;
    let first = observer.begin();
    let before = run.pass(args.before_s)?;
    let backlog = args.messages + run.publishers.counts().sent;
    run.consumers.start(connect_consumers(uri, plan)?, plan.threads)?;
    let after = run.pass(args.after_s)?;
    let broker_process = observer.broker_cost(&first, &observer.snapshot());
    run.publishers.stop()?;
    run.consumers.stop()?;
    Ok(BacklogReport {
        broker: broker.to_owned(),
        load: plan.describe(),
        backlog,
        fill_per_s,
        kept: after.sent_per_s / before.sent_per_s.max(1e-9),
        before,
        after,
        broker_process,
    })
}

/// Publishes the backlog as fast as the broker confirms it; returns the rate.
fn fill(
    args: &BacklogArgs,
    plan: &Plan,
    uri: &BrokerUri,
    observer: &Observer,
    interrupt: &Interrupt,
) -> Result<f64, BenchError> {
    // Copies of a fanout count as one: the backlog is what was published.
    let plan = Plan { confirm: args.fill_confirm, rate: None, ..plan.clone() };
    let mut peers = connect_producers(uri, &plan, Some(args.messages))?;
    for (peer, index) in peers.iter_mut().zip(0..) {
        if let Some(publisher) = &mut peer.publisher {
            publisher.set_pace(plan.pace_of(index, 0));
        }
    }
    let at_start = observer.snapshot();
    let mut pool = WorkerPool::new(Phase::Measure);
    pool.start(peers, plan.threads)?;
    let progress = Progress::new(args.broker.quiet, plan.copies);
    let watch = Watch { pool: &mut pool, observer, interrupt, progress, at_start };
    let filled = watch.run(End::Messages { deliveries: 0 })?;
    if filled.interrupted {
        return Err(BenchError::Arguments("interrupted before the backlog was made".to_owned()));
    }
    Ok(filled.counts.sent as f64 / filled.seconds.max(1e-9))
}

/// Both pools and who watches them.
struct Run<'a> {
    publishers: WorkerPool,
    consumers: WorkerPool,
    progress: Progress,
    interrupt: &'a Interrupt,
}

impl Run<'_> {
    /// Lets `seconds` pass (less if the user wants the end) and says what happened in them.
    fn pass(&mut self, seconds: f64) -> Result<Interval, BenchError> {
        let mut records = Records::new(Phase::Measure);
        let (start, counts) = (now_ns(), self.counts());
        let end = start + seconds_to_ns(seconds);
        while now_ns() < end && !self.interrupt.is_set() {
            if self.publishers.has_failed() {
                self.publishers.stop()?;
            }
            if self.consumers.has_failed() {
                self.consumers.stop()?;
            }
            self.progress.tick(&[&self.publishers, &self.consumers], &mut records);
            std::thread::sleep(STEP);
        }
        let seconds = seconds_between(start, now_ns()).max(1e-9);
        let counts = self.counts().since(counts);
        self.publishers.control.next_epoch();
        std::thread::sleep(HANDOVER);
        self.publishers.collect(&mut records, &mut Records::new(Phase::Measure));
        Ok(Interval {
            seconds,
            sent_per_s: counts.sent as f64 / seconds,
            received_per_s: counts.received as f64 / seconds,
            confirm_latency: records.confirm.percentiles(),
        })
    }

    fn counts(&self) -> Counts {
        self.publishers.counts().plus(self.consumers.counts())
    }
}

fn to_text(report: &BacklogReport) -> String {
    let mut text = format!("{}: {}\n", report.broker, report.load);
    let (backlog, fill) = (thousands(report.backlog as f64), thousands(report.fill_per_s));
    text +=
        &format!("  backlog    {backlog} messages when consumers attached (made at {fill}/s)\n");
    for (name, stretch) in [("before", &report.before), ("after", &report.after)] {
        let (sent, received) = (thousands(stretch.sent_per_s), thousands(stretch.received_per_s));
        text +=
            &format!("  {name:<10} {:.0} s, sent {sent}/s, received {received}/s", stretch.seconds);
        if stretch.confirm_latency.count > 0 {
            text += &format!(", confirm {}", percentiles(&stretch.confirm_latency));
        }
        text.push('\n');
    }
    text += &format!("  publishers kept {:.0} % of their rate\n", report.kept * 100.0);
    if let Some(broker) = &report.broker_process {
        text += &format!("  broker     memory peak {:.1} MB\n", broker.peak_bytes as f64 / 1e6);
    }
    text
}

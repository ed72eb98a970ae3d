//! `quelea bench amqp`: one load against one broker.

use crate::args::{AmqpArgs, Mode, SpanArgs};
use crate::clock::{now_ns, seconds_to_ns};
use crate::control::Phase;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::{Report, publish};
use crate::session::open;
use crate::setup::{connect_consumers, connect_producers};
use crate::watch::{End, Watch};
use crate::worker_pool::WorkerPool;

/// Time between the set-up and the first message, so that all threads run when it is due.
const START_DELAY_NS: u64 = 50_000_000;
/// How long a drain without `--messages` goes on at most.
const DRAIN_S: f64 = 3_600.0;

/// Runs the load and prints the report.
pub(crate) fn run(args: &AmqpArgs) -> Result<(), BenchError> {
    let plan = Plan::new(&args.load, args.span.mode)?;
    let end = end_of(&args.span, &plan);
    let (mut admin, observer) = open(&args.broker)?;
    // Not before: a signal ends what waits for a broker at once.
    let interrupt = Interrupt::install();
    let uri = args.broker.parsed_uri()?;
    if !plan.predeclared {
        admin.declare(&plan)?;
    }
    let mut peers = connect_producers(&uri, &plan, args.span.messages)?;
    let start_ns = now_ns() + START_DELAY_NS;
    for (peer, index) in peers.iter_mut().zip(0..) {
        if let Some(publisher) = &mut peer.publisher {
            publisher.set_pace(plan.pace_of(index, start_ns));
        }
    }
    peers.extend(connect_consumers(&uri, &plan)?);
    let at_start = observer.begin();
    let mut pool = WorkerPool::new(if matches!(end, End::Time { .. }) {
        Phase::Warmup
    } else {
        Phase::Measure
    });
    pool.start(peers, plan.threads)?;
    let progress = Progress::new(args.broker.quiet, plan.copies);
    let watch =
        Watch { pool: &mut pool, observer: &observer, interrupt: &interrupt, progress, at_start };
    let measured = watch.run(end);
    // The broker may be gone along with the run; then the run's error is the one to report.
    let cleaned = if plan.predeclared || plan.keep { Ok(()) } else { admin.delete(&plan) };
    let report = Report::new(admin.client.product().to_owned(), &plan, &measured?);
    publish(&report.to_text(), &report, args.broker.json.as_deref())?;
    cleaned.and_then(|()| admin.close())
}

fn end_of(span: &SpanArgs, plan: &Plan) -> End {
    match (span.mode, span.messages) {
        (Mode::PublishOnly, Some(_)) => End::Messages { deliveries: 0 },
        (Mode::ConsumeOnly, Some(messages)) => End::Messages { deliveries: messages },
        (Mode::Both, Some(messages)) => End::Messages { deliveries: messages * plan.copies },
        (Mode::ConsumeOnly, None) => End::Drained { at_most_ns: seconds_to_ns(DRAIN_S) },
        (_, None) => End::Time {
            warmup_ns: seconds_to_ns(span.warmup_s),
            measure_ns: seconds_to_ns(span.duration_s),
        },
    }
}

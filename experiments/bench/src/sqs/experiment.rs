//! `quelea bench sqs`: the experiment of Chen, Ye, Kim, Lei: "A Scalable Cloud-based Queuing Service
//! with Improved Consistency Levels", section V. Q queues have T_send sending and T_recv receiving
//! threads each; the senders send m messages of L random bytes each, then the receivers receive,
//! process and delete them; requests, responses and receivers may fail on purpose.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use fastrand::Rng;
use quelea_sqs_client::{Error, Loss, Retry};

use crate::connections::allow_descriptors;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::report::publish;
use crate::sqs::args::SqsArgs;
use crate::sqs::call::BATCH;
use crate::sqs::front_ends::FrontEnds;
use crate::sqs::lifeline::Lifeline;
use crate::sqs::payload::{SIZE_MIN, happens};
use crate::sqs::receiver::Receiver;
use crate::sqs::report::{Consistency, ExperimentReport, Side};
use crate::sqs::sender::{Sender, Trace};
use crate::sqs::service::Service;
use crate::sqs::tracked_queue::{LostMessage, Outcome, TrackedQueue};

/// Most threads of one side; each has a connection.
const THREADS_MAX: u64 = 20_000;
/// They hold a few buffers and no recursion.
const STACK_BYTES: usize = 256 * 1024;
/// An operation that fails is tried until it is rather the service that has failed.
const RETRY: Retry =
    Retry { attempts: 20, first: Duration::from_millis(5), longest: Duration::from_millis(500) };
/// Lost messages that are named.
const LOST_SHOWN_MAX: usize = 20;
/// How often the end is looked for.
const STEP: Duration = Duration::from_millis(20);

/// The two sides' traces.
#[derive(Debug, Default)]
struct Traces {
    send: Vec<Trace>,
    receive: Vec<Trace>,
}

pub(crate) fn run(args: &SqsArgs) -> Result<(), BenchError> {
    let report = measure(args, &Interrupt::install(), &mut |_| {})?;
    publish(&report.to_text(), &report, args.service.json.as_deref())?;
    // An interrupted run names none: what nobody has waited for is not lost.
    if report.lost_messages.is_empty() {
        return Ok(());
    }
    let Consistency { lost, messages, .. } = report.consistency;
    Err(BenchError::Lost { lost, messages })
}

/// Runs the experiment; `between` is called when all have sent and nobody has begun to receive, unless both happen at
/// once.
///
/// # Errors
/// [`BenchError`] if the service or the options refused.
pub(crate) fn measure(
    args: &SqsArgs,
    interrupt: &Interrupt,
    between: &mut dyn FnMut(Moment),
) -> Result<ExperimentReport, BenchError> {
    check(args)?;
    let mut service = Service::open(&args.service)?;
    let (senders, receivers) = threads(args);
    let at_once = if args.concurrent { senders + receivers } else { senders.max(receivers) };
    allow_descriptors(at_once * service.width() as u64)?;
    let (tracked, order_hint) = create_queues(args, &mut service)?;
    let before = service.sample();
    between(Moment::BeforeSending);
    let traces = play(args, &service, &tracked, (interrupt, between));
    between(Moment::Received);
    let server = service.cost_since(before);
    let has_ended = traces.is_ok() && !interrupt.is_set();
    let lost_messages = if has_ended { lost_messages(&tracked, &mut service) } else { Vec::new() };
    let deleted = service.delete_queues();
    let traces = traces?;
    deleted?;
    let outcome = tracked
        .iter()
        .map(TrackedQueue::outcome)
        .fold(Outcome::default(), |sum, one| sum.plus(one));
    let sum =
        |of: fn(&Trace) -> u64| traces.send.iter().chain(&traces.receive).map(of).sum::<u64>();
    let caused = sum(|trace| trace.sent_again + trace.forgotten + trace.dropped);
    Ok(ExperimentReport {
        endpoint: service.endpoints(),
        queues: args.queues,
        senders: args.senders,
        receivers: args.receivers,
        messages_per_sender: args.messages,
        size: args.size,
        batch: if args.batch { BATCH } else { 1 },
        fifo: args.fifo,
        order_hint,
        concurrent: args.concurrent,
        send: Side::of(&traces.send),
        receive: Side::of(&traces.receive),
        forgotten: sum(|trace| trace.forgotten),
        crashed: sum(|trace| trace.crashed),
        refused_deletions: sum(|trace| trace.refused_deletions),
        consistency: Consistency::of(&outcome, caused),
        lost_messages,
        server,
    })
}

/// Returns the first messages that were lost, and keeps their queues. They can be looked for where
/// they were sent to: those queues are not deleted.
fn lost_messages(tracked: &[TrackedQueue], service: &mut Service) -> Vec<LostMessage> {
    let mut found = Vec::new();
    for queue in tracked {
        let lost = queue.lost_messages();
        if !lost.is_empty() {
            service.keep_queue(&queue.url);
        }
        found.extend(lost.into_iter().take(LOST_SHOWN_MAX - found.len()));
    }
    found
}

/// Moments of an experiment at which others may look at the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The queues are made.
    BeforeSending,
    /// All have sent; nobody has begun to receive.
    Sent,
    /// All has been received.
    Received,
}

/// Returns how many threads the two sides have.
fn threads(args: &SqsArgs) -> (u64, u64) {
    let queues = u64::from(args.queues);
    (queues * u64::from(args.senders), queues * u64::from(args.receivers))
}

fn check(args: &SqsArgs) -> Result<(), BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    for (name, value) in
        [("queues", args.queues), ("senders", args.senders), ("receivers", args.receivers)]
    {
        if value == 0 {
            return refuse(format!("--{name} takes at least 1"));
        }
    }
    let (send, receive) = threads(args);
    if send.max(receive) > THREADS_MAX {
        return refuse(format!(
            "at most {THREADS_MAX} threads a side: queues times senders, or receivers"
        ));
    }
    if args.messages == 0 {
        return refuse("--messages takes at least 1".to_owned());
    }
    if u64::from(args.messages) * u64::from(args.senders) > u64::from(u32::MAX) {
        return refuse("--messages times --senders is too large".to_owned());
    }
    if !(SIZE_MIN..=1_048_576).contains(&args.size) {
        return refuse(format!(
            "--size takes {SIZE_MIN} bytes to 1 MiB: it carries a tag and a checksum"
        ));
    }
    for (name, seconds) in
        [("send-delay-s", args.send_delay_s), ("receive-delay-s", args.receive_delay_s)]
    {
        if !(0.0..=3_600.0).contains(&seconds) {
            return refuse(format!("--{name} takes 0 to 3,600"));
        }
    }
    if args.request_loss + args.response_loss > 0.9 {
        return refuse("--request-loss and --response-loss together take at most 0.9".to_owned());
    }
    if !(0.01..=3_600.0).contains(&args.patience_s) {
        return refuse("--patience-s takes 0.01 to 3,600".to_owned());
    }
    if !(1..=43_200).contains(&args.visibility_timeout_s) {
        return refuse("--visibility-timeout-s takes 1 to 43,200".to_owned());
    }
    Ok(())
}

/// Makes the queues. A service that knows no OrderHint is measured without it.
fn create_queues(
    args: &SqsArgs,
    service: &mut Service,
) -> Result<(Vec<TrackedQueue>, Option<String>), BenchError> {
    let mut order_hint = args.order_hint.clone();
    let mut tracked = Vec::new();
    while tracked.len() < args.queues as usize {
        let mut attributes = vec![("VisibilityTimeout", args.visibility_timeout_s.to_string())];
        attributes.extend(order_hint.iter().map(|k| ("OrderHint", k.clone())));
        attributes.extend(args.fifo.then(|| ("FifoQueue", "true".to_owned())));
        match service.create_queue(&attributes) {
            Ok(url) => tracked.push(TrackedQueue::new(url, args.senders)),
            Err(BenchError::Call(Error::Service(error)))
                if order_hint.is_some()
                    && error.code.starts_with("InvalidAttribute")
                    && !error.message.contains("1000") =>
            {
                eprintln!("measured without OrderHint, which the service refuses: {error}");
                order_hint = None;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((tracked, order_hint))
}

/// Runs both sides, one after the other or at once.
fn play(
    args: &SqsArgs,
    service: &Service,
    tracked: &[TrackedQueue],
    (interrupt, between): (&Interrupt, &mut dyn FnMut(Moment)),
) -> Result<Traces, BenchError> {
    let lost_responses = &LostResponses::new(threads(args).0);
    let stop = &AtomicBool::new(false);
    let (senders, receivers) = threads(args);
    // They all begin at once.
    let at_once = if args.concurrent { senders + receivers } else { senders };
    let ready = &Barrier::new(usize::try_from(at_once).unwrap_or(usize::MAX));
    let ready_to_receive = &Barrier::new(usize::try_from(receivers).unwrap_or(usize::MAX));
    let receivers_ready = if args.concurrent { ready } else { ready_to_receive };
    std::thread::scope(|scope| {
        let sending =
            start_senders(scope, (args, lost_responses), service, tracked, (ready, stop))?;
        if args.concurrent {
            let receiving =
                start_receivers(scope, args, service, tracked, (receivers_ready, stop))?;
            let send = collect(sending, (service.lifeline(), interrupt), stop)?;
            return Ok(Traces {
                send,
                receive: collect(receiving, (service.lifeline(), interrupt), stop)?,
            });
        }
        let send = collect(sending, (service.lifeline(), interrupt), stop)?;
        between(Moment::Sent);
        tracked.iter().for_each(TrackedQueue::begin_receiving);
        let receiving = start_receivers(scope, args, service, tracked, (receivers_ready, stop))?;
        Ok(Traces { send, receive: collect(receiving, (service.lifeline(), interrupt), stop)? })
    })
}

type Thread<'scope> = ScopedJoinHandle<'scope, Result<Trace, Error>>;
/// What all threads wait for, and what ends them early.
type Signals<'a> = (&'a Barrier, &'a AtomicBool);

/// For each sending thread, how many responses its connections lost on purpose.
struct LostResponses(Vec<Arc<AtomicU64>>);

impl LostResponses {
    fn new(threads: u64) -> Self {
        Self((0..threads).map(|_| Arc::default()).collect())
    }
}

fn start_senders<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    (args, lost_responses): (&'env SqsArgs, &'scope LostResponses),
    service: &Service,
    tracked: &'env [TrackedQueue],
    (ready, stop): Signals<'scope>,
) -> Result<Vec<Thread<'scope>>, BenchError> {
    let mut threads = Vec::new();
    for (at, queue) in tracked.iter().enumerate() {
        for number in 0..args.senders {
            let mut front_ends = service.front_ends(threads.len(), RETRY, args.patience_s);
            let index = threads.len() as u64;
            let lost_responses = &lost_responses.0[threads.len()];
            inject(&mut front_ends, args, index, lost_responses);
            let rng = Rng::with_seed(args.seed ^ index.rotate_left(17));
            threads.push(spawn(scope, format!("send-{at}-{number}"), move || {
                let sender = Sender { args, queue, number, front_ends, lost_responses, rng };
                ready.wait();
                let trace = sender.run(stop);
                queue.note_sender_gone();
                trace
            })?);
        }
    }
    Ok(threads)
}

fn start_receivers<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    args: &'env SqsArgs,
    service: &Service,
    tracked: &'env [TrackedQueue],
    (ready, stop): Signals<'scope>,
) -> Result<Vec<Thread<'scope>>, BenchError> {
    let mut threads = Vec::new();
    for (at, queue) in tracked.iter().enumerate() {
        for number in 0..args.receivers {
            let front_ends = service.front_ends(threads.len(), RETRY, args.patience_s);
            // Another sequence than the senders'.
            let index = (1 << 32) + threads.len() as u64;
            threads.push(spawn(scope, format!("receive-{at}-{number}"), move || {
                let rng = Rng::with_seed(args.seed ^ index.rotate_left(17));
                // Lost responses to receivers make no duplicates.
                let uncounted = Arc::default();
                let inject =
                    |front_ends: &mut FrontEnds| inject(front_ends, args, index, &uncounted);
                let receiver = Receiver::new(args, queue, front_ends, (number, rng), inject);
                ready.wait();
                receiver.run(stop)
            })?);
        }
    }
    Ok(threads)
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    run: impl FnOnce() -> Result<Trace, Error> + Send + 'scope,
) -> Result<Thread<'scope>, BenchError> {
    let builder = Builder::new().name(name).stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, run).map_err(|source| {
        // Those that wait for it would wait for ever.
        eprintln!("quelea bench: cannot start a thread: {source}");
        std::process::exit(1)
    })
}

/// Makes the connections lose requests and responses as often as asked for; counts lost responses.
fn inject(front_ends: &mut FrontEnds, args: &SqsArgs, index: u64, lost: &Arc<AtomicU64>) {
    let (request, response) = (args.request_loss, args.response_loss);
    if request + response == 0.0 {
        return;
    }
    front_ends.inject(|at| {
        let seed = args.seed.wrapping_mul(31).wrapping_add(index) ^ (at as u64).rotate_left(40);
        let mut rng = Rng::with_seed(seed);
        let lost = Arc::clone(lost);
        move || match happens(&mut rng, request) {
            true => Some(Loss::Request),
            false => happens(&mut rng, response).then(|| {
                lost.fetch_add(1, Ordering::Relaxed);
                Loss::Response
            }),
        }
    });
}

/// Waits for a side's threads; the first that fails ends all.
fn collect(
    threads: Vec<Thread<'_>>,
    (mut lifeline, interrupt): (Lifeline, &Interrupt),
    stop: &AtomicBool,
) -> Result<Vec<Trace>, BenchError> {
    let mut traces = Vec::with_capacity(threads.len());
    let mut failed: Option<BenchError> = None;
    let mut waiting = threads;
    while !waiting.is_empty() {
        if interrupt.is_set() {
            stop.store(true, Ordering::Relaxed);
        }
        if failed.is_none()
            && let Err(gone) = lifeline.check()
        {
            stop.store(true, Ordering::Relaxed);
            failed = Some(gone);
        }
        let (finished, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(ScopedJoinHandle::is_finished);
        for thread in finished {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(trace) => traces.push(trace),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert_with(|| error.into());
                }
            }
        }
        waiting = rest;
        if !waiting.is_empty() {
            std::thread::sleep(STEP);
        }
    }
    failed.map_or(Ok(traces), Err)
}

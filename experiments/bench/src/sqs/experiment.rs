//! `quelea bench sqs`: the experiment of Chen, Ye, Kim, Lei: "A Scalable Cloud-based Queuing Service
//! with Improved Consistency Levels", section V. Q queues have T_send sending and T_recv receiving
//! threads each; the senders send m messages of L random bytes each, then the receivers receive,
//! process and delete them; requests, responses and receivers may fail on purpose.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use fastrand::Rng;
use quelea_sqs_client::{Client, Error, Loss, Retry};
use serde::Serialize;

use crate::clock::seconds_between;
use crate::connections::allow_descriptors;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::latency::{Latencies, Percentiles};
use crate::report::publish;
use crate::sqs::args::SqsArgs;
use crate::sqs::payload::{SIZE_MIN, happens};
use crate::sqs::receiver::Receiver;
use crate::sqs::sender::{self, Trace};
use crate::sqs::service::{ServerCost, Service};
use crate::sqs::tracked_queue::{Outcome, TrackedQueue};
use crate::units::{milliseconds, thousands};

/// Most threads of one side; each has a connection.
const THREADS_MAX: u64 = 20_000;
/// They hold a few buffers and no recursion.
const STACK_BYTES: usize = 256 * 1024;
/// An operation that fails is tried until it is rather the service that has failed.
const RETRY: Retry =
    Retry { attempts: 20, first: Duration::from_millis(5), longest: Duration::from_millis(500) };
/// How often the end is looked for.
const STEP: Duration = Duration::from_millis(20);

/// A side of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Side {
    /// Messages sent, or received and deleted.
    operations: u64,
    /// From the first call to the last response.
    seconds: f64,
    /// The paper's send rate, or receive+delete rate.
    per_s: f64,
    /// Of SendMessage, or of a ReceiveMessage that brought a message.
    response: Percentiles,
    /// Operations given up after all tries.
    failures: u64,
    first_failure: Option<String>,
}

/// The paper's measures of consistency.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Consistency {
    /// M: messages that the service said it has.
    messages: u64,
    /// lambda = duplicates / M.
    duplication_rate: f64,
    duplicates: u64,
    /// epsilon = lost / M.
    loss_rate: f64,
    lost: u64,
    corrupted: u64,
    /// Of each pair of a sending and a receiving thread, the paper's.
    out_of_order_rate: f64,
    average_displacement: f64,
    /// Of each whole queue, where overlapping calls count as inversions.
    out_of_order_rate_of_queues: f64,
    average_displacement_of_queues: f64,
    /// Of each sender over all receivers, where no order of overlapping calls explains it.
    provably_out_of_order_rate: f64,
}

#[derive(Debug, Serialize)]
struct ExperimentReport {
    endpoint: String,
    queues: u32,
    senders: u32,
    receivers: u32,
    messages_per_sender: u32,
    size: usize,
    /// K, if the service has it.
    order_hint: Option<u32>,
    concurrent: bool,
    send: Side,
    receive: Side,
    forgotten: u64,
    crashed: u64,
    /// Deletions of messages that were not in the receiver's hands any more.
    refused_deletions: u64,
    consistency: Consistency,
    server: Option<ServerCost>,
}

/// The two sides' traces.
#[derive(Debug, Default)]
struct Traces {
    send: Vec<Trace>,
    receive: Vec<Trace>,
}

pub(crate) fn run(args: &SqsArgs) -> Result<(), BenchError> {
    check(args)?;
    let threads = threads(args);
    allow_descriptors(threads.0.max(threads.1).max(if args.concurrent {
        threads.0 + threads.1
    } else {
        0
    }))?;
    let interrupt = Interrupt::install();
    let mut service = Service::open(&args.service)?;
    let (tracked, order_hint) = create_queues(args, &mut service)?;
    let before = service.sample();
    let traces = play(args, &service, &tracked, &interrupt);
    let server = service.cost_since(before);
    let deleted = service.delete_queues();
    let traces = traces?;
    let outcome = tracked
        .iter()
        .map(TrackedQueue::outcome)
        .fold(Outcome::default(), |sum, one| sum.plus(one));
    let sum = |of: fn(&Trace) -> u64| traces.receive.iter().map(of).sum();
    let report = ExperimentReport {
        endpoint: service.endpoint.to_string(),
        queues: args.queues,
        senders: args.senders,
        receivers: args.receivers,
        messages_per_sender: args.messages,
        size: args.size,
        order_hint,
        concurrent: args.concurrent,
        send: Side::of(&traces.send, |trace| trace.response_ns.len() as u64),
        receive: Side::of(&traces.receive, |trace| trace.cycles),
        forgotten: sum(|trace| trace.forgotten),
        crashed: sum(|trace| trace.crashed),
        refused_deletions: sum(|trace| trace.refused_deletions),
        consistency: Consistency::of(&outcome),
        server,
    };
    publish(&report.to_text(), &report, args.service.json.as_deref())?;
    deleted
}

/// Threads of the two sides.
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
    if !(1..=43_200).contains(&args.visibility_timeout_s) {
        return refuse("--visibility-timeout-s takes 1 to 43,200".to_owned());
    }
    Ok(())
}

/// Makes the queues. A service that knows no OrderHint is measured without it.
fn create_queues(
    args: &SqsArgs,
    service: &mut Service,
) -> Result<(Vec<TrackedQueue>, Option<u32>), BenchError> {
    let mut order_hint = args.order_hint;
    let mut tracked = Vec::new();
    while tracked.len() < args.queues as usize {
        let mut attributes = vec![("VisibilityTimeout", args.visibility_timeout_s.to_string())];
        attributes.extend(order_hint.map(|k| ("OrderHint", k.to_string())));
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
    interrupt: &Interrupt,
) -> Result<Traces, BenchError> {
    let stop = &AtomicBool::new(false);
    let (senders, receivers) = threads(args);
    // They all begin at once.
    let at_once = if args.concurrent { senders + receivers } else { senders };
    let ready = &Barrier::new(usize::try_from(at_once).unwrap_or(usize::MAX));
    let ready_to_receive = &Barrier::new(usize::try_from(receivers).unwrap_or(usize::MAX));
    let receivers_ready = if args.concurrent { ready } else { ready_to_receive };
    std::thread::scope(|scope| {
        let sending = start_senders(scope, args, service, tracked, (ready, stop))?;
        if args.concurrent {
            let receiving =
                start_receivers(scope, args, service, tracked, (receivers_ready, stop))?;
            let send = collect(sending, interrupt, stop)?;
            return Ok(Traces { send, receive: collect(receiving, interrupt, stop)? });
        }
        let send = collect(sending, interrupt, stop)?;
        tracked.iter().for_each(TrackedQueue::begin_receiving);
        let receiving = start_receivers(scope, args, service, tracked, (receivers_ready, stop))?;
        Ok(Traces { send, receive: collect(receiving, interrupt, stop)? })
    })
}

type Thread<'scope> = ScopedJoinHandle<'scope, Result<Trace, Error>>;
/// What all threads wait for, and what ends them early.
type Signals<'a> = (&'a Barrier, &'a AtomicBool);

fn start_senders<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    args: &'env SqsArgs,
    service: &Service,
    tracked: &'env [TrackedQueue],
    (ready, stop): Signals<'scope>,
) -> Result<Vec<Thread<'scope>>, BenchError> {
    let mut threads = Vec::new();
    for (at, queue) in tracked.iter().enumerate() {
        for number in 0..args.senders {
            let mut client = service.patient_client().with_retry(RETRY);
            let index = threads.len() as u64;
            inject(&mut client, args, index);
            let rng = Rng::with_seed(args.seed ^ index.rotate_left(17));
            threads.push(spawn(scope, format!("send-{at}-{number}"), move || {
                ready.wait();
                let trace = sender::run(args, queue, client, (number, rng), stop);
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
            let client = service.patient_client().with_retry(RETRY);
            // Another sequence than the senders'.
            let index = (1 << 32) + threads.len() as u64;
            threads.push(spawn(scope, format!("receive-{at}-{number}"), move || {
                let rng = Rng::with_seed(args.seed ^ index.rotate_left(17));
                let inject = |client: &mut Client| inject(client, args, index);
                let receiver = Receiver::new(args, queue, client, (number, rng), inject);
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

/// Makes the client lose requests and responses as often as asked for.
fn inject(client: &mut Client, args: &SqsArgs, index: u64) {
    let (request, response) = (args.request_loss, args.response_loss);
    if request + response == 0.0 {
        return;
    }
    let mut rng = Rng::with_seed(args.seed.wrapping_mul(31).wrapping_add(index));
    client.inject(move || match happens(&mut rng, request) {
        true => Some(Loss::Request),
        false => happens(&mut rng, response).then_some(Loss::Response),
    });
}

/// Waits for a side's threads; the first that fails ends all.
fn collect(
    threads: Vec<Thread<'_>>,
    interrupt: &Interrupt,
    stop: &AtomicBool,
) -> Result<Vec<Trace>, BenchError> {
    let mut traces = Vec::with_capacity(threads.len());
    let mut failed = None;
    let mut waiting = threads;
    while !waiting.is_empty() {
        if interrupt.is_set() {
            stop.store(true, Ordering::Relaxed);
        }
        let (finished, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(ScopedJoinHandle::is_finished);
        for thread in finished {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(trace) => traces.push(trace),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
        waiting = rest;
        if !waiting.is_empty() {
            std::thread::sleep(STEP);
        }
    }
    failed.map_or(Ok(traces), |error| Err(error.into()))
}

impl Side {
    fn of(traces: &[Trace], operations: impl Fn(&Trace) -> u64) -> Self {
        let operations = traces.iter().map(operations).sum();
        let begun = traces.iter().filter_map(|trace| trace.first_ns).min().unwrap_or(0);
        let ended = traces.iter().map(|trace| trace.last_ns).max().unwrap_or(0);
        let seconds = seconds_between(begun, ended);
        let mut latencies = Latencies::new();
        traces.iter().flat_map(|trace| &trace.response_ns).for_each(|ns| latencies.record(*ns));
        Self {
            operations,
            seconds,
            per_s: operations as f64 / seconds.max(1e-9),
            response: latencies.percentiles(),
            failures: traces.iter().map(|trace| trace.failures).sum(),
            first_failure: traces.iter().find_map(|trace| trace.first_failure.clone()),
        }
    }

    fn line(&self, name: &str) -> String {
        let ms = milliseconds;
        let found = &self.response;
        let mut line = format!(
            "  {name:<16} {:>9}/s  ({} in {:.2} s)  response mean {}  p50 {}  p99 {}  max {}",
            thousands(self.per_s),
            thousands(self.operations as f64),
            self.seconds,
            ms(found.mean_ms),
            ms(found.p50_ms),
            ms(found.p99_ms),
            ms(found.max_ms),
        );
        if let Some(first) = &self.first_failure {
            line += &format!("  {} GIVEN UP, first: {first}", thousands(self.failures as f64));
        }
        line + "\n"
    }
}

impl Consistency {
    fn of(outcome: &Outcome) -> Self {
        let share = |count: u64| count as f64 / outcome.sent.max(1) as f64;
        let (pairs, queues) = (&outcome.of_pairs, &outcome.in_queue);
        Self {
            messages: outcome.sent,
            duplication_rate: share(outcome.duplicates),
            duplicates: outcome.duplicates,
            loss_rate: share(outcome.lost),
            lost: outcome.lost,
            corrupted: outcome.corrupted,
            out_of_order_rate: pairs.rate(),
            average_displacement: pairs.average_displacement(),
            out_of_order_rate_of_queues: queues.rate(),
            average_displacement_of_queues: queues.average_displacement(),
            provably_out_of_order_rate: outcome.provably_out_of_order as f64
                / queues.messages.max(1) as f64,
        }
    }
}

impl ExperimentReport {
    fn to_text(&self) -> String {
        let found = &self.consistency;
        let hint = self.order_hint.map_or_else(String::new, |k| format!(", K = {k}"));
        let mut text = format!(
            "{}: Q = {}, T_send = {}, T_recv = {}, m = {}, L = {} B{hint}{}\n",
            self.endpoint,
            thousands(f64::from(self.queues)),
            self.senders,
            self.receivers,
            self.messages_per_sender,
            thousands(self.size as f64),
            if self.concurrent { ", at the same time" } else { ", one after the other" },
        );
        text += &self.send.line("send");
        text += &self.receive.line("receive+delete");
        if self.forgotten + self.crashed + self.refused_deletions > 0 {
            text += &format!(
                "  {:<16} {} messages forgotten, {} times quit, {} deletions refused\n",
                "receivers", self.forgotten, self.crashed, self.refused_deletions
            );
        }
        let percent = |rate: f64| format!("{:.4} %", rate * 100.0);
        let mut line = |name: &str, words: String| text += &format!("  {name:<16} {words}\n");
        line(
            "duplication",
            format!(
                "{}  ({} of {})",
                percent(found.duplication_rate),
                found.duplicates,
                found.messages
            ),
        );
        line(
            "loss",
            format!(
                "{}  ({} lost, {} corrupted deliveries)",
                percent(found.loss_rate),
                found.lost,
                found.corrupted
            ),
        );
        let order = |rate: f64, displacement: f64, of: &str| {
            format!("{}, average displacement {displacement:.4} ({of})", percent(rate))
        };
        line(
            "out of order",
            order(found.out_of_order_rate, found.average_displacement, "pairs of threads"),
        );
        let queues = (found.out_of_order_rate_of_queues, found.average_displacement_of_queues);
        line("", order(queues.0, queues.1, "whole queues, overlapping calls as they arrived"));
        let proven = percent(found.provably_out_of_order_rate);
        line("", format!("{proven} (whole queues, beyond what overlapping calls explain)"));
        if let Some(server) = &self.server {
            let per_message = server.cpu_us as f64 / found.messages.max(1) as f64;
            line(
                "server",
                format!(
                    "{per_message:.1} µs CPU a message (send, receive, delete), {:.1} MB",
                    server.resident_bytes as f64 / 1e6
                ),
            );
        }
        text
    }
}

//! One load: clients get in, send and listen for a while, and what is on its way is waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::elastic::args::{FanoutArgs, WireKind};
use crate::elastic::error::ElasticError;
use crate::elastic::listeners::{self, Listener, ListenerTotals};
use crate::elastic::producer_connection::{Pace, ProducerConnection};
use crate::elastic::producers;
use crate::elastic::progress::Shared;
use crate::elastic::tally::Order;
use crate::elastic::wire::{Opened, Wire};
use crate::interrupt::Interrupt;
use crate::latency::Latencies;
use crate::process::{self, ProcessSample};

/// How often the run looks whether a thread has failed or the user wants the end.
const LOOK: Duration = Duration::from_millis(20);
/// A proxy of ZeroMQ applies a subscription after it has passed it on: nothing says when.
const SETTLE: Duration = Duration::from_millis(300);

/// What was measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub seconds: f64,
    pub interrupted: bool,
    /// While it was measured.
    pub sent: u64,
    /// While it was measured, by listener.
    pub delivered: Vec<u64>,
    /// Over the whole run.
    pub order: Order,
    /// Messages of the whole run.
    pub sent_in_all: u64,
    pub latencies: Latencies,
    pub server: Option<ServerCost>,
    pub own_cpu_us: u64,
}

/// What the server spent while it was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCost {
    pub cpu_us: u64,
    pub resident_bytes: u64,
    pub peak_bytes: u64,
}

#[derive(Debug)]
struct Snapshot {
    at_ns: u64,
    sent: u64,
    delivered: Vec<u64>,
    server: Option<ProcessSample>,
    own: ProcessSample,
}

pub(crate) fn carry(args: &FanoutArgs, wire: &Wire) -> Result<Outcome, ElasticError> {
    let interrupt = Interrupt::install();
    let threads = Threads::start(args, wire)?;
    let shared = &threads.shared;
    threads.pause(args.warmup_s, &interrupt);
    let pid = args.server_pid;
    if let Some(pid) = pid {
        process::reset_peak(pid);
    }
    let before = Snapshot::take(shared, pid);
    shared.measuring.store(true, Ordering::Relaxed);
    threads.pause(args.duration_s, &interrupt);
    shared.measuring.store(false, Ordering::Relaxed);
    let after = Snapshot::take(shared, pid);
    let (sent, heard) = threads.end(args.patience_s)?;
    let mut order = Order::default();
    let mut latencies = Latencies::new();
    for part in &heard {
        part.tallies.iter().for_each(|tally| order.add(tally.finish(&sent)));
        latencies.merge(&part.latencies);
    }
    let server = before.server.zip(after.server).map(|(before, after)| ServerCost {
        cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
        resident_bytes: after.resident_bytes,
        peak_bytes: after.peak_bytes,
    });
    let delivered = after.delivered.iter().zip(&before.delivered);
    Ok(Outcome {
        seconds: seconds_between(before.at_ns, after.at_ns),
        interrupted: interrupt.is_set(),
        sent: after.sent - before.sent,
        delivered: delivered.map(|(after, before)| after - before).collect(),
        order,
        sent_in_all: sent.iter().sum(),
        latencies,
        server,
        own_cpu_us: after.own.cpu_us.saturating_sub(before.own.cpu_us),
    })
}

impl Snapshot {
    fn take(shared: &Shared, pid: Option<u32>) -> Self {
        Self {
            at_ns: now_ns(),
            sent: shared.sent.load(Ordering::Relaxed),
            delivered: shared.delivered(),
            // A server that has died shows on its connections; here it only has no costs.
            server: pid.and_then(|pid| process::sample(pid).ok()),
            own: process::sample(std::process::id()).unwrap_or_default(),
        }
    }
}

/// The threads of a run.
struct Threads {
    shared: Arc<Shared>,
    producers: JoinHandle<Result<Vec<ProducerConnection>, ElasticError>>,
    listeners: Vec<JoinHandle<Result<ListenerTotals, ElasticError>>>,
    /// Connected and never read.
    _stalled: Vec<Opened>,
}

impl Threads {
    fn start(args: &FanoutArgs, wire: &Wire) -> Result<Self, ElasticError> {
        let (producers, listeners) = (args.producers as usize, args.listeners as usize);
        let threads = args.listener_threads.clamp(1, listeners.max(1));
        let shared = Arc::new(Shared::new(producers, listeners, threads));
        let opened = (0..args.listeners).map(|number| wire.open_listener(number));
        let opened: Vec<Opened> = opened.collect::<Result<_, _>>()?;
        let stalled = (0..args.stalled).map(|number| wire.open_listener(args.listeners + number));
        let stalled: Vec<Opened> = stalled.collect::<Result<_, _>>()?;
        if wire.kind == WireKind::Zmtp {
            thread::sleep(SETTLE);
        }
        let mut parts: Vec<Vec<Listener>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, opened) in opened.into_iter().enumerate() {
            parts[number % threads].push(Listener::new(number, producers, opened));
        }
        let mut threads = Vec::with_capacity(threads);
        for (number, part) in parts.into_iter().enumerate() {
            let (wire, shared) = (wire.clone(), Arc::clone(&shared));
            let work =
                move || shared.watched(|shared| listeners::carry(number, part, &wire, shared));
            threads.push(spawn(format!("listeners-{number}"), work)?);
        }
        let opened = (0..args.producers).map(|number| wire.open_producer(number, args.size));
        let opened: Vec<_> = opened.collect::<Result<_, _>>()?;
        let begin_ns = now_ns();
        let connect = |(number, opened)| {
            let pace = args.rate.map(|rate| Pace::of(number, producers, rate, begin_ns));
            ProducerConnection::new(number, shared.run, opened, pace)
        };
        let connections: Vec<ProducerConnection> =
            opened.into_iter().enumerate().map(connect).collect();
        let (wire, window, theirs) = (wire.clone(), args.window, Arc::clone(&shared));
        let work =
            move || theirs.watched(|shared| producers::carry(connections, &wire, window, shared));
        let producers = spawn("producers".to_owned(), work)?;
        Ok(Self { shared, producers, listeners: threads, _stalled: stalled })
    }

    /// Lets the load go on for so long, or until it cannot.
    fn pause(&self, seconds: f64, interrupt: &Interrupt) {
        let end = now_ns() + seconds_to_ns(seconds);
        while now_ns() < end && !interrupt.is_set() && !self.shared.has_failed() {
            thread::sleep(LOOK.min(Duration::from_nanos(end.saturating_sub(now_ns()))));
        }
    }

    /// Ends the sending, waits until everybody has everything or nothing comes any more, and gives
    /// what was sent and heard.
    fn end(self, patience_s: f64) -> Result<(Vec<u64>, Vec<ListenerTotals>), ElasticError> {
        self.shared.end_sending.store(true, Ordering::Relaxed);
        let connections = join(self.producers);
        if let Ok(connections) = &connections {
            let sent = connections.iter().map(ProducerConnection::sequence).sum();
            self.shared.wait_for(sent, seconds_to_ns(patience_s));
        }
        self.shared.end.store(true, Ordering::Relaxed);
        let heard: Vec<_> = self.listeners.into_iter().map(join).collect();
        // What a listener says is the cause more often than what a producer says.
        let heard = heard.into_iter().collect::<Result<_, _>>()?;
        Ok((connections?.iter().map(ProducerConnection::sequence).collect(), heard))
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ElasticError> {
    thread::Builder::new().name(name).spawn(work).map_err(ElasticError::Thread)
}

fn join<T>(thread: JoinHandle<Result<T, ElasticError>>) -> Result<T, ElasticError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

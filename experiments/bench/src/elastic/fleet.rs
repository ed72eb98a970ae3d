//! Producers and listeners of one queue, by the client library: they follow moves and failures by
//! themselves. Messages leave at their intended times, and each is judged where it arrives.

mod listener_probe;
mod pacer;
mod reactor;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quelea_elastic_client::{Client, ClientId, Listener, ProducerStats, RelayId};

use crate::clock::{SECOND_NS, now_ns};
use crate::elastic::args::FleetArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::listener_probe::ListenerProbe;
use crate::elastic::fleet::pacer::{PacedProducer, Pacer};
use crate::elastic::fleet::reactor::Reactor;
use crate::elastic::producer_connection::Pace;
use crate::elastic::site::Site;
use crate::elastic::stamp::STAMP_BYTES;
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::latency::Latencies;

/// How long a client may take to be attached: a first relay has to be started.
const ATTACH_S: u64 = 30;
/// How long a producer may take to have all acknowledged.
const CLOSE_S: u64 = 10;
/// At the end, what is on its way is waited for so long after the last message came.
const PATIENCE_NS: u64 = 3 * SECOND_NS;
/// Clients of one kind.
const CLIENTS_MAX: u32 = 1_000;
/// A body is smaller than a message may be.
const SIZE_MAX: usize = 1 << 20;
/// The first part of all messages.
const TOPIC: &str = "bench";

/// Who sends and listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FleetSize {
    /// The most producers that will ever join.
    pub producers: usize,
    pub listeners: usize,
    /// Bytes of a body.
    pub size: usize,
}

/// The clients of a queue.
#[derive(Debug)]
pub(crate) struct Fleet<'a> {
    site: &'a Site,
    client: Client,
    queue: String,
    size: FleetSize,
    shared: Arc<Shared>,
    probes: Vec<Arc<Mutex<ListenerProbe>>>,
    /// Listeners that take nothing.
    stalled: Vec<Listener>,
    pacer: Option<Pacer>,
    producer_runtime: Reactor,
    listener_runtime: Reactor,
}

/// What the threads of a fleet share.
#[derive(Debug)]
struct Shared {
    /// A number that no other run has.
    run: u64,
    end: AtomicBool,
    /// Flows are looked for from messages on that were meant to leave then; 0: not.
    mark_ns: AtomicU64,
    producers: Mutex<Vec<PacedProducer>>,
    /// Why it cannot go on: the first reason.
    failure: Mutex<Option<ElasticError>>,
}

/// What became of all messages.
#[derive(Debug, Default, Clone)]
pub(crate) struct Outcome {
    pub sent: u64,
    pub order: Order,
    /// Notices of gaps.
    pub gaps: u64,
    /// Missing messages that no notice announced.
    pub unannounced: u64,
    /// What the directory announced to the listeners, each once.
    pub notices: Vec<String>,
}

impl FleetSize {
    /// Returns the size that the options ask for.
    ///
    /// # Errors
    /// Names the option that is out of range.
    pub(crate) fn of(args: &FleetArgs) -> Result<Self, BenchError> {
        let refuse = |words: String| Err(BenchError::Arguments(words));
        for (name, count) in [("--producers", args.producers), ("--listeners", args.listeners)] {
            if !(1..=CLIENTS_MAX).contains(&count) {
                return refuse(format!("{name} takes 1 to {CLIENTS_MAX}, not {count}"));
            }
        }
        if !(STAMP_BYTES..=SIZE_MAX).contains(&args.size) {
            return refuse(format!("--size takes {STAMP_BYTES} to {SIZE_MAX}, not {}", args.size));
        }
        if !(0.1..=1e6).contains(&args.rate) {
            return refuse(format!("--rate takes 0.1 to 1000000, not {}", args.rate));
        }
        let (producers, listeners) = (args.producers as usize, args.listeners as usize);
        Ok(Self { producers, listeners, size: args.size })
    }
}

impl<'a> Fleet<'a> {
    /// Opens a fleet, listeners first: they get everything.
    pub(crate) fn open(site: &'a Site, queue: &str, size: FleetSize) -> Result<Self, ElasticError> {
        let shared = Arc::new(Shared {
            run: fastrand::u64(..),
            end: AtomicBool::new(false),
            mark_ns: AtomicU64::new(0),
            producers: Mutex::default(),
            failure: Mutex::default(),
        });
        let (producer_runtime, listener_runtime) =
            (Reactor::start("talk")?, Reactor::start("hear")?);
        let client = site.client()?;
        let mut probes = Vec::with_capacity(size.listeners);
        for number in 0..size.listeners {
            let listener = listener_runtime
                .open(format!("listener {number}"), client.listener(queue, [""]))?;
            let probe = Arc::new(Mutex::new(ListenerProbe::new(number, size.producers)));
            listener_runtime.spawn(listener_probe::listen(
                listener,
                Arc::clone(&probe),
                Arc::clone(&shared),
            ));
            probes.push(probe);
        }
        let pacer = Some(Pacer::start(Arc::clone(&shared), size.size)?);
        let queue = queue.to_owned();
        Ok(Self {
            site,
            client,
            queue,
            size,
            shared,
            probes,
            stalled: Vec::new(),
            pacer,
            producer_runtime,
            listener_runtime,
        })
    }

    /// Lets all producers join that there is room for, with so many messages a second together.
    pub(crate) fn join_all(&mut self, per_s: f64) -> Result<(), ElasticError> {
        let producers = self.size.producers;
        (0..producers).try_for_each(|_| self.join(per_s / producers as f64))
    }

    /// Lets one more producer join, with so many messages a second.
    pub(crate) fn join(&mut self, per_s: f64) -> Result<(), ElasticError> {
        let number = lock(&self.shared.producers).len();
        assert!(number < self.size.producers, "room was made for {}", self.size.producers);
        let opened = self.client.producer(self.queue.as_str());
        let producer = self.producer_runtime.open(format!("producer {number}"), opened)?;
        // Producers do not all send at the same moments.
        let pace =
            Pace::of(number, self.size.producers, per_s * self.size.producers as f64, now_ns());
        lock(&self.shared.producers).push(PacedProducer::new(number, producer, pace));
        Ok(())
    }

    /// Lets a producer leave: it sends no more, and waits for what it is owed.
    pub(crate) fn leave(&mut self, number: usize) -> Result<(), ElasticError> {
        let producer = lock(&self.shared.producers)[number].producer.take();
        let Some(producer) = producer else { return Ok(()) };
        self.producer_runtime.finish(format!("producer {number}"), CLOSE_S, producer.close())
    }

    /// All together send so many messages a second from now on.
    pub(crate) fn set_rate(&self, per_s: f64) {
        let mut producers = lock(&self.shared.producers);
        let (now, count) = (now_ns(), producers.len());
        for (number, paced) in producers.iter_mut().enumerate() {
            paced.pace = Pace::of(number, count, per_s, now);
        }
    }

    /// Adds a listener that connects and never takes a message.
    pub(crate) fn add_stalled(&mut self) -> Result<(), ElasticError> {
        let opened = self.client.listener(self.queue.as_str(), [""]);
        self.stalled.push(self.listener_runtime.open("the stalled listener".to_owned(), opened)?);
        Ok(())
    }

    /// Returns the producers that have joined and not left: number, identity, relay, history.
    pub(crate) fn producers(&self) -> Vec<(usize, ClientId, Option<RelayId>, ProducerStats)> {
        let producers = lock(&self.shared.producers);
        let known = producers.iter().filter_map(|paced| Some((paced, paced.producer.as_ref()?)));
        known.map(|(paced, it)| (paced.number, paced.id, it.relay(), it.stats())).collect()
    }

    /// Returns how many messages all producers have sent so far.
    pub(crate) fn sent(&self) -> u64 {
        lock(&self.shared.producers).iter().map(|paced| paced.sent).sum()
    }

    /// Returns how many messages one producer has sent so far.
    pub(crate) fn sent_by(&self, number: usize) -> u64 {
        lock(&self.shared.producers)[number].sent
    }

    /// Returns how many distinct messages have come at all listeners so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.probes.iter().map(|probe| lock(probe).tally.distinct()).sum()
    }

    /// Returns how many messages listeners miss so far, as a later one of the same producer came.
    pub(crate) fn overtaken(&self) -> u64 {
        self.probes.iter().map(|probe| lock(probe).tally.overtaken()).sum()
    }

    /// Takes the latencies of all listeners since this was asked last.
    pub(crate) fn take_latencies(&self) -> Latencies {
        let mut sum = Latencies::new();
        for probe in &self.probes {
            let mut probe = lock(probe);
            sum.merge(&probe.latencies);
            probe.latencies.clear();
        }
        sum
    }

    /// Looks for flows from this moment on: see [`Self::flowing_since`].
    pub(crate) fn mark(&self, at_ns: u64) {
        self.shared.mark_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Returns when the last listener had a message of each of these producers that was meant to
    /// leave after the mark; `None` while one has none.
    pub(crate) fn flowing_since(&self, producers: &[usize]) -> Option<u64> {
        let mark = self.shared.mark_ns.load(Ordering::Relaxed);
        let mut last = mark;
        for probe in &self.probes {
            let probe = lock(probe);
            for producer in producers {
                last = last.max(probe.first_after(mark, *producer)?);
            }
        }
        Some(last)
    }

    /// Checks whether all goes well still. A failure is returned once.
    pub(crate) fn check(&self) -> Result<(), ElasticError> {
        lock(&self.shared.failure).take().map_or(Ok(()), Err)
    }

    /// Ends the sending, waits for what is on its way, and judges the whole run.
    pub(crate) fn finish(mut self) -> Result<Outcome, ElasticError> {
        let joined = lock(&self.shared.producers).len();
        for number in 0..joined {
            self.leave(number)?;
        }
        let sent: Vec<u64> = (0..joined).map(|number| self.sent_by(number)).collect();
        self.wait_for_rest(sent.iter().sum());
        self.check()?;
        let by_id: HashMap<ClientId, usize> =
            lock(&self.shared.producers).iter().map(|paced| (paced.id, paced.number)).collect();
        let mut outcome = Outcome { sent: sent.iter().sum(), ..Outcome::default() };
        for probe in &self.probes {
            let probe = lock(probe);
            outcome.order.add(probe.tally.finish(&sent));
            outcome.gaps += probe.gaps.len() as u64;
            for (number, sent) in sent.iter().enumerate() {
                let of = |gap: &&listener_probe::Gap| by_id.get(&gap.producer) == Some(&number);
                let announced: Vec<_> =
                    probe.gaps.iter().filter(of).map(listener_probe::Gap::range).collect();
                outcome.unannounced += probe.tally.unannounced(number, *sent, &announced);
            }
            outcome.notices.extend(probe.notices.iter().cloned());
        }
        outcome.notices.sort_unstable();
        outcome.notices.dedup();
        Ok(outcome)
    }

    fn wait_for_rest(&self, sent: u64) {
        let all = sent * self.probes.len() as u64;
        let (mut last, mut moved_at) = (self.delivered(), now_ns());
        while last < all && now_ns() < moved_at + PATIENCE_NS && !self.site.interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(10));
            let found = self.delivered();
            if found != last {
                (last, moved_at) = (found, now_ns());
            }
        }
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        drop(self.pacer.take());
        self.stalled.clear();
    }
}

impl Shared {
    fn fail(&self, error: ElasticError) {
        lock(&self.failure).get_or_insert(error);
    }
}

/// Locks a mutex, also after a panic: another thread prints its panic itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A run: front-ends, what happens to them, clients, and then calm, in which all that was confirmed has to come.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quelea_sqs_protocol::{Consistency, QueueClass, QueueFacts, QueueKey, QueueRef, QueueSettings};
use quelea_testkit::Seed;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::chaos::{Chaos, Outcome};
use super::cluster::{Cluster, NODES};
use super::front_end::{Common, FrontEnd, Net};
use super::history::History;
use super::process::{Process, lock};
use super::queue_rows::QueueRows;
use crate::clock::Clock;
use crate::database::queue_table::Record;
use crate::limits::{GRACE_OF_ONE_MS, SWEPT_AGE_MS_MIN};
use crate::standard::pace::Pace;
use crate::standard::sweeps::Sweeps;

/// Returns the time within which all that was confirmed has to be received then: no visibility
/// timeout is longer than a third of it.
fn patience(consistency: Consistency) -> Duration {
    match consistency {
        Consistency::LocalQuorum => Duration::from_secs(90),
        // What a replica has heard of late is seen by the next read that goes back to the low-water mark.
        Consistency::One => Duration::from_millis(GRACE_OF_ONE_MS) + Duration::from_secs(90),
    }
}

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 4;
const START_US: i64 = 1_700_000_000_000_000;
const SECOND_US: i64 = 1_000_000;

pub(super) struct StandardSimulation {
    pub(super) common: Common,
    pub(super) queue: Arc<QueueFacts>,
    pub(super) dead_letters: Arc<QueueFacts>,
    pub(super) began: Instant,
    front_ends: Mutex<Vec<Arc<FrontEnd>>>,
    started: AtomicU16,
    history: Mutex<History>,
    crashes: AtomicU64,
    pauses: AtomicU64,
}

/// Plays one run.
pub(super) fn play(seed: Seed, chaos: Chaos) -> Outcome {
    fastrand::seed(seed.rng("standard").u64(..));
    in_virtual_time(run(chaos))
}

/// Runs something in a time that passes when nothing is left to be done.
pub(super) fn in_virtual_time<T>(what: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(what)
}

async fn run(chaos: Chaos) -> Outcome {
    let simulation = Arc::new(StandardSimulation::new(chaos).await);
    let heart = tokio::spawn(simulation.clone().keep_hearts_beating());
    let mut tasks = Vec::new();
    tasks.push(tokio::spawn(simulation.clone().inject_faults()));
    tasks.extend((0..PRODUCERS).map(|at| tokio::spawn(simulation.clone().produce(at))));
    if chaos.purges {
        tasks.push(tokio::spawn(simulation.clone().purge_now_and_then()));
    }
    if chaos.moves {
        tasks.push(tokio::spawn(simulation.clone().move_dead_letters_back()));
    }
    tasks.extend((0..CONSUMERS).map(|_| tokio::spawn(simulation.clone().consume())));
    for task in tasks {
        task.await.expect("no panic");
    }
    simulation.calm_down();
    let (calm, patience) = (Instant::now(), patience(chaos.consistency));
    while !simulation.history().left().is_empty() && calm.elapsed() < patience {
        simulation.clone().drain().await;
    }
    let mut faults = Vec::new();
    for left in simulation.history().left() {
        faults.push(format!("{left} did not come within {:?}", calm.elapsed()));
    }
    // What replicas hear of late must not bring anything back.
    let empty = Instant::now();
    while empty.elapsed() < patience {
        simulation.clone().drain().await;
    }
    for queue in [&simulation.queue, &simulation.dead_letters] {
        faults.extend(simulation.count(queue).await);
    }
    let restored = simulation.sweep().await;
    faults.extend(simulation.history().faults(chaos.consistency, chaos.is_calm()));
    heart.abort();
    simulation.outcome(faults, restored)
}

fn queue(name: &str, attributes: &[(&str, String)]) -> Arc<Record> {
    let queue = QueueRef { account: "000000000000".into(), name: name.into() };
    let attributes: BTreeMap<String, String> =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let facts = QueueFacts {
        key: QueueKey::new(QueueClass::Replicated, fastrand::u128(..)),
        queue,
        revision: 1,
        settings: QueueSettings::of(&attributes),
        attributes,
        tags: BTreeMap::new(),
        created_at_ms: 0,
        modified_at_ms: 0,
    };
    let generation = Uuid::from_u128(fastrand::u128(..));
    Arc::new(Record { facts: Arc::new(facts), generation, purged_at_ms: 0 })
}

impl StandardSimulation {
    pub(super) async fn new(chaos: Chaos) -> Self {
        let dead = queue("dead-letters", &[]);
        // So that some messages are received as often in each kind of run.
        let receives_max = match chaos.is_calm() {
            _ if chaos.moves => 2,
            true => 4,
            false => 3,
        };
        let redrive = format!(
            r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead-letters","maxReceiveCount":{receives_max}}}"#
        );
        let hint = if fastrand::bool() { "1".to_owned() } else { "auto".to_owned() };
        let attributes = [("RedrivePolicy", redrive), ("OrderHint", hint)];
        let record = queue("queue", &attributes);
        assert!(record.facts.settings.redrive.is_some(), "a policy that is read");
        let queues = Arc::new(QueueRows::default());
        queues.insert(&dead);
        queues.insert(&record);
        let common = Common {
            chaos,
            cluster: Cluster::new(chaos),
            clock: Arc::new(Clock::beginning_at(START_US)),
            net: Arc::new(Net::default()),
            queues,
        };
        let simulation = Self {
            common,
            queue: record.facts.clone(),
            dead_letters: dead.facts.clone(),
            began: Instant::now(),
            front_ends: Mutex::default(),
            started: AtomicU16::new(0),
            history: Mutex::default(),
            crashes: AtomicU64::new(0),
            pauses: AtomicU64::new(0),
        };
        for at in 0..chaos.front_ends {
            let front_end = simulation.start_front_end(at).await;
            lock(&simulation.front_ends).push(front_end);
        }
        simulation.share_heartbeats();
        simulation
    }

    async fn start_front_end(&self, at: usize) -> Arc<FrontEnd> {
        let wrong_by_us = match at {
            _ if !self.common.chaos.clocks => 0,
            0 => 60 * SECOND_US * if fastrand::bool() { 1 } else { -1 },
            _ => fastrand::i64(-SECOND_US / 2..SECOND_US / 2),
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        FrontEnd::start(&self.common, number, wrong_by_us).await
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Returns all front-ends.
    pub(super) fn front_ends(&self) -> Vec<Arc<FrontEnd>> {
        lock(&self.front_ends).clone()
    }

    /// Returns one of the front-ends, as a balancer chooses.
    pub(super) fn any_front_end(&self) -> Arc<FrontEnd> {
        let front_ends = lock(&self.front_ends);
        front_ends[fastrand::usize(..front_ends.len())].clone()
    }

    fn share_heartbeats(&self) {
        let front_ends = lock(&self.front_ends).clone();
        let rows: Vec<_> = front_ends.iter().map(|front_end| front_end.row()).collect();
        for front_end in front_ends.iter().filter(|front_end| front_end.is(Process::Runs)) {
            front_end.standard.peers.observe(rows.clone(), Instant::now());
        }
    }

    pub(super) async fn keep_hearts_beating(self: Arc<Self>) {
        loop {
            sleep(Duration::from_secs(2)).await;
            self.share_heartbeats();
        }
    }

    async fn inject_faults(self: Arc<Self>) {
        let chaos = self.common.chaos;
        while self.began.elapsed() < chaos.active {
            sleep(Duration::from_millis(fastrand::u64(500..6_000))).await;
            match fastrand::u32(..5) {
                0 if chaos.crashes => {
                    let at = fastrand::usize(..chaos.front_ends);
                    lock(&self.front_ends)[at].set(Process::Killed);
                    self.crashes.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(fastrand::u64(..3_000))).await;
                    let next = self.start_front_end(at).await;
                    lock(&self.front_ends)[at] = next;
                }
                1 if chaos.pauses => {
                    let front_end = self.any_front_end();
                    front_end.set(Process::Stopped);
                    self.pauses.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(fastrand::u64(100..60_000))).await;
                        front_end.set(Process::Runs);
                    });
                }
                2 if chaos.network => {
                    let time = Duration::from_millis(fastrand::u64(100..20_000));
                    self.any_front_end().cut_off(&self.common.net, time);
                }
                _ if chaos.network => {
                    let time = Duration::from_millis(fastrand::u64(100..20_000));
                    self.common.cluster.take_down(fastrand::usize(..NODES), time);
                }
                _ => {}
            }
        }
    }

    fn calm_down(&self) {
        self.common.cluster.calm_down();
        lock(&self.front_ends).iter().for_each(|front_end| front_end.set(Process::Runs));
    }

    /// Returns what a count of an empty queue says that it must not.
    async fn count(&self, queue: &Arc<QueueFacts>) -> Option<String> {
        if self.common.chaos.consistency == Consistency::One {
            // Entries that lead nowhere stay until every replica must have heard of their messages.
            return None;
        }
        match self.any_front_end().standard.backlog(queue).await {
            Ok(one) if one.visible + one.in_flight + one.delayed == 0 => None,
            counted => Some(format!("the empty {} is counted as {counted:?}", queue.queue.name)),
        }
    }

    /// Lets the sweep look for messages that nothing leads to. What it finds was never confirmed, and it comes once more.
    async fn sweep(self: &Arc<Self>) -> u64 {
        sleep(Duration::from_millis(2 * SWEPT_AGE_MS_MIN)).await;
        let front_ends = lock(&self.front_ends).clone();
        let mut restored = 0;
        for front_end in front_ends {
            let mut sweeps = Sweeps::new(&front_end.standard, Pace::AT_ONCE);
            for queue in [&self.queue, &self.dead_letters] {
                sweeps.begin(&front_end.standard, &queue.queue).await;
            }
            sweeps.end_all().await;
            assert_eq!(front_end.standard.sweeps.stats().broken_off, 0, "all is calm");
            restored += sweeps.restored() as u64;
        }
        let swept = Instant::now();
        while swept.elapsed() < Duration::from_secs(60) {
            self.clone().drain().await;
        }
        restored
    }

    fn outcome(&self, faults: Vec<String>, restored: u64) -> Outcome {
        let history = self.history();
        let (confirmed, received, deleted, dead_letters) = history.counts();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Outcome {
            faults,
            confirmed,
            received,
            duplicates: history.duplicates(),
            deleted,
            dead_letters,
            refused: history.refused,
            late_writes: count(&self.common.cluster.late_writes),
            crashes: count(&self.crashes),
            pauses: count(&self.pauses),
            purges: history.purges(),
            copies: history.copies(),
            restored,
        }
    }
}

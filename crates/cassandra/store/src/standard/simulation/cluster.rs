//! Three nodes, each a replica of everything, and the ways to them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quelea_sqs_protocol::Fault;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::chaos::Chaos;
use super::process::lock;
use super::replica::{Cell, Cells, Key, Mutation, Part, Partition, Replica, merge};

pub(super) const NODES: usize = 3;

/// After so long a front-end gives a request up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// After so long a node does, and says so.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// What becomes of a write of an entry that a test has chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mishap {
    /// It is done, and said so late.
    Late(Duration),
    /// It is not done.
    Fails,
}

pub(super) struct Cluster {
    chaos: Chaos,
    began: Instant,
    traced: Option<Uuid>,
    replicas: Mutex<[Replica; NODES]>,
    down_until: Mutex<[Instant; NODES]>,
    is_calm: AtomicBool,
    mishaps: Mutex<VecDeque<Mishap>>,
    /// Messages whose rows cannot be read.
    pub(super) unreadable: Mutex<BTreeSet<Uuid>>,
    /// Messages whose reads are not answered.
    pub(super) unanswered: Mutex<BTreeSet<Uuid>>,
    /// After so long those are given up.
    pub(super) unanswered_after: Mutex<Duration>,
    pub(super) late_writes: AtomicU64,
    /// Reads of parts of the index, for a queue's head.
    pub(super) head_reads: AtomicU64,
    /// Rows that sweeps have read.
    pub(super) swept_rows: AtomicU64,
}

fn ms(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(fastrand::u64(range))
}

/// Returns whether something happens that happens so often.
pub(super) fn chance(per_mille: u32) -> bool {
    fastrand::u32(..1_000) < per_mille
}

impl Cluster {
    pub(super) fn new(chaos: Chaos) -> Arc<Self> {
        Arc::new(Self {
            chaos,
            began: Instant::now(),
            traced: std::env::var("QUELEA_TRACE_MESSAGE").ok().and_then(|id| id.parse().ok()),
            replicas: Mutex::default(),
            down_until: Mutex::new([Instant::now(); NODES]),
            is_calm: AtomicBool::new(!chaos.network),
            mishaps: Mutex::default(),
            unreadable: Mutex::default(),
            unanswered: Mutex::default(),
            unanswered_after: Mutex::default(),
            late_writes: AtomicU64::new(0),
            head_reads: AtomicU64::new(0),
            swept_rows: AtomicU64::new(0),
        })
    }

    /// From now on nothing is slow, down or lost.
    pub(super) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
        *lock(&self.down_until) = [Instant::now(); NODES];
    }

    fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// A node is down for a while.
    pub(super) fn take_down(&self, node: usize, time: Duration) {
        lock(&self.down_until)[node] = Instant::now() + time;
    }

    fn down_until(&self, node: usize) -> Option<Instant> {
        let until = lock(&self.down_until)[node];
        (until > Instant::now()).then_some(until)
    }

    /// Returns how long a message is on its way.
    fn way(&self) -> Duration {
        if self.is_calm() || !chance(20) {
            return Duration::from_micros(fastrand::u64(200..2_000));
        }
        ms(20..3_000)
    }

    fn is_lost(&self) -> bool {
        !self.is_calm() && chance(5)
    }

    /// Answers after what was lost.
    async fn no_answer<T>(&self) -> Result<T, Fault> {
        sleep(if fastrand::bool() { REQUEST_TIMEOUT } else { NODE_TIMEOUT }).await;
        Err(unavailable())
    }

    /// Waits for the way there and back of a lightweight transaction, or of a read of a row that
    /// such change.
    pub(super) async fn transact(&self) -> Result<(), Fault> {
        if self.is_lost() {
            return self.no_answer().await;
        }
        sleep(self.way() + self.way()).await;
        Ok(())
    }

    pub(super) async fn write(
        self: &Arc<Self>,
        needed: usize,
        mutation: Mutation,
    ) -> Result<(), Fault> {
        self.trace(&mutation);
        match self.next_mishap(&mutation) {
            Some(Mishap::Late(time)) => sleep(time).await,
            Some(Mishap::Fails) => return Err(unavailable()),
            None => {}
        }
        if self.is_lost() {
            return self.no_answer().await;
        }
        sleep(self.way()).await;
        let (done, mut acknowledged) = mpsc::unbounded_channel();
        let mutation = Arc::new(mutation);
        for node in 0..NODES {
            let (cluster, mutation, done) = (self.clone(), mutation.clone(), done.clone());
            tokio::spawn(async move {
                if cluster.arrives(node).await {
                    let mut replicas = lock(&cluster.replicas);
                    replicas[node].apply(&mutation, cluster.chaos.is_by_timestamp);
                    let _ = done.send(());
                }
            });
        }
        drop(done);
        let enough = async {
            for _ in 0..self.needed(needed) {
                acknowledged.recv().await?;
            }
            Some(())
        };
        match timeout(NODE_TIMEOUT, enough).await {
            Ok(Some(())) if !self.is_lost() => {
                sleep(self.way()).await;
                Ok(())
            }
            _ => self.no_answer().await,
        }
    }

    /// Waits while a write is on its way to a replica. Returns whether it arrives: a node that is
    /// down hears of it when it is back, or never.
    async fn arrives(&self, node: usize) -> bool {
        sleep(self.way()).await;
        if !self.is_calm() && chance(10) {
            self.late_writes.fetch_add(1, Ordering::Relaxed);
            sleep(ms(3_000..60_000)).await;
        }
        let mut is_late = false;
        while let Some(until) = self.down_until(node) {
            is_late = true;
            if self.chaos.forgetting && fastrand::bool() {
                return false;
            }
            sleep_until(until + ms(0..10_000)).await;
        }
        self.late_writes.fetch_add(u64::from(is_late), Ordering::Relaxed);
        true
    }

    /// The next writes of entries go so.
    pub(super) fn have(&self, mishaps: impl IntoIterator<Item = Mishap>) {
        lock(&self.mishaps).extend(mishaps);
    }

    fn next_mishap(&self, mutation: &Mutation) -> Option<Mishap> {
        let is_entry =
            |(key, cell): &(Key, Cell)| matches!(key, Key::Entry(..)) && cell.value.is_some();
        let mut mishaps = lock(&self.mishaps);
        mutation.cells.iter().any(is_entry).then(|| mishaps.pop_front()).flatten()
    }

    /// Prints what is written of the message that `QUELEA_TRACE_MESSAGE` names, by its id.
    fn trace(&self, mutation: &Mutation) {
        let Some(traced) = self.traced else { return };
        for (key, cell) in mutation.cells.iter().filter(|(key, _)| key.message() == Some(traced)) {
            println!("{:?} {:?} {key:?} {cell:?}", self.began.elapsed(), mutation.partition);
        }
    }

    fn needed(&self, needed: usize) -> usize {
        if self.chaos.is_quorum { needed } else { 1 }
    }

    /// Reads what so many replicas know of parts of a partition; those that were asked know all of
    /// it before the answer comes.
    pub(super) async fn read(
        self: &Arc<Self>,
        needed: usize,
        partition: Partition,
        parts: &[Part],
    ) -> Result<Cells, Fault> {
        if self.is_lost() {
            return self.no_answer().await;
        }
        sleep(self.way()).await;
        let mut nodes: Vec<usize> = (0..NODES).collect();
        fastrand::shuffle(&mut nodes);
        let mut there: Vec<usize> =
            nodes.into_iter().filter(|node| self.down_until(*node).is_none()).collect();
        there.truncate(self.needed(needed));
        if there.len() < self.needed(needed) {
            return self.no_answer().await;
        }
        let mut known = Cells::new();
        for node in &there {
            sleep(self.way()).await;
            let said = lock(&self.replicas)[*node].snapshot(partition, parts);
            merge(&mut known, said, self.chaos.is_by_timestamp);
        }
        if self.chaos.is_by_timestamp {
            for node in there {
                let mut replicas = lock(&self.replicas);
                replicas[node].repair(partition, &known);
            }
        }
        if self.is_lost() {
            return self.no_answer().await;
        }
        sleep(self.way()).await;
        Ok(known)
    }
}

pub(super) fn unavailable() -> Fault {
    Fault::Unavailable("Cassandra: it did not answer in time".to_owned())
}

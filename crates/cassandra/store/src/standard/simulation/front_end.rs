//! A front-end: the product's own part for standard queues, behind a gate that stands for its process, and a socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::chaos::Chaos;
use super::cluster::{Cluster, chance};
use super::model_tables::ModelTables;
use super::process::{Gate, Process, lock};
use super::queue_rows::{KnownQueues, QueueRows};
use crate::clock::Clock;
use crate::database::schema::VERSION;
use crate::limits::{BUCKET_ROWS_MAX, CHANGES_COUNTED_EVERY_MS};
use crate::peers::Peers;
use crate::peers::alive::FrontEnd as Row;
use crate::peers::peer_socket::{PeerSocket, Receiving};
use crate::standard::{Standard, StandardSettings};

pub(super) struct FrontEnd {
    pub(super) standard: Arc<Standard>,
    pub(super) gate: Gate,
    address: SocketAddr,
    beat: AtomicI64,
}

/// Where front-ends hear each other: datagrams are late, and some of them lost.
#[derive(Default)]
pub(super) struct Net {
    inboxes: Mutex<BTreeMap<SocketAddr, Arc<Inbox>>>,
    cut_until: Mutex<BTreeMap<SocketAddr, Instant>>,
}

impl Net {
    fn is_cut(&self, address: SocketAddr) -> bool {
        lock(&self.cut_until).get(&address).is_some_and(|until| Instant::now() < *until)
    }
}

/// What has arrived at a front-end: it is waited for, and taken in between by whoever looks.
#[derive(Default)]
struct Inbox {
    datagrams: Mutex<VecDeque<Vec<u8>>>,
    arrived: Notify,
}

impl Inbox {
    fn push(&self, datagram: Vec<u8>) {
        lock(&self.datagrams).push_back(datagram);
        self.arrived.notify_one();
    }

    fn pop(&self) -> Option<Vec<u8>> {
        lock(&self.datagrams).pop_front()
    }
}

struct Socket {
    net: Arc<Net>,
    loses: bool,
    address: SocketAddr,
    gate: Gate,
    inbox: Arc<Inbox>,
}

impl PeerSocket for Socket {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        if self.loses && (chance(50) || self.net.is_cut(self.address) || self.net.is_cut(to)) {
            return;
        }
        let inboxes = lock(&self.net.inboxes);
        let Some(inbox) = inboxes.get(&to).cloned() else { return };
        let (datagram, gate) = (datagram.to_vec(), self.gate.clone());
        let slow = self.loses && chance(20);
        let way = Duration::from_micros(fastrand::u64(if slow { 5_000..500_000 } else { 50..500 }));
        tokio::spawn(async move {
            gate.pass().await;
            sleep(way).await;
            inbox.push(datagram);
        });
    }

    fn try_receive(&self) -> Option<Vec<u8>> {
        self.inbox.pop()
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async move {
            loop {
                self.gate.pass().await;
                if let Some(datagram) = self.inbox.pop() {
                    return Some(datagram);
                }
                self.inbox.arrived.notified().await;
            }
        })
    }
}

/// What all front-ends of a run have in common.
pub(super) struct Common {
    pub(super) chaos: Chaos,
    pub(super) cluster: Arc<Cluster>,
    /// The nodes' time.
    pub(super) clock: Arc<Clock>,
    pub(super) net: Arc<Net>,
    pub(super) queues: Arc<QueueRows>,
}

impl FrontEnd {
    /// Starts one whose machine's clock is wrong by so much.
    pub(super) async fn start(common: &Common, number: u16, wrong_by_us: i64) -> Arc<Self> {
        let gate = Gate::open();
        let peers = Peers::new(Uuid::from_u128(fastrand::u128(..)), true);
        let tables = ModelTables {
            cluster: common.cluster.clone(),
            clock: common.clock.clone(),
            gate: gate.clone(),
            queues: KnownQueues::new(
                common.queues.clone(),
                peers.peer_changes(),
                common.chaos.reread,
            ),
        };
        let clock = Arc::new(Clock::beginning_at(common.clock.now_us()));
        clock.set_wrong_by_us(wrong_by_us);
        for node in 0..3 {
            compare(common, &clock, node).await;
        }
        let settings = StandardSettings {
            consistency: common.chaos.consistency,
            duplicates_max: 0.005,
            in_flight_max: common.chaos.in_flight_max,
            bucket_rows_max: match common.chaos.is_calm() {
                true => BUCKET_ROWS_MAX,
                false => [BUCKET_ROWS_MAX, 30, 3][fastrand::usize(..3)],
            },
        };
        let standard = Arc::new(Standard::new(Box::new(tables), clock, peers, settings));
        let address = SocketAddr::from(([127, 0, 0, 1], number));
        let inbox = Arc::new(Inbox::default());
        lock(&common.net.inboxes).insert(address, inbox.clone());
        let socket = Socket {
            net: common.net.clone(),
            loses: common.chaos.network,
            address,
            gate: gate.clone(),
            inbox,
        };
        standard.attach(Arc::new(socket));
        let front_end = Arc::new(Self { standard, gate, address, beat: AtomicI64::new(1) });
        tokio::spawn(front_end.clone().keep_counting_changes());
        front_end
    }

    async fn keep_counting_changes(self: Arc<Self>) {
        while !self.is(Process::Killed) {
            sleep(Duration::from_millis(CHANGES_COUNTED_EVERY_MS)).await;
            self.gate.pass().await;
            self.standard.peers.count_changes();
        }
    }

    /// None of its datagrams arrives for so long, and none arrives here.
    pub(super) fn cut_off(&self, net: &Net, time: Duration) {
        lock(&net.cut_until).insert(self.address, Instant::now() + time);
    }

    pub(super) fn set(&self, process: Process) {
        self.gate.set(process);
    }

    pub(super) fn is(&self, process: Process) -> bool {
        self.gate.process() == process
    }

    /// Returns its row among the others', which it renews while it runs.
    pub(super) fn row(&self) -> Row {
        if self.is(Process::Runs) {
            self.beat.fetch_add(1, Ordering::Relaxed);
        }
        let beat = self.beat.load(Ordering::Relaxed);
        Row { id: self.standard.peers.id, address: Some(self.address), beat, version: VERSION }
    }

    /// Carries out what it does by itself, for as long as its process runs: a task that goes on
    /// though nobody waits for it.
    pub(super) async fn by_itself<T>(&self, work: impl Future<Output = T>) -> T {
        self.gate.pass().await;
        let done = work.await;
        self.gate.pass().await;
        done
    }

    /// Carries out a client's call; `None`: the client has waited too long, and has hung up.
    pub(super) async fn call<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let answered = async {
            sleep(Duration::from_micros(fastrand::u64(100..1_000))).await;
            self.gate.pass().await;
            let answer = call.await;
            self.gate.pass().await;
            answer
        };
        timeout(patience, answered).await.ok()
    }
}

/// Asks a node for the time; each has its own.
async fn compare(common: &Common, clock: &Clock, node: u32) {
    let asked_us = clock.machine_us();
    let asked_at = Instant::now();
    sleep(Duration::from_micros(fastrand::u64(200..3_000))).await;
    let skew_us = if common.chaos.clocks { i64::from(node) * 40_000 - 40_000 } else { 0 };
    let theirs_us = common.clock.now_us() + skew_us;
    sleep(asked_at.elapsed()).await;
    clock.compare(Uuid::from_u128(u128::from(node) + 1), asked_us, theirs_us);
}

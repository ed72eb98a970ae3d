//! The store of replicated queues: a session of Cassandra, and what this front-end has under way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quelea_sqs_protocol::{
    Backlog, Capabilities, Counts, Created, Delivery, Fault, MoveTask, NewMessage, NewMoveTask,
    NewQueue, OldReceipts, Order, PEEKED_MESSAGES_MAX, Peeked, QueueClass, QueueFacts, QueueRef,
    QueueSettings, Queues, Reappearance, ReceiptOutcome, Receive, Received, SendOutcome,
};
use scylla::errors::PrepareError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::database::cassandra_tables::CassandraTables;
use crate::database::connect::connect;
use crate::database::connect_error::ConnectError;
use crate::database::identity_table::IdentityTable;
use crate::database::move_table::MoveTable;
use crate::database::preparing::Preparing;
use crate::database::queue_table::QueueTable;
use crate::database::schema;
use crate::database::settings::CassandraSettings;
use crate::database::statements::{Statements, prepare_read_time};
use crate::database::take_over_table::TakeOverTable;
use crate::database::transaction::Unmade;
use crate::database::{Database, RequestCounts};
use crate::fifo::{ClusterKey, Fifo, MessageRows, OwnerTable, PeerListener, refused, serve_peers};
use crate::limits::{CHANGES_AWAITED_MS_MAX, FACTS_AGE_HEARD_MS_MAX};
use crate::passed::{Passed, PassedQueues};
use crate::peers::front_end_table::FrontEndTable;
use crate::peers::heartbeat_timestamps::HeartbeatTimestamps;
use crate::peers::internal_address::listen;
use crate::peers::peer_socket::PeerSocket;
use crate::peers::{PeerStats, Peers};
use crate::shared::Shared;
use crate::standard::pace::Pace;
use crate::standard::send::stopped;
use crate::standard::sweep_counts::SweepStats;
use crate::standard::tables::Asked;
use crate::standard::{Standard, StandardSettings, id_of};

/// How often the clock is compared with Cassandra's.
const COMPARE_CLOCKS_EVERY: Duration = Duration::from_secs(30);

/// Replicated queues. Cheap to clone; its tasks run on the runtime in which it connected, and any other may call it.
#[derive(Clone)]
pub struct CassandraQueues {
    pub(crate) shared: Arc<Shared>,
}

impl CassandraQueues {
    /// Connects, and makes what is missing: the keyspace, its tables.
    ///
    /// # Errors
    /// What is wrong with the settings, the nodes, or the rights of the user.
    pub async fn connect(settings: &CassandraSettings) -> Result<Self, ConnectError> {
        let connected = connect(settings).await?;
        schema::bring_up_to_date(&connected, settings).await?;
        let failed = |error: PrepareError| ConnectError::of_statement(&error, schema::VERSION);
        let preparing = Preparing { session: &connected.session, keyspace: &settings.keyspace };
        let read_time = prepare_read_time(&preparing).await.map_err(failed)?;
        let statements = Statements::prepare(&preparing).await.map_err(failed)?;
        let peers = Peers::new(Uuid::from_u128(fastrand::u128(..)), !settings.is_classic);
        let queues = QueueTable::prepare(&preparing, peers.peer_changes()).await.map_err(failed)?;
        let queues = Arc::new(queues);
        let move_tasks = MoveTable::prepare(&preparing).await.map_err(failed)?;
        let identity = IdentityTable::prepare(&preparing).await.map_err(failed)?;
        let take_over = TakeOverTable::prepare(&preparing).await.map_err(failed)?;
        let owners = OwnerTable::prepare(&preparing).await.map_err(failed)?;
        let rows = MessageRows::prepare(&preparing).await.map_err(failed)?;
        let key = ClusterKey::prepare(&preparing).await.map_err(failed)?;
        let front_ends = FrontEndTable::prepare(&preparing).await.map_err(failed)?;
        let database = Arc::new(Database::new(connected.session, read_time));
        let unreadable = |fault: Fault| ConnectError::NotYet {
            what: "read the secret of receipts".to_owned(),
            reason: fault.to_string(),
        };
        let secret = key.get(&database).await.map_err(unreadable)?;
        let fifo = Fifo::new(rows, owners, secret, settings.fifo_bytes_max);
        let listener: PeerListener = listen(settings, &database.session).await?;
        fifo.be_reached_at(settings.internal_address.clone(), listener.address);
        let tables =
            CassandraTables { database: database.clone(), queues: queues.clone(), statements };
        let standard_settings = StandardSettings {
            consistency: settings.consistency,
            duplicates_max: f64::from(settings.duplicates_ppm_max) / 1e6,
            in_flight_max: settings.in_flight_max,
            bucket_rows_max: settings.bucket_rows_max,
        };
        let clock = database.clock.clone();
        let standard = Arc::new(Standard::new(Box::new(tables), clock, peers, standard_settings));
        let shared = Arc::new(Shared {
            database,
            standard,
            fifo,
            queues,
            move_tasks,
            identity,
            take_over,
            runtime: Handle::current(),
            cooldown_ms: settings.cooldown_ms,
            passed: PassedQueues::default(),
            front_ends,
            heartbeat_timestamps: HeartbeatTimestamps::default(),
            beaten_at: Mutex::default(),
            is_answered: AtomicBool::new(true),
        });
        // The first comparison comes before the first message.
        shared.compare_clocks().await.map_err(|fault| ConnectError::Clocks(fault.to_string()))?;
        keep_clocks_compared(&shared);
        shared.keep_heart_beating();
        shared.keep_counting_changes();
        shared.keep_sweeping(settings.sweep_rows_per_s);
        shared.keep_move_tasks_going();
        serve_peers(&shared, listener, settings.internal_connections_max);
        Ok(Self { shared })
    }

    /// Returns how many requests to Cassandra there were so far.
    #[must_use]
    pub fn requests(&self) -> RequestCounts {
        self.shared.database.requests()
    }

    /// Returns of how many lightweight transactions Cassandra did not say so far how they ended:
    /// each was read back.
    #[must_use]
    pub fn unknown_outcomes(&self) -> u64 {
        self.shared.database.unknown_outcomes()
    }

    /// Returns how many rows could not be read, and were left out, so far.
    #[must_use]
    pub fn unreadable_rows(&self) -> u64 {
        self.shared.database.unreadable_rows()
    }

    /// Returns what passed through a queue at this front-end.
    #[must_use]
    pub fn passed(&self, queue: &QueueFacts) -> Passed {
        self.shared.passed.of(queue)
    }

    /// Returns what this front-end had to do with the others so far.
    #[must_use]
    pub fn peer_stats(&self) -> PeerStats {
        self.shared.standard.peers.stats()
    }

    /// Returns the secret of all front-ends of the keyspace, by which they speak with each other.
    /// The first one makes it.
    ///
    /// # Errors
    /// [`Fault::Unavailable`], also when there are no random bytes to be had.
    pub async fn cluster_key(&self) -> Result<[u8; 32], Fault> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|error| Fault::Unavailable(error.to_string()))?;
        self.shared.front_ends.key(&self.shared.database, fresh).await
    }

    /// Speaks with the other front-ends by that socket from now on; once only.
    pub async fn join(&self, socket: Arc<dyn PeerSocket>) {
        self.shared.join(socket).await;
    }

    /// Says that this front-end is alive and looks who else is, as is done every two seconds.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn beat(&self) -> Result<(), Fault> {
        self.shared.beat().await
    }

    /// Returns whether Cassandra answered when this front-end last said that it is alive.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.shared.is_answered.load(Ordering::Relaxed)
    }

    /// Looks at once, and as fast as it can, for messages that no entry leads to, as is done slowly all the time. Returns how
    /// many can be received again.
    ///
    /// # Errors
    /// [`Fault::Unavailable`].
    pub async fn sweep(&self) -> Result<usize, Fault> {
        self.shared.sweep(Pace::AT_ONCE).await
    }

    /// Returns how many messages the sweep has found so far.
    #[must_use]
    pub fn restored(&self) -> u64 {
        self.shared.standard.restored.load(Ordering::Relaxed)
    }

    /// Returns what became of this front-end's sweeps so far.
    #[must_use]
    pub fn sweep_stats(&self) -> SweepStats {
        self.shared.standard.sweeps.stats()
    }

    /// Waits until nobody takes messages any more who has not answered: what is broken off there stays hidden.
    pub async fn settle(&self) {
        drop(self.shared.standard.rounds.write().await);
    }

    /// Notifies the others at once that this front-end ends, after the changes of queues that are
    /// under way, if those end soon.
    ///
    /// # Errors
    /// [`Fault::Unavailable`]: then they notice it after some seconds.
    pub async fn leave(&self) -> Result<(), Fault> {
        let ended = self.shared.standard.peers.changes_ended();
        let _ = tokio::time::timeout(Duration::from_millis(CHANGES_AWAITED_MS_MAX), ended).await;
        self.shared.standard.peers.end_changes();
        self.shared.leave().await
    }

    /// Has this front-end's clock be wrong by so much: what tests do to one of several.
    pub fn set_clock_wrong_by_us(&self, wrong_by_us: i64) {
        self.shared.database.clock.set_wrong_by_us(wrong_by_us);
    }

    /// Lets go of the FIFO queues that this front-end owns, so that others need not wait for the ends of its leases.
    pub async fn release(&self) {
        self.shared.release_fifo_queues().await;
    }

    /// Compares the clock with Cassandra's now, as is done every half minute.
    pub async fn compare_clocks(&self) {
        let _ = self.shared.compare_clocks().await;
    }
}

impl CassandraQueues {
    /// Carries out a change of a queue (`standard/change.rs`), also when whoever asked for it has hung up.
    async fn change(
        &self,
        queue: &QueueRef,
        change: impl Future<Output = Result<(), Unmade>> + Send + 'static,
    ) -> Result<(), Fault> {
        let (shared, queue) = (self.shared.clone(), queue.clone());
        let (answer, answered) = oneshot::channel();
        self.shared.runtime.spawn(async move {
            let settle =
                || Box::pin(shared.queues.settle(&shared.database, &queue)) as Asked<'_, ()>;
            // Those that do not know this front-end would not read for themselves while it makes a change.
            let change = async {
                shared.be_known().await?;
                change.await
            };
            shared.standard.change(&queue, change, settle, answer).await;
        });
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

fn keep_clocks_compared(shared: &Arc<Shared>) {
    let weak = Arc::downgrade(shared);
    shared.runtime.spawn(async move {
        loop {
            tokio::time::sleep(COMPARE_CLOCKS_EVERY).await;
            let Some(shared) = weak.upgrade() else { return };
            let _ = shared.compare_clocks().await;
        }
    });
}

impl Queues for CassandraQueues {
    fn capabilities(&self, class: QueueClass) -> Option<Capabilities> {
        (class == QueueClass::Replicated).then_some(Capabilities {
            order: Order::Almost,
            reappearance: Reappearance::ByNewTime,
            old_receipts: OldReceipts::Delete,
            counts: Counts::Approximate,
            order_hint_auto: true,
            durability: false,
            consistency: Some(self.shared.standard.settings.consistency),
            facts_age_ms_max: FACTS_AGE_HEARD_MS_MAX,
            peeks: true,
        })
    }

    async fn facts(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        let record = self.shared.queues.record(&self.shared.database, queue).await?;
        Ok(record.map(|record| record.facts.clone()))
    }

    async fn facts_now(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Fault> {
        let record = self.shared.queues.record_now(&self.shared.database, queue).await?;
        Ok(record.map(|record| record.facts.clone()))
    }

    async fn create(&self, queue: &QueueRef, new: NewQueue) -> Result<Created, Fault> {
        if new.class != QueueClass::Replicated {
            return Err(Fault::Unsupported("There is no store of ordered queues here.".to_owned()));
        }
        if let Some(fault) = refused(&QueueSettings::of(&new.attributes)) {
            return Err(fault);
        }
        // Nobody remembers a queue that is not there. Whoever remembers one that was there before has heard of its deletion, or reads
        // again two seconds after it.
        let Shared { queues, database, cooldown_ms, .. } = &*self.shared;
        queues.create(database, queue, &new, *cooldown_ms).await
    }

    async fn delete_queue(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let (shared, facts) = (self.shared.clone(), queue.clone());
        self.change(&queue.queue, async move {
            let Shared { queues, database, cooldown_ms, .. } = &*shared;
            queues.delete(database, &facts, id_of(&facts), *cooldown_ms).await
        })
        .await
    }

    async fn purge(&self, queue: &Arc<QueueFacts>) -> Result<(), Fault> {
        let (shared, facts) = (self.shared.clone(), queue.clone());
        self.change(&queue.queue, async move {
            let Shared { queues, database, cooldown_ms, .. } = &*shared;
            queues.purge(database, &facts, id_of(&facts), *cooldown_ms).await
        })
        .await
    }

    async fn list(
        &self,
        account: &Arc<str>,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        self.shared.queues.list(&self.shared.database, account, prefix, after, max).await
    }

    async fn dead_letter_sources(
        &self,
        queue: &Arc<QueueFacts>,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, Fault> {
        self.shared
            .queues
            .dead_letter_sources(&self.shared.database, &queue.queue, after, max)
            .await
    }

    async fn put_attributes(
        &self,
        seen: &Arc<QueueFacts>,
        attributes: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        if let Some(fault) = refused(&QueueSettings::of(&attributes)) {
            return Err(fault);
        }
        let (shared, facts) = (self.shared.clone(), seen.clone());
        self.change(&seen.queue, async move {
            let Shared { queues, database, .. } = &*shared;
            queues.put_attributes(database, &facts, id_of(&facts), attributes).await
        })
        .await
    }

    async fn put_tags(
        &self,
        seen: &Arc<QueueFacts>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let (shared, facts) = (self.shared.clone(), seen.clone());
        self.change(&seen.queue, async move {
            let Shared { queues, database, .. } = &*shared;
            queues.put_tags(database, &facts, id_of(&facts), tags).await
        })
        .await
    }

    async fn backlog(&self, queue: &Arc<QueueFacts>) -> Result<Backlog, Fault> {
        if queue.settings.is_fifo() {
            return self.shared.fifo_backlog(queue).await;
        }
        self.shared.standard.backlog(queue).await
    }

    async fn peek(&self, queue: &Arc<QueueFacts>, max: usize) -> Result<Peeked, Fault> {
        let max = max.clamp(1, PEEKED_MESSAGES_MAX);
        if queue.settings.is_fifo() {
            return self.shared.fifo_peek(queue, max).await;
        }
        self.shared.standard.peek(queue, max).await
    }

    async fn send(
        &self,
        queue: &Arc<QueueFacts>,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<SendOutcome>, Fault> {
        let sent = if queue.settings.is_fifo() {
            self.shared.fifo_send(queue, messages).await?
        } else {
            self.shared.standard.send(queue, messages).await?
        };
        let confirmed = sent.iter().filter(|one| one.is_ok()).count() as u64;
        self.shared.passed.count(queue, |passed| passed.sent += confirmed);
        Ok(sent)
    }

    async fn receive(
        &self,
        queue: &Arc<QueueFacts>,
        receive: Receive,
    ) -> Result<Vec<Received>, Fault> {
        let received = if queue.settings.is_fifo() {
            self.shared.fifo_receive(queue, receive).await?
        } else {
            self.shared.standard.receive(queue, receive).await?
        };
        self.shared.passed.count(queue, |passed| passed.received += received.len() as u64);
        Ok(received)
    }

    async fn delete(
        &self,
        queue: &Arc<QueueFacts>,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        let outcomes = if queue.settings.is_fifo() {
            self.shared.fifo_delete(queue, deliveries).await?
        } else {
            self.shared.standard.delete(queue, deliveries).await?
        };
        let done = outcomes.iter().filter(|one| **one == ReceiptOutcome::Done).count() as u64;
        self.shared.passed.count(queue, |passed| passed.deleted += done);
        Ok(outcomes)
    }

    async fn change_visibility(
        &self,
        queue: &Arc<QueueFacts>,
        changes: Vec<(Delivery, u64)>,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        if queue.settings.is_fifo() {
            return self.shared.fifo_change_visibility(queue, changes).await;
        }
        self.shared.standard.change_visibility(queue, changes).await
    }

    async fn start_move(
        &self,
        queue: &Arc<QueueFacts>,
        task: NewMoveTask,
    ) -> Result<String, Fault> {
        self.shared.start_move(queue, task).await
    }

    async fn cancel_move(&self, queue: &Arc<QueueFacts>, handle: &str) -> Result<u64, Fault> {
        self.shared.cancel_move(queue, handle).await
    }

    async fn move_tasks(
        &self,
        queue: &Arc<QueueFacts>,
        max: usize,
    ) -> Result<Vec<MoveTask>, Fault> {
        self.shared.list_move_tasks(queue, max).await
    }
}

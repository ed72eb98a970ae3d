//! A Cassandra that is connected.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use quelea_cassandra_store::{
    CassandraIdentity, CassandraQueues, CassandraSettings, ConnectError, PeerSocket as _,
};
use quelea_sqs_protocol::{AccountNames, Fault, UserRecord};
use tokio::runtime::Handle;

use crate::cluster_thread::ClusterThread;
use crate::counters::ClusterCounters;
use crate::error::FrontError;
use crate::peer_socket::{CmqSocket, PeerSettings};

/// How long to wait until Cassandra knows that this front-end owns no FIFO queue any more, and the others that it ends.
const LEAVING: Duration = Duration::from_secs(3);

/// The part of that which is for letting go of FIFO queues.
const RELEASING: Duration = Duration::from_millis(1_500);

/// A connected Cassandra. It is stopped by [`Cluster::stop`], after the servers that use it.
#[derive(Debug)]
pub struct Cluster {
    thread: ClusterThread,
    store: Store,
}

/// What is there.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) queues: CassandraQueues,
    pub(crate) identity: CassandraIdentity,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects, and makes the tables that are missing. `default_account` is what virtual host `/` is.
    ///
    /// # Errors
    /// [`FrontError`], which says what is wrong with the settings, the nodes or the rights.
    pub async fn connect(
        settings: CassandraSettings,
        peers: PeerSettings,
        default_account: &str,
    ) -> Result<Self, FrontError> {
        let thread = ClusterThread::start().map_err(FrontError::Thread)?;
        let connected = thread.handle().spawn(async move {
            let queues = CassandraQueues::connect(&settings).await?;
            join(&queues, &peers, &settings.nodes).await?;
            Ok::<_, FrontError>(queues)
        });
        let connected = connected.await.map_err(|_| ConnectError::Unreachable {
            user: "this front-end".to_owned(),
            nodes: "cassandra.nodes".to_owned(),
            reason: "connecting was broken off".to_owned(),
        });
        let queues = connected.map_err(FrontError::from)??;
        let identity = CassandraIdentity::new(&queues, AccountNames::new(default_account));
        Ok(Self { thread, store: Store { queues, identity } })
    }

    /// Returns the queues.
    #[must_use]
    pub const fn queues(&self) -> &CassandraQueues {
        &self.store.queues
    }

    /// Returns the identity store, which knows who may call.
    #[must_use]
    pub const fn identity(&self) -> &CassandraIdentity {
        &self.store.identity
    }

    /// Makes the default account, and its administrator if there is no user at all yet. `hash` makes the hash of the password,
    /// which takes a while.
    ///
    /// # Errors
    /// [`Fault::Unavailable`]: it can be tried again.
    pub async fn bootstrap(
        &self,
        user: &str,
        hash: impl AsyncFnOnce() -> Result<String, Fault>,
    ) -> Result<(), Fault> {
        let identity = self.identity();
        // Another front-end that does so at once makes the same user; one that exists stays as it is.
        if identity.is_new().await? {
            let password_hash = hash().await?.into();
            let tags = vec!["administrator".to_owned()];
            let user = UserRecord { name: Arc::from(user), password_hash, tags };
            return identity.bootstrap(user).await;
        }
        identity.put_default_account().await
    }

    /// Returns a collector of what it counts, for `/metrics`.
    #[must_use]
    pub fn collector(&self) -> Arc<dyn Collector> {
        Arc::new(ClusterCounters(self.store.queues.clone()))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.thread.handle().clone()
    }

    pub(crate) const fn thread(&self) -> &ClusterThread {
        &self.thread
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// Lets go of it, after the other front-ends were notified. Receives that take messages end first; what else is under way
    /// is broken off: what was confirmed is in Cassandra.
    pub async fn stop(self) {
        let queues = self.store.queues.clone();
        let left = self.thread.handle().spawn(async move {
            let let_go = async {
                queues.settle().await;
                queues.release().await;
            };
            // Of a queue that cannot be read there is nothing to be let go of in time.
            let _ = tokio::time::timeout(RELEASING, let_go).await;
            let _ = queues.leave().await;
        });
        // If it does not come to this, they notice it by themselves.
        let _ = tokio::time::timeout(LEAVING, left).await;
    }
}

/// Lets a front-end speak with the others.
async fn join(
    queues: &CassandraQueues,
    peers: &PeerSettings,
    nodes: &[String],
) -> Result<(), FrontError> {
    if peers.listen.is_empty() {
        return Ok(());
    }
    let key = queues.cluster_key().await;
    let key = key.map_err(|fault| ConnectError::ClusterKey(fault.to_string()))?;
    let socket = CmqSocket::bind(peers, nodes, key);
    let socket =
        socket.map_err(|error| FrontError::Peers { address: peers.listen.clone(), error })?;
    tracing::info!(address = %socket.address(), "other front-ends are heard");
    queues.join(Arc::new(socket)).await;
    Ok(())
}

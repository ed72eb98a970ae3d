//! A node beside Cassandra: whose users it takes, whom it asks for names, and what the management API changes.

use std::sync::Arc;

use quelea_broker::NameQuestion;
use quelea_broker::access::AccessRecords;
use quelea_cassandra_store::CassandraIdentity;
use quelea_node::{CoreHandle, OtherStore, hash_password};
use quelea_sqs_protocol::{Fault, UserRecord};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::mirror::{MirroredIdentity, records_of};
use crate::name_locks::NameLocks;
use crate::name_questions::NameQuestions;
use crate::retry::retried;
use crate::takeover::take_over;

/// The first administrator, where neither Cassandra nor the log has any user.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
}

/// What a node that starts beside Cassandra and Cassandra's side of it have in common.
pub struct NodeChannels {
    questions: UnboundedReceiver<NameQuestion>,
    /// What the node was given of users.
    adopted: oneshot::Receiver<AccessRecords>,
}

/// Holds the names of queues that are being made at a node.
#[derive(Clone, Default)]
pub struct HeldNames(pub(crate) NameLocks);

impl Cluster {
    /// Returns what a node is started with that has users, permissions and keys in Cassandra. If
    /// Cassandra has no user yet it gets those of the node's log, or else the first administrator.
    #[must_use]
    pub fn node_parts(&self, bootstrap: Bootstrap) -> (OtherStore, NodeChannels) {
        let (name_questions, questions) = mpsc::unbounded_channel();
        let (adopting, adopted) = oneshot::channel();
        let (identity, runtime) = (self.identity().clone(), self.handle());
        let adopt = move |of_log: AccessRecords| {
            let records =
                runtime.block_on(retried(|| first_records(&identity, &bootstrap, &of_log)));
            let records = records.map_err(|fault: Fault| fault.to_string())?;
            // The node's starter waits for it, if it is still there.
            let _ = adopting.send(records.clone());
            Ok(records)
        };
        let other = OtherStore { adopt: Box::new(adopt), name_questions };
        (other, NodeChannels { questions, adopted })
    }

    /// Serves a node that has started: its users follow Cassandra's from now on, and its questions
    /// are answered. Returns what changes users, and what holds names of queues.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] if the node has not asked for its users.
    pub async fn serve_beside_node(
        &self,
        core: &CoreHandle,
        channels: NodeChannels,
    ) -> Result<(MirroredIdentity, HeldNames), Fault> {
        let NodeChannels { questions, adopted } = channels;
        let shown = adopted.await;
        let shown = shown.map_err(|_| Fault::Unavailable("the broker has no users".to_owned()))?;
        let (identity, held) = (self.identity().clone(), HeldNames::default());
        let mirror = MirroredIdentity::new(identity, core.clone(), shown);
        let asking = NameQuestions {
            queues: self.store().queues.clone(),
            core: core.clone(),
            names: self.identity().names().clone(),
            locks: held.0.clone(),
        };
        self.handle().spawn(mirror.clone().follow());
        self.handle().spawn(asking.serve(questions));
        Ok((mirror, held))
    }
}

/// Returns the users of Cassandra. If Cassandra has none, it gets those of the log, or else the
/// first administrator.
async fn first_records(
    identity: &CassandraIdentity,
    bootstrap: &Bootstrap,
    of_log: &AccessRecords,
) -> Result<AccessRecords, Fault> {
    // One that was broken off is done to its end: it can be repeated.
    if identity.is_new().await? || identity.is_being_taken_over().await? {
        if of_log.users.is_empty() {
            make_administrator(identity, bootstrap).await?;
        } else {
            identity.set_being_taken_over(true).await?;
            let taken = take_over(identity, of_log, false).await?;
            identity.set_being_taken_over(false).await?;
            tracing::info!(?taken, "Cassandra had no users, and has those of the log now");
        }
    }
    identity.put_default_account().await?;
    records_of(identity).await
}

async fn make_administrator(
    identity: &CassandraIdentity,
    bootstrap: &Bootstrap,
) -> Result<(), Fault> {
    let hash = hash_password(bootstrap.password.as_bytes());
    let hash = hash.map_err(|error| Fault::Unavailable(error.to_string()))?;
    let user = UserRecord {
        name: Arc::from(bootstrap.user.as_str()),
        password_hash: hash.into(),
        tags: vec!["administrator".to_owned()],
    };
    identity.bootstrap(user).await
}

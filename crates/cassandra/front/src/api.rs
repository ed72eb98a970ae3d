//! What a front-end knows of its cluster and of replicated queues, as JSON. Whoever mounts [`routes`] decides who may call
//! them.

mod refusal;
mod shapes;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use quelea_cassandra_store::CassandraQueues;
use quelea_cassandra_store::limits::QUEUES_SHOWN_MAX;
use quelea_openapi::{Limit, Operation, QueryFields, Route, with_state};
use quelea_sqs_protocol::{Fault, QueueFacts, QueueRef, Queues as _};
use schemars::JsonSchema;
use serde::Deserialize;

use self::refusal::Refusal;
use self::shapes::{ClusterShown, QueueShown};
use crate::cluster::Cluster;

/// Queues that are looked at, at the same time, for one answer.
const LOOKED_AT_ONCE: usize = 8;

/// What is asked; `None`: there is no cluster here.
type Shown = Option<ShownCluster>;

/// A cluster that is shown.
#[derive(Clone)]
struct ShownCluster {
    queues: CassandraQueues,
    keyspace: Arc<str>,
}

/// Returns the routes of `/cluster` and `/replicated`. Without a cluster all answer that there is
/// none.
#[must_use]
pub fn routes(cluster: Option<&Cluster>, keyspace: &str) -> Vec<Route> {
    let shown = cluster.map(|cluster| ShownCluster {
        queues: cluster.queues().clone(),
        keyspace: keyspace.into(),
    });
    let cluster = Operation::new(
        "Returns the front-ends and the nodes of Cassandra, as this front-end knows them, and what it asked of them",
    )
    .answers::<ClusterShown>(200)
    .refuses(&[404]);
    let list =
        Operation::new("Returns an account's replicated queues by name, with what waits in them")
            .query::<QueuesQuery>()
            .answers::<Vec<QueueShown>>(200)
            .refuses(&[404, 503]);
    let one = Operation::new("Returns a replicated queue, with what waits in it")
        .answers::<QueueShown>(200)
        .refuses(&[404, 503]);
    let routes = [
        Route::at("/cluster").get(show_cluster, cluster),
        Route::at("/replicated/{account}").get(list_queues, list),
        Route::at("/replicated/{account}/{queue}").get(show_queue, one),
    ];
    with_state(routes, &shown)
}

/// `?prefix=TEXT&after=NAME&limit=NUMBER`. The list is sorted, so a client that goes on after the last one that it got misses
/// none that was there all the while.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueuesQuery {
    /// Only those whose names begin so.
    #[serde(default)]
    prefix: String,
    /// Only what comes after the queue of this name.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit<QUEUES_SHOWN_MAX>,
}

/// `GET /cluster`.
async fn show_cluster(State(shown): State<Shown>) -> Result<Json<ClusterShown>, Refusal> {
    let ShownCluster { queues, keyspace } = shown.ok_or(Refusal::NoCluster)?;
    Ok(Json(ClusterShown::of(&queues, &keyspace)))
}

/// `GET /replicated/{account}`.
async fn list_queues(
    State(shown): State<Shown>,
    Path(account): Path<String>,
    QueryFields(asked): QueryFields<QueuesQuery>,
) -> Result<Json<Vec<QueueShown>>, Refusal> {
    let ShownCluster { queues, .. } = shown.ok_or(Refusal::NoCluster)?;
    let account: Arc<str> = account.into();
    let QueuesQuery { prefix, after, limit: Limit(limit) } = asked;
    let names = queues.list(&account, &prefix, after.as_deref(), limit).await?;
    let looks = names.into_iter().map(|name| {
        let queue = QueueRef { account: account.clone(), name: name.into() };
        queue_shown(queues.clone(), queue)
    });
    // Those that went away since the names were read are left out.
    let found: Vec<Option<QueueShown>> =
        stream::iter(looks).buffered(LOOKED_AT_ONCE).try_collect().await?;
    Ok(Json(found.into_iter().flatten().collect()))
}

/// `GET /replicated/{account}/{queue}`.
async fn show_queue(
    State(shown): State<Shown>,
    Path((account, name)): Path<(String, String)>,
) -> Result<Json<QueueShown>, Refusal> {
    let ShownCluster { queues, .. } = shown.ok_or(Refusal::NoCluster)?;
    let queue = QueueRef { account: account.as_str().into(), name: name.as_str().into() };
    let found = queue_shown(queues, queue).await?;
    found.map(Json).ok_or(Refusal::NoQueue { account, name })
}

/// Returns what there is to be shown of a queue; `None`: it is not there.
async fn queue_shown(
    queues: CassandraQueues,
    queue: QueueRef,
) -> Result<Option<QueueShown>, Fault> {
    let Some(facts) = queues.facts(&queue).await? else { return Ok(None) };
    match counted(&queues, &facts).await {
        Ok(shown) => Ok(Some(shown)),
        Err(Fault::NoSuchQueue) => Ok(None),
        Err(fault) => Err(fault),
    }
}

async fn counted(queues: &CassandraQueues, facts: &Arc<QueueFacts>) -> Result<QueueShown, Fault> {
    let backlog = queues.backlog(facts).await?;
    let hint = queues.auto_hint(facts).await?;
    Ok(QueueShown::of(facts, backlog, queues.passed(facts), hint))
}

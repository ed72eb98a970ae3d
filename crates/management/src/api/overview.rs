//! `/api/overview`.

use std::sync::Arc;

use axum::Json;
use quelea_broker::ListKey;
use quelea_broker::report::Overview;
use quelea_node::Core;
use serde_json::{Value, json};

use super::rates::{self, RateQuery, Shown, with_rates};
use crate::answer::JsonAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::history::Subject;
use crate::list_query::Columns;
use crate::recent::{CHURN_RATES, CONFIRM_STATS};
use crate::state::{ApiState, Listener};

/// The RabbitMQ that this API is like: tools compare it and refuse what they take for too old. The
/// product's own version stands beside it.
pub(crate) const RABBITMQ_LEVEL: &str = "3.13.0";

/// Some tools of RabbitMQ's read no overview without a version of Erlang.
const NO_ERLANG: &str = "none";

/// `GET /api/overview`: of the whole broker for who sees all of it, else of the virtual hosts that the user sees.
pub(crate) async fn overview(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let query = RateQuery::parse(&call.query()?)?;
    let (api, user, []) = call.parts();
    if user.is_monitoring() {
        let overview = fetch(&api).await?;
        let confirmed = api.on_core(|core| core.counters().confirmed).await?;
        let mut shown = totals(&api, &overview);
        shown["node"] = json!(&*api.node);
        shown["unreadable_last"] = json!(overview.unreadable_last);
        shown["publishers_blocked"] = json!(overview.publishers_blocked);
        shown["listeners"] = sockets(&api);
        shown["contexts"] = contexts(&api);
        rates::add(&api, &mut shown, Shown::Totals, &overview.counters, query);
        add_churn(&api, &mut shown, &overview, confirmed);
        return Ok(Json(columns.shown(shown)));
    }
    let vhosts = user.vhosts();
    let names = vhosts.to_vec();
    let ids = move |core: &mut Core| core.broker.vhost_ids(names.iter().map(|name| &**name));
    let subjects: Vec<_> = api.on_core(ids).await?.into_iter().map(Subject::Vhost).collect();
    let overview = fetch_of(&api, vhosts.to_vec()).await?;
    let mut shown = totals(&api, &overview);
    rates::add(&api, &mut shown, Shown::Sum(&subjects), &overview.counters, query);
    Ok(Json(columns.shown(shown)))
}

/// What came and went of connections, channels and queues, and what publishers know to be accepted: of the whole broker.
fn add_churn(api: &ApiState, shown: &mut Value, overview: &Overview, confirmed: u64) {
    let recent = api.recent();
    let churn = with_rates(CHURN_RATES, &overview.churn, recent.churn.rates(&()));
    let confirms = with_rates(CONFIRM_STATS, &confirmed, recent.confirms.rates(&()));
    drop(recent);
    shown["churn_rates"] = churn.into();
    confirms.into_iter().for_each(|(name, value)| shown["message_stats"][name] = value);
}

fn totals(api: &ApiState, overview: &Overview) -> Value {
    let exchange_types = ["direct", "fanout", "headers", "topic"];
    let exchange_types = exchange_types.map(|name| json!({ "name": name, "enabled": true }));
    json!({
        "product_name": "Quelea",
        "product_version": env!("CARGO_PKG_VERSION"),
        "management_version": env!("CARGO_PKG_VERSION"),
        "rabbitmq_version": RABBITMQ_LEVEL,
        "erlang_version": NO_ERLANG,
        "erlang_full_version": NO_ERLANG,
        "statistics_db_event_queue": 0,
        "disable_stats": false,
        "cluster_name": &*api.node,
        "rates_mode": "basic",
        "queue_classes": &*api.queue_classes,
        "exchange_types": exchange_types,
        "object_totals": {
            "channels": overview.channels,
            "connections": overview.connections,
            "consumers": overview.consumers,
            "exchanges": overview.exchanges,
            "queues": overview.queues,
        },
        "queue_totals": {
            "messages": overview.messages_ready + overview.messages_unacknowledged,
            "messages_ready": overview.messages_ready,
            "messages_unacknowledged": overview.messages_unacknowledged,
            "messages_unreadable": overview.messages_unreadable,
        },
    })
}

/// Returns where the broker listens.
pub(super) fn sockets(api: &ApiState) -> Value {
    let one = |listener: &Listener| {
        json!({
            "node": &*api.node,
            "protocol": listener.protocol,
            "ip_address": listener.address.ip(),
            "port": listener.address.port(),
        })
    };
    api.listeners.iter().map(one).collect()
}

/// Returns where this API is.
pub(super) fn contexts(api: &ApiState) -> Value {
    let own = api.listeners.iter().filter(|listener| listener.protocol == "http");
    let one = |listener: &Listener| {
        json!({
            "node": &*api.node,
            "description": "Quelea Management",
            "path": "/",
            "ip": listener.address.ip(),
            "port": listener.address.port(),
        })
    };
    own.map(one).collect()
}

/// Returns the totals. Where there are very many queues the core is asked several times, and serves
/// others in between.
pub(crate) async fn fetch(api: &ApiState) -> Result<Overview, ApiError> {
    let begun = api.on_core(|core| core.broker.begin_overview()).await?;
    with_queues(api, begun).await
}

/// Returns the totals of these virtual hosts.
async fn fetch_of(api: &ApiState, vhosts: Vec<Arc<str>>) -> Result<Overview, ApiError> {
    let begin =
        move |core: &mut Core| core.broker.begin_overview_of(vhosts.iter().map(|vhost| &**vhost));
    let begun = api.on_core(begin).await?;
    with_queues(api, begun).await
}

async fn with_queues(
    api: &ApiState,
    (mut overview, keys): (Overview, Vec<ListKey>),
) -> Result<Overview, ApiError> {
    let (keys, mut from) = (Arc::new(keys), 0);
    while from < keys.len() {
        let keys = Arc::clone(&keys);
        let add = move |core: &mut Core| {
            let looked_at = core.broker.add_to_overview(&mut overview, &keys[from..]);
            (overview, looked_at)
        };
        let (so_far, looked_at) = api.on_core(add).await?;
        overview = so_far;
        from += looked_at;
    }
    Ok(overview)
}

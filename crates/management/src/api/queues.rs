//! `/api/queues`.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::DeclareQueue;
use quelea_broker::report::QueueReport;
use quelea_model::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connections::consumer_details;
use super::rates::{self, RateQuery, Shown};
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{arguments_field, flag_field};
use crate::history::Subject;
use crate::json::from_table;
use crate::limits::DETAILS_MAX;
use crate::list_query::Columns;
use crate::listed::Listed;
use crate::operation::{done_as, existed, until_checked, until_free};
use crate::state::ApiState;
use quelea_net::unix_ms;

/// `GET /api/queues/{vhost}/{name}`, with `lengths_age` and `lengths_incr`, `msg_rates_age` and `msg_rates_incr` perhaps.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let query = RateQuery::parse(&call.query()?)?;
    let (api, user, [vhost, name]) = call.parts();
    user.require_vhost(&vhost)?;
    let queue = fetch_one(&api, vhost.clone(), name.clone()).await?.ok_or(ApiError::NotFound)?;
    let mut shown = shown(&api, &queue, query);
    let consumers = api.on_core(move |core| {
        let id = core.broker.queue_id(&vhost, &name)?;
        Some(core.broker.consumers_of_queue(id, DETAILS_MAX))
    });
    let keys = consumers.await?.unwrap_or_default();
    shown["consumer_details"] = consumer_details(&api, keys).await?;
    Ok(Json(columns.shown(shown)))
}

/// `PUT /api/queues/{vhost}/{name}` with `durable` (default true), `auto_delete` and `arguments`.
/// 201 if it is new, 204 if it was there.
pub(crate) async fn declare(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    let known = fetch_one(&api, vhost.clone(), name.clone()).await?.is_some();
    let arguments = arguments_field(&body)?;
    let request = DeclareQueue {
        name,
        durable: flag_field(&body, "durable", true)?,
        auto_delete: flag_field(&body, "auto_delete", false)?,
        arguments,
        ..DeclareQueue::default()
    };
    let (within, wanted) = (vhost.clone(), request.name.clone());
    until_free(&api, move |broker| broker.is_queue_being_deleted_in(&within, &wanted)).await?;
    done_as_checked(&api, &user, vhost, request).await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// The query of a deletion.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct DeleteQuery {
    #[serde(rename = "if-empty", default)]
    if_empty: bool,
    #[serde(rename = "if-unused", default)]
    if_unused: bool,
}

/// `DELETE /api/queues/{vhost}/{name}`, with `?if-empty=true` and `?if-unused=true`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let query: DeleteQuery = call.query()?;
    let (api, user, [vhost, name]) = call.parts();
    existed(fetch_one(&api, vhost.clone(), name.clone()).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker
            .delete_queue(now, channel, &name, query.if_unused, query.if_empty)
            .map(|deleted| deleted.ticket)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/queues/{vhost}/{name}/contents`.
pub(crate) async fn purge(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name]) = call.parts();
    existed(fetch_one(&api, vhost.clone(), name.clone()).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.purge_queue(now, channel, &name).map(|purged| purged.ticket)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Declares a queue when it is known that no other store has one of its name.
async fn done_as_checked(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
    request: DeclareQueue,
) -> Result<(), ApiError> {
    let request = Arc::new(request);
    until_checked(api, || {
        let declared = Arc::clone(&request);
        done_as(api, user, vhost.clone(), move |broker, now, channel| {
            broker.check_queue_name(channel, &declared)?;
            broker.declare_queue(now, channel, &declared).map(|declared| declared.ticket)
        })
    })
    .await
}

async fn fetch_one(
    api: &ApiState,
    vhost: String,
    name: String,
) -> Result<Option<QueueReport>, ApiError> {
    api.on_core(move |core| core.broker.queue(&vhost, &name)).await
}

impl Listed for QueueReport {
    const HAS_NAMES: bool = true;

    fn vhost(&self) -> &str {
        self.vhost.as_str()
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        let waiting = self.unsettled();
        let name = match column {
            [name] => name,
            [stats, details, rate] if stats == "message_stats" && rate == "rate" => {
                return rates::current(api, &subject(self), details.strip_suffix("_details")?);
            }
            _ => return None,
        };
        Some(match &**name {
            "name" => json!(self.name.as_str()),
            "vhost" => json!(self.vhost.as_str()),
            "messages" => json!(self.messages_ready + waiting + self.messages_delayed),
            "messages_ready" => json!(self.messages_ready),
            "messages_unacknowledged" => json!(waiting),
            "message_bytes_ready" => json!(self.message_bytes_ready),
            "consumers" => json!(self.consumers),
            "memory" => json!(self.memory_bytes),
            _ => return None,
        })
    }

    fn to_json(&self, api: &ApiState) -> Value {
        shown(api, self, RateQuery::default())
    }
}

fn age_s(at: Timestamp) -> u64 {
    unix_ms().saturating_sub(at.as_millis()) / 1_000
}

fn shown(api: &ApiState, queue: &QueueReport, query: RateQuery) -> Value {
    let waiting = queue.unsettled();
    let mut shown = json!({
        "name": queue.name.as_str(),
        "vhost": queue.vhost.as_str(),
        "type": queue.kind,
        "node": &*api.node,
        "durable": queue.durable,
        "exclusive": queue.exclusive,
        "auto_delete": queue.auto_delete,
        "arguments": from_table(&queue.arguments),
        "policy": null,
        "state": "running",
        "messages": queue.messages_ready + waiting + queue.messages_delayed,
        "messages_ready": queue.messages_ready,
        "messages_unacknowledged": waiting,
        "messages_delayed": queue.messages_delayed,
        "messages_unreadable": queue.messages_unreadable,
        "message_bytes_ready": queue.message_bytes_ready,
        "oldest_message_age_s": queue.oldest_ready_at.map(age_s),
        "consumers": queue.consumers,
        "consumers_with_credit": queue.consumers_with_credit,
        "single_active_consumer_tag": queue.single_active_consumer_tag.as_deref(),
        "memory": queue.memory_bytes,
        "resident_bytes": queue.resident_bytes,
    });
    rates::add(api, &mut shown, Shown::Of(&subject(queue)), &queue.counters, query);
    shown
}

fn subject(queue: &QueueReport) -> Subject {
    Subject::Queue(queue.id)
}

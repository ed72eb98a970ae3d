//! Messages by HTTP: `queues/…/get` and `exchanges/…/publish`. For looking and for tests, not for traffic: each call
//! opens a connection inside the broker, with the permissions of its user.

use axum::Json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use quelea_broker::{DeclareQueue, Publish};
use serde_json::{Map, Value, json};

use super::exchanges::name_of;
use crate::answer::JsonAnswer;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{number_field, required_field, short_routing_key, text_field};
use crate::getter::{AckMode, Getter, Got};
use crate::limits::{GET_BYTES_MAX, GET_MESSAGES_MAX};
use crate::operation::{connection_of, vhost_exists, with_channel};
use crate::payload::Payload;
use crate::properties;
use crate::state::ApiState;

/// A flag word without flags.
const NO_PROPERTIES: &[u8] = &[0, 0];

/// What `queues/…/get` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GetRequest {
    count: usize,
    mode: AckMode,
    is_base64: bool,
    truncate: Option<usize>,
}

impl GetRequest {
    fn parse(body: &Value) -> Result<Self, ApiError> {
        let count =
            number_field(body, "count")?.ok_or_else(|| ApiError::bad("count is missing"))?;
        if count > GET_MESSAGES_MAX {
            let reason = format!("count is at most {GET_MESSAGES_MAX}, it is {count}");
            return Err(ApiError::BadRequest(reason));
        }
        let mode = match required_field(body, "ackmode")? {
            "ack_requeue_true" | "reject_requeue_true" => AckMode::Requeue,
            "ack_requeue_false" => AckMode::Acknowledge,
            "reject_requeue_false" => AckMode::Reject,
            other => {
                return Err(ApiError::BadRequest(format!(
                    "ackmode must be ack_requeue_true, ack_requeue_false, reject_requeue_true or \
                     reject_requeue_false, it is {other:?}"
                )));
            }
        };
        let is_base64 = match required_field(body, "encoding")? {
            "auto" => false,
            "base64" => true,
            other => {
                let reason = format!("encoding must be auto or base64, it is {other:?}");
                return Err(ApiError::BadRequest(reason));
            }
        };
        Ok(Self { count, mode, is_base64, truncate: number_field(body, "truncate")? })
    }

    fn to_json(self, got: &Got) -> Value {
        let whole = got.message.body();
        let payload = Payload::of(whole, self.truncate, self.is_base64);
        json!({
            "payload": payload.text,
            "payload_bytes": whole.len(),
            "payload_encoding": payload.encoding,
            "redelivered": got.redelivered,
            "exchange": got.message.exchange(),
            "routing_key": got.message.routing_key(),
            "message_count": got.message_count,
            "properties": properties::to_json(got.message.properties()),
        })
    }
}

/// `POST /api/queues/{vhost}/{name}/get` with `count`, `ackmode`, `encoding` and perhaps `truncate`. Fewer messages than
/// there are come where they would be more than 8 MiB together, and of a larger one the beginning.
pub(crate) async fn get(call: Call) -> JsonAnswer {
    let (api, user, [vhost, queue], body) = call.parts_and_body().await?;
    let wanted = GetRequest::parse(&body)?;
    let turn = api.gets.acquire().await;
    let _turn = turn.map_err(|_| ApiError::Stopping)?;
    let mut getter = Getter::open(&api, &user, vhost).await?;
    let mut all = Vec::new();
    let mut bytes = 0;
    while all.len() < wanted.count && bytes < GET_BYTES_MAX {
        let Some(got) = getter.get(&queue).await? else { break };
        bytes += got.message.body().len();
        all.push(got);
    }
    if let Some(last) = all.last() {
        getter.settle(last.delivery_tag, wanted.mode).await?;
    }
    Ok(Json(all.iter().map(|got| wanted.to_json(got)).collect()))
}

/// Sends a message through a queue that is there for it alone, and checks that it comes out.
pub(super) async fn go_through(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
) -> Result<(), ApiError> {
    const BODY: &[u8] = b"alive";
    let mut getter = Getter::open(api, user, vhost).await?;
    let channel = getter.channel();
    let begun = api.on_core(move |core| {
        let now = core.now();
        let request = DeclareQueue { exclusive: true, ..DeclareQueue::default() };
        let declared = core.broker.declare_queue(now, channel, &request)?;
        let publish = Publish {
            exchange: "",
            routing_key: declared.name.as_str(),
            properties: NO_PROPERTIES,
            body: Bytes::from_static(BODY),
            mandatory: true,
            confirm: true,
        };
        let published = core.broker.publish(now, channel, publish)?;
        Ok::<_, ApiError>((declared.name.to_string(), published.ticket))
    });
    let (queue, ticket) = begun.await??;
    api.core.reached(ticket).await.map_err(|_| ApiError::Stopping)?;
    match getter.get(&queue).await? {
        Some(got) if got.message.body() == BODY => Ok(()),
        _ => Err(ApiError::Unavailable("a message did not come through its queue".to_owned())),
    }
}

/// `POST /api/exchanges/{vhost}/{name}/publish` with `properties`, `routing_key`, `payload` and `payload_encoding`:
/// `{"routed": …}` when it is in its queues, durably where they are durable and it is persistent.
pub(crate) async fn publish(call: Call) -> JsonAnswer {
    let (api, user, [vhost, exchange], body) = call.parts_and_body().await?;
    let exchange = name_of(&exchange).to_owned();
    let payload = required_field(&body, "payload")?;
    let content = match text_field(&body, "payload_encoding")?.unwrap_or("string") {
        "string" => Bytes::copy_from_slice(payload.as_bytes()),
        "base64" => STANDARD
            .decode(payload)
            .map_err(|error| ApiError::bad(format!("payload is not base64: {error}")))?
            .into(),
        other => {
            let reason = format!("payload_encoding must be string or base64, it is {other:?}");
            return Err(ApiError::BadRequest(reason));
        }
    };
    let none = Map::new();
    let properties = match &body["properties"] {
        Value::Null => &none,
        Value::Object(object) => object,
        // RabbitMQ's tools send a list where there are none.
        Value::Array(list) if list.is_empty() => &none,
        _ => return Err(ApiError::bad("properties must be an object")),
    };
    let properties = properties::from_json(properties).map_err(ApiError::bad)?;
    let routing_key = short_routing_key(required_field(&body, "routing_key")?)?;
    if !vhost_exists(&api, &vhost).await? {
        return Err(ApiError::NotFound);
    }
    let info = connection_of(&user, vhost);
    let promised = api.on_core(move |core| {
        let now = core.now();
        if !core.broker.accepts_publish(content.len()) {
            let reason = core.broker.publishers_blocked().unwrap_or("the log cannot keep up");
            return Err(ApiError::Unavailable(format!("publishers are blocked: {reason}")));
        }
        with_channel(&mut core.broker, now, info, |broker, channel| {
            let publish = Publish {
                exchange: &exchange,
                routing_key: &routing_key,
                properties: &properties,
                body: content,
                mandatory: true,
                confirm: true,
            };
            broker.publish(now, channel, publish)
        })
    });
    let published = promised.await??;
    api.core.reached(published.ticket).await.map_err(|_| ApiError::Stopping)?;
    if published.rejected {
        return Err(ApiError::bad("a queue is full and rejects what is published"));
    }
    Ok(Json(json!({ "routed": published.routed })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_checked_field_by_field() {
        let good = json!({"count": "5", "ackmode": "ack_requeue_false", "encoding": "auto"});
        let wanted = GetRequest::parse(&good).unwrap();
        assert_eq!((wanted.count, wanted.mode), (5, AckMode::Acknowledge));
        let mut float = good.clone();
        float["count"] = json!(7.0);
        assert_eq!(GetRequest::parse(&float).unwrap().count, 7);
        for (field, value, problem) in [
            ("count", json!(null), "count is missing"),
            ("count", json!(1.5), "count must be a whole number of 0 or more, it is 1.5"),
            ("count", json!(-1), "count must be a whole number of 0 or more, it is -1"),
            ("count", json!(10_001), "count is at most 10000, it is 10001"),
            ("ackmode", json!("maybe"), "ackmode must be ack_requeue_true"),
            ("encoding", json!("utf-16"), "encoding must be auto or base64, it is \"utf-16\""),
            ("truncate", json!([]), "truncate must be a whole number of 0 or more, it is []"),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            let Err(ApiError::BadRequest(reason)) = GetRequest::parse(&bad) else {
                panic!("{bad} is taken")
            };
            assert!(reason.starts_with(problem), "{reason}");
        }
    }
}

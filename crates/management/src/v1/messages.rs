//! `/quelea/v1/queues/{vhost}/{name}/messages`: what is ready in a queue, looked at and left as it is.

use axum::Json;
use quelea_broker::{Browse, BrowsedMessage};
use quelea_openapi::{Limit, Operation, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::error::ApiError;
use crate::getter::Getter;
use crate::limits::{GET_BYTES_MAX, GET_MESSAGES_MAX};
use crate::payload::Payload;
use crate::properties;
use crate::state::ApiState;

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let operation = Operation::new(
        "Returns the messages of a queue that come next, in their order. They stay in their places, are not marked as \
         redelivered, and no delivery is counted. Fewer than are asked for come where they would be more than 8 MiB",
    )
    .query::<PeekQuery>()
    .answers::<Vec<PeekedMessage>>(200);
    vec![Route::at("/queues/{vhost}/{name}/messages").get(peek, operation)]
}

/// `?count=NUMBER&truncate=BYTES`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeekQuery {
    /// How many messages at most.
    #[serde(default)]
    count: Limit<GET_MESSAGES_MAX>,
    /// Bytes of each body that are shown.
    truncate: Option<Limit<GET_BYTES_MAX>>,
}

/// A message that is ready in a queue.
#[derive(Serialize, JsonSchema)]
struct PeekedMessage {
    /// The exchange that it was published to.
    exchange: String,
    routing_key: String,
    /// Whether its next delivery will say that it was, or may have been, delivered before.
    redelivered: bool,
    /// Those that it has, as RabbitMQ's API names them.
    properties: Map<String, Value>,
    /// Of the whole body.
    payload_bytes: usize,
    /// `string`, or `base64` if what is shown is not text.
    payload_encoding: &'static str,
    payload: String,
}

async fn peek(call: Call) -> Result<Json<Vec<PeekedMessage>>, ApiError> {
    let PeekQuery { count: Limit(count), truncate } = call.query()?;
    let (api, user, [vhost, queue]) = call.parts();
    let turn = api.gets.acquire().await;
    let _turn = turn.map_err(|_| ApiError::Stopping)?;
    let mut getter = Getter::open(&api, &user, vhost).await?;
    let mut shown = Vec::new();
    let (mut bytes, mut from) = (0, None);
    while shown.len() < count && bytes < GET_BYTES_MAX {
        let messages_max = count - shown.len();
        let wanted = Browse { from, messages_max, body_bytes_max: GET_BYTES_MAX - bytes };
        let page = getter.browse(&queue, wanted).await?;
        for message in &page.messages {
            bytes += message.message.body().len();
            shown.push(PeekedMessage::new(message, truncate));
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(Json(shown))
}

impl PeekedMessage {
    fn new(peeked: &BrowsedMessage, truncate: Option<Limit<GET_BYTES_MAX>>) -> Self {
        let message = &peeked.message;
        let payload = Payload::of(message.body(), truncate.map(|Limit(bytes)| bytes), false);
        let properties = match properties::to_json(message.properties()) {
            Value::Object(properties) => properties,
            _ => Map::new(),
        };
        Self {
            exchange: message.exchange().to_owned(),
            routing_key: message.routing_key().to_owned(),
            redelivered: peeked.redelivered,
            properties,
            payload_bytes: message.body().len(),
            payload_encoding: payload.encoding,
            payload: payload.text,
        }
    }
}

//! `/quelea/v1/replicated/{account}/{queue}/messages`: the oldest messages of a replicated queue, looked at and left as they are.
//! What else is shown of such queues is answered by whoever speaks with Cassandra.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use quelea_openapi::{Limit, Operation, Route};
use quelea_sqs_protocol::{
    Error, ErrorKind, MessageAttribute, PEEKED_BYTES_MAX, PEEKED_MESSAGES_MAX, Peeked,
    PeekedMessage, PeekedState, QueueRef, path_of_queue,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::sqs;
use crate::call::Call;
use crate::error::ApiError;
use crate::limits::{GETS_MAX, PEEK_TIMEOUT_MS};
use crate::payload::Payload;
use crate::state::SharedState;

pub(super) fn routes<S: SharedState>() -> Vec<Route<S>> {
    let operation = Operation::new(
        "Returns the oldest messages of a replicated queue, also those that are delayed or in flight. They stay as they are: \
         it counts as no reception, and nothing is written to Cassandra. It takes the permission to receive. Fewer than are \
         asked for come where they would be more than 8 MiB",
    )
    .query::<PeekQuery>()
    .answers::<ReplicatedLook>(200)
    .refuses(&[404, 503]);
    // Each may have 8 MiB in memory.
    let turns = Arc::new(Semaphore::new(GETS_MAX));
    let peek = move |call: Call<S>| peek(call, Arc::clone(&turns));
    vec![Route::at("/replicated/{account}/{queue}/messages").get(peek, operation)]
}

/// `?count=NUMBER&truncate=BYTES`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeekQuery {
    /// How many messages at most.
    #[serde(default)]
    count: Limit<PEEKED_MESSAGES_MAX>,
    /// Bytes of each body that are shown.
    truncate: Option<Limit<PEEKED_BYTES_MAX>>,
}

/// What a look into a replicated queue has found.
#[derive(Serialize, JsonSchema)]
struct ReplicatedLook {
    /// The oldest first: in a FIFO queue by their sequence numbers, else those that can be received, and then the others as they
    /// become visible.
    messages: Vec<ReplicatedMessage>,
    /// Whether the queue has no others; else the look has ended at a limit, and it may have.
    is_whole: bool,
}

/// A message of a replicated queue.
#[derive(Serialize, JsonSchema)]
struct ReplicatedMessage {
    message_id: String,
    /// Whether it can be received; none if the front-end that owns the FIFO queue does not answer.
    state: Option<State>,
    /// When it can be received if nobody changes it, in ms since 1970; none if it can be, or that is not known.
    visible_at_ms: Option<u64>,
    /// How often it was received, also before it was a dead letter; none if that is not known.
    receive_count: Option<u32>,
    sent_at_ms: u64,
    first_received_at_ms: Option<u64>,
    /// By their names.
    attributes: BTreeMap<String, AttributeShown>,
    sender_id: Option<String>,
    trace_header: Option<String>,
    group_id: Option<String>,
    deduplication_id: Option<String>,
    sequence_number: Option<String>,
    /// The queue that it came from as a dead letter.
    dead_letter_source: Option<String>,
    /// Of the whole body.
    payload_bytes: usize,
    /// `string`, or `base64` if what is shown is not text.
    payload_encoding: &'static str,
    payload: String,
}

/// Whether a message can be received.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedMessageState")]
#[serde(rename_all = "snake_case")]
enum State {
    Visible,
    Delayed,
    InFlight,
}

/// A message attribute.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReplicatedMessageAttribute")]
struct AttributeShown {
    data_type: String,
    /// `string`, or `base64` if it is not text.
    value_encoding: &'static str,
    value: String,
}

async fn peek<S: SharedState>(
    call: Call<S>,
    turns: Arc<Semaphore>,
) -> Result<Json<ReplicatedLook>, ApiError> {
    let PeekQuery { count: Limit(count), truncate } = call.query()?;
    let truncate = truncate.map(|Limit(bytes)| bytes);
    let user_agent = sqs::user_agent(call.headers());
    let (api, user, [account, name]) = call.parts();
    let service = api.sqs_service().ok_or(ApiError::NoSqs)?;
    user.require_vhost(api.vhost_of(&account))?;
    let queue = QueueRef { account: account.into(), name: name.into() };
    let caller = sqs::caller(&user, Arc::clone(&queue.account), user_agent);
    let peek = async {
        let _turn = turns.acquire().await.map_err(|_| ApiError::Stopping)?;
        service.peek(&caller, &queue, count).await.map_err(|error| refusal(error, &queue))
    };
    let peeked = tokio::time::timeout(Duration::from_millis(PEEK_TIMEOUT_MS), peek).await;
    let Peeked { messages, is_whole } = peeked.unwrap_or_else(|_| Err(peek_timed_out()))?;
    let shown = messages.into_iter().map(|one| ReplicatedMessage::new(one, truncate));
    Ok(Json(ReplicatedLook { messages: shown.collect(), is_whole }))
}

/// Returns the error of a peek that took too long. Each question to Cassandra has a deadline of its
/// own, but a peek asks many, and waits for others' before.
fn peek_timed_out() -> ApiError {
    let within = format!("{PEEK_TIMEOUT_MS} ms, with its wait for others");
    ApiError::Unavailable(format!("the look was not done within {within}"))
}

/// Converts the service's error. A queue that is not there is answered as by the paths beside this
/// one.
fn refusal(error: Error, queue: &QueueRef) -> ApiError {
    match error.kind {
        ErrorKind::QueueDoesNotExist => {
            let (account, name) = (queue.account.to_string(), queue.name.to_string());
            ApiError::NoReplicatedQueue { account, name }
        }
        _ => error.into(),
    }
}

impl ReplicatedMessage {
    fn new(one: PeekedMessage, truncate: Option<usize>) -> Self {
        let payload = Payload::of(&one.body, truncate, false);
        let (state, visible_at_ms) = match one.state {
            None => (None, None),
            Some(PeekedState::Visible) => (Some(State::Visible), None),
            Some(PeekedState::Delayed { until_ms }) => (Some(State::Delayed), Some(until_ms)),
            Some(PeekedState::InFlight { until_ms }) => {
                (Some(State::InFlight), Some(until_ms).filter(|until_ms| *until_ms > 0))
            }
        };
        Self {
            message_id: one.message_id,
            state,
            visible_at_ms,
            receive_count: one.receive_count,
            sent_at_ms: one.sent_at_ms,
            first_received_at_ms: one.first_received_at_ms,
            attributes: one.attributes.into_iter().map(attribute).collect(),
            sender_id: one.sender_id,
            trace_header: one.trace_header,
            group_id: one.group_id,
            deduplication_id: one.deduplication_id,
            sequence_number: one.sequence_number,
            dead_letter_source: one.dead_letter_source.as_ref().map(path_of_queue),
            payload_bytes: one.body.len(),
            payload_encoding: payload.encoding,
            payload: payload.text,
        }
    }
}

fn attribute(one: MessageAttribute) -> (String, AttributeShown) {
    let value = Payload::of(&one.value, None, false);
    let shown = AttributeShown {
        data_type: one.data_type,
        value_encoding: value.encoding,
        value: value.text,
    };
    (one.name, shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_shown_with_what_it_waits_for() {
        let source = QueueRef { account: "1".into(), name: "from".into() };
        let mut message = PeekedMessage {
            message_id: "m".to_owned(),
            body: "héllo".into(),
            attributes: vec![MessageAttribute {
                name: "a".to_owned(),
                data_type: "Binary".to_owned(),
                value: vec![255].into(),
            }],
            receive_count: Some(0),
            sent_at_ms: 1,
            first_received_at_ms: None,
            sender_id: None,
            trace_header: None,
            group_id: None,
            deduplication_id: None,
            sequence_number: None,
            dead_letter_source: Some(source),
            state: Some(PeekedState::Delayed { until_ms: 9 }),
        };
        let shown = |message: &PeekedMessage, truncate| {
            serde_json::to_value(ReplicatedMessage::new(message.clone(), truncate)).unwrap()
        };
        let delayed = shown(&message, None);
        assert_eq!((&delayed["state"], &delayed["visible_at_ms"]), (&json!("delayed"), &json!(9)));
        assert_eq!((&delayed["payload"], &delayed["payload_bytes"]), (&json!("héllo"), &json!(6)));
        assert_eq!(delayed["dead_letter_source"], "/1/from");
        let binary = json!({"data_type": "Binary", "value_encoding": "base64", "value": "/w=="});
        assert_eq!(delayed["attributes"]["a"], binary);
        let cut = shown(&message, Some(1));
        assert_eq!((&cut["payload"], &cut["payload_bytes"]), (&json!("h"), &json!(6)));
        message.state = Some(PeekedState::InFlight { until_ms: 0 });
        let leaving = shown(&message, None);
        assert_eq!(
            (&leaving["state"], &leaving["visible_at_ms"]),
            (&json!("in_flight"), &json!(null))
        );
        message.state = None;
        assert_eq!(shown(&message, None)["state"], json!(null));
    }
}

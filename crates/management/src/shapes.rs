//! What requests of RabbitMQ's dialect may hold and what is answered, as the OpenAPI document says it. Handlers read the
//! fields one by one, since RabbitMQ's tools also send numbers and truth values as text, and answers have the fields that
//! RabbitMQ's have.

#![expect(dead_code, reason = "handlers read and write the fields by their names")]

use quelea_openapi::Operation;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::limits::GET_MESSAGES_MAX;
use crate::list_query::{RawColumns, RawListQuery};

/// Describes an operation that answers one object.
pub(crate) fn shows(summary: &'static str) -> Operation {
    Operation::new(summary).answers::<Object>(200)
}

/// Describes an operation that answers one object, or some of its fields.
pub(crate) fn shows_one(summary: &'static str) -> Operation {
    shows(summary).query::<RawColumns>()
}

/// Describes an operation that answers all of a list, which is short.
pub(crate) fn shows_all(summary: &'static str) -> Operation {
    Operation::new(summary).answers::<Vec<Object>>(200)
}

/// Describes an operation that answers a list that may be long.
pub(crate) fn lists(summary: &'static str) -> Operation {
    Operation::new(summary).query::<RawListQuery>().answers::<List>(200)
}

/// Describes an operation that answers 201 if it is new, 204 if it was there.
pub(crate) fn puts(summary: &'static str) -> Operation {
    Operation::new(summary).answers_status(201).answers_status(204)
}

/// Describes an operation that answers 204 when it is done.
pub(crate) fn deletes(summary: &'static str) -> Operation {
    Operation::new(summary).answers_status(204)
}

/// An object with the fields that RabbitMQ's has.
#[derive(JsonSchema)]
pub(crate) struct Object(Map<String, Value>);

/// A list, or a page of it where `page` asks for one.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum List {
    All(Vec<Object>),
    Page {
        /// Before the names were filtered.
        total_count: u64,
        filtered_count: u64,
        item_count: u64,
        page: u64,
        page_size: u64,
        page_count: u64,
        items: Vec<Object>,
    },
}

/// What a health check found, or why it could not look.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Health {
    Found {
        /// `ok` or `failed`.
        status: String,
    },
    Failed {
        /// Why.
        reason: String,
    },
}

#[derive(JsonSchema)]
pub(crate) struct NewQueue {
    /// Whether it outlives the broker; absent: it does.
    durable: Option<bool>,
    auto_delete: Option<bool>,
    /// Such as `x-max-length`.
    arguments: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
pub(crate) struct NewExchange {
    /// Absent: direct.
    #[schemars(rename = "type")]
    kind: Option<ExchangeKind>,
    durable: Option<bool>,
    auto_delete: Option<bool>,
    /// Whether messages come by other exchanges only.
    internal: Option<bool>,
    arguments: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum ExchangeKind {
    Direct,
    Fanout,
    Topic,
    Headers,
}

#[derive(JsonSchema)]
pub(crate) struct NewBinding {
    #[schemars(length(max = 255))]
    routing_key: Option<String>,
    arguments: Option<Map<String, Value>>,
}

/// Which messages are got, and what becomes of them.
#[derive(JsonSchema)]
pub(crate) struct GetMessages {
    #[schemars(range(max = GET_MESSAGES_MAX))]
    count: u64,
    ackmode: AckModeName,
    encoding: Encoding,
    /// Bytes of each payload that are shown at most.
    truncate: Option<u64>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum AckModeName {
    AckRequeueTrue,
    RejectRequeueTrue,
    AckRequeueFalse,
    RejectRequeueFalse,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Encoding {
    Auto,
    Base64,
}

#[derive(JsonSchema)]
pub(crate) struct NewMessage {
    #[schemars(length(max = 255))]
    routing_key: String,
    payload: String,
    payload_encoding: Option<PayloadEncoding>,
    /// Such as `delivery_mode` and `headers`.
    properties: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum PayloadEncoding {
    String,
    Base64,
}

#[derive(JsonSchema)]
pub(crate) struct Published {
    /// Whether it came to a queue.
    routed: bool,
}

#[derive(JsonSchema)]
pub(crate) struct QueueAction {
    action: QueueActionName,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum QueueActionName {
    Sync,
    CancelSync,
}

/// What RabbitMQ's definitions have: `vhosts`, `users`, `permissions`, `queues`, `exchanges`, `bindings` and more.
#[derive(JsonSchema)]
pub(crate) struct DefinitionsDocument(Map<String, Value>);

/// `password`, or `password_hash` with the `hashing_algorithm` that made it.
#[derive(JsonSchema)]
pub(crate) struct NewUser {
    password: Option<String>,
    /// That this API gave, or RabbitMQ.
    password_hash: Option<String>,
    hashing_algorithm: Option<String>,
    tags: Tags,
}

/// Comma-separated text, or a list.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Tags {
    Text(String),
    List(Vec<String>),
}

#[derive(JsonSchema)]
pub(crate) struct UserNames {
    users: Vec<String>,
}

/// Patterns of names.
#[derive(JsonSchema)]
pub(crate) struct NewPermissions {
    configure: String,
    write: String,
    read: String,
}

/// Patterns of routing keys.
#[derive(JsonSchema)]
pub(crate) struct NewTopicPermissions {
    /// Empty: all topic exchanges.
    exchange: String,
    write: String,
    read: String,
}

#[derive(JsonSchema)]
pub(crate) struct TopicPermissionsOf {
    /// Absent: those of all exchanges.
    exchange: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct TakeOver {
    /// Whether what is there already is replaced.
    replace: Option<bool>,
}

//! Quelea's own resources below `/quelea/v1`, and the OpenAPI document of them. What they take and answer are types of
//! their own, from which the document is made. Errors are those of the rest of the API.

mod audit;
mod moves;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use quelea_openapi::{Document, Info, Route, router as router_of};
use schemars::JsonSchema;

use crate::state::ApiState;

/// Where it all stands.
const PREFIX: &str = "/quelea/v1";

/// What any request may be refused with.
const REFUSALS: &[(u16, &str)] = &[
    (400, "A parameter, or the body, makes no sense; the reason names the field and its value"),
    (401, "No user, or a wrong password"),
    (403, "The user's tags or permissions do not allow this, or a page of another origin asks"),
    (404, "There is no such object"),
    (409, "The state of the object does not allow this"),
    (413, "The body is larger than the limit"),
    (415, "The body is not JSON, or does not say so"),
    (421, "The host that was asked for is not one of http.hosts"),
    (422, "The body is JSON of another shape"),
    (429, "The address sends more than http.requests_per_s_max"),
    (503, "The broker is stopping or busy; trying again may help"),
];

const DESCRIPTION: &str = "RabbitMQ's management API below /api, and below /quelea/v1 what Quelea has beside it: elastic queues, CMQ's \
     peers, messages that are moved between queues, and who changed what. Users are the broker's, with their tags.";

/// An error: what went wrong, and why.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "`error.rs` writes it")]
struct Error {
    error: String,
    reason: String,
}

/// All of it, `elastic` being what the elastic queues' directory answers and `datagram` what CMQ's front does; `rabbitmq` stands below `/api` and is described
/// beside it.
pub(crate) fn router(
    api: &ApiState,
    elastic: Vec<Route>,
    datagram: Vec<Route>,
    rabbitmq: &[Route],
) -> Router {
    let queues = moves::routes();
    let mut node = audit::routes();
    node.extend(tokens::routes());
    let document = Document::new(Info {
        title: "Quelea",
        version: env!("CARGO_PKG_VERSION"),
        description: DESCRIPTION,
        error: |generator| generator.subschema_for::<Error>(),
        refusals: REFUSALS,
        body_refusals: &[413, 415, 422],
    });
    let document = document.with(PREFIX, "queues", &queues).with(PREFIX, "node", &node).with(
        &format!("{PREFIX}/elastic"),
        "elastic",
        &elastic,
    );
    let document = document.with(PREFIX, "datagram", &datagram);
    let document = document.with("/api", "rabbitmq", rabbitmq);
    let document: Arc<str> = document.into_json().to_string().into();
    Router::new()
        .merge(router_of(queues))
        .merge(router_of(node))
        .with_state(api.clone())
        .merge(router_of(datagram).with_state(()))
        .nest("/elastic", router_of(elastic).with_state(()))
        .route("/openapi.json", get(async move || shown(&document)))
}

/// It says nothing of this broker: nobody has to sign in for it.
fn shown(document: &Arc<str>) -> axum::response::Response {
    let bytes = Bytes::copy_from_slice(document.as_bytes());
    ([(CONTENT_TYPE, "application/json")], bytes).into_response()
}

//! Quelea's own resources below `/quelea/v1`, and the OpenAPI document of them. What they take and answer are types of
//! their own, from which the document is made. Errors are those of the rest of the API.

mod audit;
mod log;
mod messages;
mod moves;
mod replicated;
mod sqs;
mod tokens;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use quelea_openapi::{Document, Info, Route, router as router_of, with_state};
use schemars::JsonSchema;

pub(crate) use self::audit::{changes as audit, operation as audit_operation};
pub(crate) use self::watch::Answerer;
use crate::state::{ApiState, SharedState};

/// Where it all stands.
const PREFIX: &str = "/quelea/v1";

/// What RabbitMQ does not have and stands below `/api` too.
const OF_ACCOUNTS: [&str; 3] = ["/accounts", "/access-keys", "/password"];

/// What any request may be refused with.
const REFUSALS: &[(u16, &str)] = &[
    (400, "A parameter, or the body, makes no sense; the reason names the field and its value"),
    (401, "No user, or a wrong password"),
    (403, "The user's tags or permissions do not allow this, or a page of another origin asks"),
    (404, "There is no such object"),
    (409, "The state of the object does not allow this"),
    (413, "The body is larger than the limit"),
    (415, "A browser sends a body and does not say that it is JSON"),
    (421, "The host that was asked for is not one of http.hosts"),
    (422, "The body is JSON of another shape"),
    (429, "The address sends more than http.requests_per_s_max"),
    (503, "The broker is stopping or busy; trying again may help"),
];

const DESCRIPTION: &str = "RabbitMQ's management API below /api, and below /quelea/v1 what Quelea has beside it: elastic queues, CMQ's \
     peers, replicated queues, SQS's operations, messages that are moved between queues, and who changed what. Users are the broker's, with their tags.";

/// An error: what went wrong, and why.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "`error.rs` writes it")]
struct Error {
    error: String,
    reason: String,
}

/// What stands below `/quelea/v1`.
pub(crate) struct Sections(Vec<Section>);

/// Routes of one tag.
struct Section {
    tag: &'static str,
    /// What stands before their paths, below `/quelea/v1`.
    prefix: &'static str,
    routes: Vec<Route>,
}

impl Sections {
    /// Returns the sections of a broker: `elastic` is what the elastic queues' directory answers,
    /// `datagram` what CMQ's front does, and `replicated` what there is to be said of Cassandra.
    pub(crate) fn of_broker(
        api: &ApiState,
        elastic: Vec<Route>,
        datagram: Vec<Route>,
        mut replicated: Vec<Route>,
    ) -> Self {
        replicated.extend(with_state(replicated::routes(), api));
        let mut node = with_state(audit::routes(), api);
        node.extend(with_state(tokens::routes(), api));
        node.extend(with_state(watch::routes(), api));
        node.extend(with_state(log::routes(), api));
        let mut queues = with_state(moves::routes(), api);
        queues.extend(with_state(messages::routes(), api));
        queues.extend(with_state(sqs::routes(), api));
        Self(vec![
            Section { tag: "queues", prefix: "", routes: queues },
            Section { tag: "node", prefix: "", routes: node },
            Section { tag: "elastic", prefix: "/elastic", routes: elastic },
            Section { tag: "datagram", prefix: "", routes: datagram },
            Section { tag: "replicated", prefix: "", routes: replicated },
        ])
    }

    /// Returns the sections of a front-end without a broker.
    pub(crate) fn of_front_end<S: SharedState>(front_end: &S, mut replicated: Vec<Route>) -> Self {
        replicated.extend(with_state(replicated::routes(), front_end));
        let mut node = audit::routes();
        node.extend(watch::routes());
        let queues = with_state(sqs::routes(), front_end);
        Self(vec![
            Section { tag: "queues", prefix: "", routes: queues },
            Section { tag: "node", prefix: "", routes: with_state(node, front_end) },
            Section { tag: "replicated", prefix: "", routes: replicated },
        ])
    }

    /// Returns the router of all sections with their document, in which `rabbitmq`, which stands
    /// below `/api`, is described beside them.
    pub(crate) fn router(mut self, rabbitmq: &[Route]) -> Router {
        let of_accounts =
            |route: &&Route| OF_ACCOUNTS.iter().any(|of| route.path().starts_with(of));
        let routes = rabbitmq.iter().filter(of_accounts).cloned().collect();
        self.0.push(Section { tag: "accounts", prefix: "", routes });
        let mut document = Document::new(Info {
            title: "Quelea",
            version: env!("CARGO_PKG_VERSION"),
            description: DESCRIPTION,
            error: |generator| generator.subschema_for::<Error>(),
            refusals: REFUSALS,
            body_refusals: &[413, 415, 422],
        });
        for Section { tag, prefix, routes } in &self.0 {
            document = document.with(&format!("{PREFIX}{prefix}"), tag, routes);
        }
        let document = document.with("/api", "rabbitmq", rabbitmq);
        let document: Arc<str> = document.into_json().to_string().into();
        let mut router = Router::new().route("/openapi.json", get(async move || shown(&document)));
        for Section { prefix, routes, .. } in self.0 {
            let routes = router_of(routes).with_state(());
            router = match prefix {
                "" => router.merge(routes),
                prefix => router.nest(prefix, routes),
            };
        }
        router
    }
}

/// Returns the document as an answer. It says nothing of this broker: nobody has to sign in for it.
fn shown(document: &Arc<str>) -> axum::response::Response {
    let bytes = Bytes::copy_from_slice(document.as_bytes());
    ([(CONTENT_TYPE, "application/json")], bytes).into_response()
}

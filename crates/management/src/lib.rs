//! The management API in RabbitMQ's dialect under `/api`, Quelea's own resources under `/quelea/v1`, `/metrics` in Prometheus' text format, and the console at `/`.
//! It holds no state of its own but samples of the counters and the audit trail: every request runs a closure on the core thread through
//! [`quelea_node::CoreHandle`] and turns plain report structs into JSON. It must never block that
//! thread, and no AMQP type may appear here but field tables, which queue arguments are made of.
//! Start with `api/routes.rs`, the list of routes; its sockets are in `server.rs`.

mod answer;
mod api;
mod audit;
mod authentication;
mod away;
mod call;
mod console;
mod counters;
mod error;
mod fields;
mod form;
mod front_end;
mod getter;
mod history;
mod identity;
mod json;
mod limits;
mod list_query;
mod listed;
mod metrics;
mod operation;
mod paging;
mod payload;
mod places;
mod process;
mod properties;
mod recent;
mod request_line;
mod sampler;
mod server;
mod shapes;
mod shared_identity;
mod state;
#[cfg(test)]
mod test_broker;
mod tokens;
mod v1;
mod web_pages;

pub use api::{Definitions, HttpSettings, ImportError, import_definitions, serve};
pub use audit::AuditTrail;
pub use away::serve_away;
pub use front_end::serve_front_end;
pub use limits::{CONNECTIONS_MAX, REQUEST_TIMEOUT_MS, REQUESTS_PER_S_MAX, SAMPLE_INTERVAL_MS};
pub use server::HttpLimits;
pub use shared_identity::serve_with_shared_identity;
pub use state::Listener;
pub use tokens::TokenKey;

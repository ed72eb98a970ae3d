//! The management API in RabbitMQ's dialect under `/api`, and `/metrics` in Prometheus' text format.
//! It holds no state of its own: every request runs a closure on the core thread through
//! [`quelea_node::CoreHandle`] and turns plain report structs into JSON. It must never block that
//! thread, and no AMQP type may appear here but field tables, which queue arguments are made of.
//! Start with `api.rs`, the list of routes; its sockets are in `server.rs`.

mod api;
mod authentication;
mod call;
mod counters;
mod error;
mod json;
mod limits;
mod metrics;
mod operation;
mod server;
mod state;
mod web_pages;

pub use api::{HttpSettings, serve};
pub use limits::{CONNECTIONS_MAX, REQUEST_TIMEOUT_MS, REQUESTS_PER_S_MAX};
pub use server::HttpLimits;

//! The SQS server: HTTP/1.1 connections in front of `quelea_sqs_protocol`'s service. It knows HTTP and
//! who calls; what a request means is the service's, and where queues are is known to their
//! [`Queues`](quelea_sqs_protocol::Queues) alone: this crate must never link a broker.
//! Start with `server.rs`, then `connection.rs` (one socket) and `request.rs` (one request).

mod authentication;
mod body;
mod body_budget;
mod connection;
mod counters;
mod known_headers;
mod limits;
mod origins;
mod phases;
mod request;
mod request_id;
mod server;
mod worker;

pub use authentication::Verify;
pub use counters::{Outcome, SqsCounters};
pub use limits::{BODIES_BYTES_MAX, CONNECTIONS_MAX};
pub use origins::AllowedOrigins;
pub use server::{SqsServer, SqsSettings, SqsStartError};

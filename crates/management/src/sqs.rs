//! The SQS front: HTTP/1.1 connections on threads of their own, in front of `quelea_sqs_protocol`' service.
//! It knows HTTP and who calls; what a request means is the service's, and what a queue is the
//! store's. Start with `server.rs`, then `connection.rs` (one socket) and `exchange.rs` (one request).

mod authentication;
mod body;
mod body_budget;
mod connection;
mod counters;
mod embedded;
mod exchange;
mod limits;
mod phases;
mod request_id;
mod server;

pub use authentication::Verify;
pub use counters::{Outcome, SqsCounters};
pub use embedded::{EmbeddedQueues, EmbeddedSettings};
pub use limits::BODIES_BYTES_MAX;
pub use server::{SqsServer, SqsSettings, SqsStartError};

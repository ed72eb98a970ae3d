//! The SQS server, spoken to byte by byte: what HTTP allows, what clients do wrong, and what they
//! may cost. What requests mean is tested in `quelea-sqs-protocol`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod authentication;
mod broken_clients;
mod client;
mod http;
#[path = "../../../protocol/tests/service/memory.rs"]
mod memory;

//! The load generator against small servers of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod amqp_suite;
mod elastic;
mod load;
mod report_file;
mod small_broker;
mod small_nats;
mod small_relay;
#[path = "../../../../crates/sqs/client/tests/it/small_service.rs"]
#[allow(dead_code, reason = "the client's tests use the rest of it")]
mod small_service;
mod sqs;

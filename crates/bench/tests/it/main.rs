//! The load generator against a small broker of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod load;
mod small_broker;
#[path = "../../../client/tests/it/small_service.rs"]
#[allow(dead_code, reason = "the client's tests use the rest of it")]
mod small_service;
mod sqs;

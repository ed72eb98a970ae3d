//! The client and the worker loop against a small service of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod calls;
#[allow(dead_code, reason = "the load generator's tests use the rest of it")]
mod small_service;
mod worker;
mod worker_process;

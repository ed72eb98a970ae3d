//! The client and the worker loop against a small service of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod calls;
mod small_service;
mod worker;
mod worker_process;

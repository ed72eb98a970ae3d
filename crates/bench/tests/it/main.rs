//! The load generator against a small broker of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod load;
mod small_broker;

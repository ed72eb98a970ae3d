//! The suite, on stores in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../protocol/tests/service/memory.rs"]
mod memory;
mod memory_store;

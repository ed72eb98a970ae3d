//! The built binary from outside: how it starts, stops, and what it keeps.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod bench;
mod broker;
#[path = "../../../core/node/tests/it/client.rs"]
#[allow(dead_code, reason = "shared with the tests of quelea-node")]
mod client;
mod kill;
mod ledger;
mod memory;
mod start_and_stop;
mod systemd;

//! A started node behind real sockets.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod bad_input;
mod call;
#[allow(dead_code, reason = "shared with the tests of quelea-server")]
mod client;
mod fairness;
mod faulty_disk;
mod login;
mod messages;
mod panic;
mod server;
mod stop;

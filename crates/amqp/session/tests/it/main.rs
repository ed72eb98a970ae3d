//! What clients see of sessions over a whole broker, in virtual time and without sockets.
#![allow(clippy::unwrap_used, reason = "a test that panics says enough")]

mod acknowledging;
mod anything;
mod blocking;
mod closing;
mod confirming;
mod consuming;
mod crashing;
mod damaging;
mod declaring;
mod durability;
mod limits;
mod logging_in;
mod names_asked;
mod parked;
mod pipelining;
mod publishing;
mod refusals;
mod session_test;
mod splitting;
mod transactions;

//! Tests of the state machine from outside.

#![allow(clippy::unwrap_used)]

mod classic;
mod endpoints;
mod flight;
mod fuzz_endpoint;
mod golden;
mod inbox;
mod outbox;
mod pair;
mod repair;
mod seal;
mod sealed;
mod sim;
mod wire;

//! Tests of the state machine from outside.

#![allow(clippy::unwrap_used)]

mod classic;
mod flight;
mod repair;
mod seal;
mod wire;

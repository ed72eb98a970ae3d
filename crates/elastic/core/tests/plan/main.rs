//! The planner from outside: in a small world in virtual time, and by properties.

#![allow(clippy::unwrap_used)]

mod agreement;
mod bursts;
mod complaints;
mod host;
mod paper;
mod priorities;
mod properties;
mod steady;
mod throughput;
mod world;

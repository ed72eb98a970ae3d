//! The library over real sockets of loopback, with ports that the system gives.

#![allow(clippy::unwrap_used)]
// The examples share a module, and are modules here.
#![allow(clippy::duplicate_mod)]

mod ends;
mod examples;
mod given_up;
mod groups;
mod limits;
mod peers;
mod push_pop;
mod tasks;
mod waiting;
mod wires;

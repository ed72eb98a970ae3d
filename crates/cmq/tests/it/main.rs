//! The library over real sockets of loopback, with ports that the system gives.

#![allow(clippy::unwrap_used)]

mod ends;
mod push_pop;

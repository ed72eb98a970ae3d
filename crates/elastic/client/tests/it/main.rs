//! The client of elastic queues against relays and a directory of the tests' own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod site;
mod sockets;

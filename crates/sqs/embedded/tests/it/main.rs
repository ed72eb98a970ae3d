//! The queues of a real node, on a disk, against what every store has to do.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod conformance;
mod lookups;
mod node;

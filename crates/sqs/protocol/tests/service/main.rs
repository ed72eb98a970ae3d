//! The service on queues in memory: what each operation answers, and what it refuses in which words.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod attributes;
mod class;
mod class_router;
mod harness;
mod memory;
mod moves;
mod peek;
mod permissions;
mod queues;
mod receive;
mod send;
mod tags;

//! The directory's providers and stores against real processes and files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod embedded;
mod process;
mod scratch;
mod store;

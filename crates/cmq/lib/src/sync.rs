//! Locks and threads, as the driver uses them. `tests/model` compiles the same files with those of
//! shuttle in this place, which tries the orders in which threads can run.

pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread;

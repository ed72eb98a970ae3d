//! A fork copies this process's memory and none of its threads, so a client is of no use in the
//! child, and its locks may be held for ever. Here every object learns whether it was copied.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::error;

/// How many forks this process is away from the one that was started.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of [`FORKS`].
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// `os.register_at_fork` has it called in every child.
#[pyfunction]
pub(crate) fn _after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Something of the library that belongs to the process that made it. A child neither uses nor drops
/// it: its locks may be held by a thread that is not there.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    value: ManuallyDrop<T>,
    forks: u64,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), forks: FORKS.load(Ordering::Relaxed) }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        if self.is_here() { Ok(&self.value) } else { Err(error::forked(py)) }
    }

    pub(crate) fn is_here(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: nothing reads the value after its owner's drop, and this is its only drop.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

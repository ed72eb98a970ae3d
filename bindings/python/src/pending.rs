//! An operation that an event loop waits for: a push without room, an acknowledgement.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use quelea_cmq::PushError;

use crate::bell::Bell;
use crate::error;
use crate::fork::Owned;

type Operation = Pin<Box<dyn Future<Output = Result<(), PushError>> + Send>>;

/// Rings a loop's bell when there is something to look at. quelea_cmq/waiting.py says how it is used.
#[pyclass(frozen, module = "quelea_cmq._core")]
pub(crate) struct Pending {
    operation: Owned<Mutex<Option<Operation>>>,
    waker: Waker,
}

impl Pending {
    pub(crate) fn new(
        operation: impl Future<Output = Result<(), PushError>> + Send + 'static,
        bell: &Bell,
        number: u64,
    ) -> Self {
        let operation: Operation = Box::pin(operation);
        Self { operation: Owned::new(Mutex::new(Some(operation))), waker: bell.waker(number) }
    }
}

#[pymethods]
impl Pending {
    /// Whether it is done; raises what went wrong. If it is not done, the bell rings when it has to be
    /// asked again.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        let mut slot = self.operation.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(operation) = slot.as_mut() else {
            return Err(PyRuntimeError::new_err("it was done or given up"));
        };
        match operation.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(false),
            Poll::Ready(done) => {
                let finished = slot.take();
                drop(slot);
                drop(finished);
                done.map(|()| true).map_err(|error| error::push(py, error, 0))
            }
        }
    }

    /// Gives it up.
    fn drop(&self, py: Python<'_>) -> PyResult<()> {
        let operation =
            self.operation.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(operation);
        Ok(())
    }
}

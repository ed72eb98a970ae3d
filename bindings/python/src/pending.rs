//! An operation that somebody waits for: a push without room, an acknowledgement, an answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quelea_cmq::{Lost, PushError};

use crate::bell::Bell;
use crate::error;
use crate::fork::Owned;
use crate::incoming_request::Request;
use crate::wait;

/// What an operation ends with.
pub(crate) enum Done {
    Nothing,
    Answer(Vec<u8>),
    Request(Box<quelea_cmq::responder::Request>),
}

/// Why it does not.
pub(crate) enum Failed {
    Push(PushError),
    Lost(Lost),
    Abandoned,
    Closed,
}

pub(crate) type Operation = Pin<Box<dyn Future<Output = Result<Done, Failed>> + Send>>;

fn to_python(py: Python<'_>, done: Result<Done, Failed>) -> PyResult<Py<PyAny>> {
    match done {
        Ok(Done::Nothing) => Ok(py.None()),
        Ok(Done::Answer(bytes)) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
        Ok(Done::Request(request)) => Ok(Py::new(py, Request::new(*request))?.into_any()),
        Err(Failed::Push(error)) => Err(error::push(py, error, 0)),
        Err(Failed::Lost(lost)) => Err(error::no_answer(py, lost.asked)),
        Err(Failed::Abandoned) => Err(error::abandoned(py)),
        Err(Failed::Closed) => Err(error::closed(py, "queue")),
    }
}

/// Rings a loop's bell when there is something to look at. quelea_cmq/waiting.py says how it is used.
#[pyclass(frozen, module = "quelea_cmq._core")]
pub(crate) struct Pending {
    operation: Owned<Mutex<Option<Operation>>>,
    waker: Waker,
}

impl Pending {
    pub(crate) fn new(
        operation: impl Future<Output = Result<Done, Failed>> + Send + 'static,
        bell: &Bell,
        number: u64,
    ) -> Self {
        let operation: Operation = Box::pin(operation);
        Self { operation: Owned::new(Mutex::new(Some(operation))), waker: bell.waker(number) }
    }
}

#[pymethods]
impl Pending {
    /// Polls the operation. Returns a list of what it ended with, which is empty while it goes on:
    /// then the bell rings when it has to be asked again. Raises what went wrong.
    fn poll(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let mut slot = self.operation.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(operation) = slot.as_mut() else {
            return Err(PyRuntimeError::new_err("it was done or given up"));
        };
        match operation.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => Ok(Vec::new()),
            Poll::Ready(done) => {
                let finished = slot.take();
                drop(slot);
                drop(finished);
                Ok(vec![to_python(py, done)?])
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

/// Wakes the thread that runs an operation to its end.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs an operation to its end in this thread, without the GIL; signals are looked at.
pub(crate) fn run(
    py: Python<'_>,
    operation: impl Future<Output = Result<Done, Failed>> + Send,
) -> PyResult<Py<PyAny>> {
    let operation = Mutex::new(Box::pin(operation));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let done = wait::until(py, None, |slice| {
        let mut operation = operation.lock().unwrap_or_else(PoisonError::into_inner);
        let mut context = Context::from_waker(&waker);
        if let Poll::Ready(done) = operation.as_mut().poll(&mut context) {
            return Some(done);
        }
        thread::park_timeout(slice);
        match operation.as_mut().poll(&mut context) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    })?;
    // Without a time limit it ends only when it is done.
    done.map_or_else(|| Ok(py.None()), |done| to_python(py, done))
}

//! A mailbox's messages.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use quelea_cmq::Queue as CmqQueue;

use crate::alarm::Alarm;
use crate::bell::Bell;
use crate::fork::Owned;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::{error, wait};

/// An open mailbox: what peers push to it comes out here. Any number of threads and tasks may pop;
/// each message goes to one of them.
#[pyclass(frozen, module = "quelea_cmq", weakref)]
pub(crate) struct Queue {
    mailbox: Owned<Arc<Mailbox>>,
    waiters: PyOnceLock<Py<PyAny>>,
}

impl Queue {
    pub(crate) fn new(queue: CmqQueue) -> Self {
        Self { mailbox: Owned::new(Arc::new(Mailbox::new(queue))), waiters: PyOnceLock::new() }
    }

    /// Waits for the next message; returns none when the time is over.
    fn wait<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Duration>,
    ) -> PyResult<Option<Bound<'py, Message>>> {
        let mailbox = self.mailbox.get(py)?;
        if let Some(message) = mailbox.try_pop(py)? {
            return Ok(Some(message));
        }
        if timeout == Some(Duration::ZERO) {
            return if mailbox.queue.is_closed() {
                Err(error::closed(py, "queue"))
            } else {
                Ok(None)
            };
        }
        let popped = wait::until(py, timeout, |slice| match mailbox.queue.pop_timeout(slice) {
            Some(popped) => Some(Ok(popped)),
            None if mailbox.queue.is_closed() => Some(Err(())),
            None => None,
        })?;
        match popped {
            Some(Ok(popped)) => Ok(Some(Message::copied(py, &popped).into_pyobject(py)?)),
            Some(Err(())) => Err(error::closed(py, "queue")),
            None => Ok(None),
        }
    }

    /// Runs a function of quelea_cmq/waiting.py with this queue, and returns what it returned.
    fn in_loop<'py>(slf: &Bound<'py, Self>, function: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("quelea_cmq.waiting")?.call_method1(function, (slf,))
    }
}

#[pymethods]
impl Queue {
    /// Returns the mailbox's number; None for the queue of all others.
    #[getter]
    fn mailbox(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.mailbox.get(py)?.queue.mailbox().map(|mailbox| mailbox.0))
    }

    /// Returns whether nothing more will come. What is still here can be popped.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.mailbox.get(py)?.queue.is_closed())
    }

    /// Waits for the next message and returns it; with a timeout it waits at most so many seconds,
    /// then it returns None.
    #[pyo3(signature = (timeout=None))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, Message>>> {
        self.wait(py, wait::timeout(timeout)?)
    }

    /// Takes the next message if one is here: the paper's `cwPop`.
    fn pop_nowait<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Message>>> {
        self.wait(py, Some(Duration::ZERO))
    }

    /// Takes the next message and those behind it that are here, at most `max`. Waits for the first
    /// as `pop` does; returns an empty list when the time is over.
    #[pyo3(signature = (max=1024, timeout=None))]
    fn pop_batch<'py>(
        &self,
        py: Python<'py>,
        max: usize,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, Message>>> {
        let timeout = wait::timeout(timeout)?;
        let mailbox = self.mailbox.get(py)?;
        let mut messages = mailbox.take(py, max)?;
        if messages.is_empty()
            && max > 0
            && let Some(first) = self.wait(py, timeout)?
        {
            messages = mailbox.take(py, max - 1)?;
            messages.insert(0, first);
        }
        Ok(messages)
    }

    /// Returns what `await queue.pop_async()` awaits: the next message. No thread waits for it.
    fn pop_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_loop(slf, "pop")
    }

    /// Returns what `await queue.pop_batch_async()` awaits: the next message and those behind it
    /// that are here.
    #[pyo3(signature = (max=1024))]
    fn pop_batch_async<'py>(slf: &Bound<'py, Self>, max: usize) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("quelea_cmq.waiting")?.call_method1("pop_batch", (slf, max))
    }

    /// Acknowledges a message, for queues with `acknowledged_by_application`: it, and all before it
    /// of the same sender, are safe; the sender may forget them.
    fn acknowledge(&self, py: Python<'_>, message: &Bound<'_, Message>) -> PyResult<()> {
        self.mailbox.get(py)?.queue.acknowledge(message.get().receipt());
        Ok(())
    }

    /// Closes the mailbox: waiting pops end once it is empty, and what is pushed to it is refused.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mailbox = self.mailbox.get(py)?;
        py.detach(|| mailbox.queue.close());
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Waits for the next message; the end is when the endpoint is closed.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Message>>> {
        self.wait(py, None).or_else(|error| self.end_if_closed(py, error))
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_loop(slf, "next_message")
    }

    /// Returns what quelea_cmq/waiting.py keeps here.
    #[getter]
    fn _waiters(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.waiters.get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("quelea_cmq.waiting")?.call_method0("Waiters")?.unbind())
        })?;
        Ok(made.clone_ref(py))
    }

    fn _alarm(&self, bell: &Bound<'_, Bell>, number: u64) -> PyResult<Alarm> {
        let mailbox = Arc::clone(self.mailbox.get(bell.py())?);
        Ok(Alarm::new(mailbox, bell.get(), number))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let queue = &self.mailbox.get(py)?.queue;
        let mailbox = queue.mailbox().map_or_else(|| "others".to_owned(), |one| one.to_string());
        Ok(format!("<Queue {}/{mailbox}>", queue.endpoint().local_addr()))
    }
}

impl Queue {
    fn end_if_closed<'py>(
        &self,
        py: Python<'py>,
        error: PyErr,
    ) -> PyResult<Option<Bound<'py, Message>>> {
        let is_end = self.mailbox.get(py)?.queue.is_closed() && error::is_closed(py, &error)?;
        if is_end { Ok(None) } else { Err(error) }
    }
}

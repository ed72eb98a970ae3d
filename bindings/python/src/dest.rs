//! A handle to a destination.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use quelea_cmq::{Dest as CmqDest, Outcome, PushError};

use crate::bell::Bell;
use crate::bytes_like::{bytes_like, copied};
use crate::fork::Owned;
use crate::key::to_key;
use crate::pending::{Done, Failed, Pending};
use crate::{error, wait};

/// Messages of an iterable that are gathered before they are pushed: enough to make one call of the
/// library cheap, few enough that a generator without end needs no memory.
const PUSH_BATCH: usize = 4_096;

/// Pushes messages to one mailbox at one address. Any thread may use it.
#[pyclass(frozen, module = "quelea_cmq", weakref)]
pub(crate) struct Dest {
    dest: Owned<CmqDest>,
    /// Whether a push waits for room.
    waits: bool,
}

impl Dest {
    pub(crate) fn new(dest: CmqDest, waits: bool) -> Self {
        Self { dest: Owned::new(dest), waits }
    }

    fn push_bytes(
        &self,
        py: Python<'_>,
        message: &[u8],
        timeout: Option<Duration>,
    ) -> PyResult<()> {
        let dest = self.dest.get(py)?;
        // With the GIL: it takes less time than to give it away and take it again.
        match dest.try_push(message) {
            Ok(()) => return Ok(()),
            Err(PushError::WouldBlock) if self.waits && timeout != Some(Duration::ZERO) => {}
            Err(error) => return Err(error::push(py, error, 0)),
        }
        let pushed = wait::until(py, timeout, |slice| match dest.push_timeout(message, slice) {
            Err(PushError::WouldBlock) => None,
            done => Some(done),
        })?;
        pushed.unwrap_or(Err(PushError::WouldBlock)).map_err(|error| error::push(py, error, 0))
    }

    /// Pushes all of them, waiting for room if need be. `before` were pushed in the same call.
    fn push_gathered(
        &self,
        py: Python<'_>,
        messages: &[PyBackedBytes],
        before: usize,
    ) -> PyResult<()> {
        let dest = self.dest.get(py)?;
        let mut rest = messages;
        while !rest.is_empty() {
            let Err(stopped) = py.detach(|| dest.try_push_batch(rest)) else { return Ok(()) };
            rest = &rest[stopped.pushed..];
            let pushed = before + messages.len() - rest.len();
            match stopped.error {
                PushError::WouldBlock if self.waits => self.push_bytes(py, &rest[0], None)?,
                error => return Err(error::push(py, error, pushed)),
            }
            rest = &rest[1..];
        }
        Ok(())
    }
}

#[pymethods]
impl Dest {
    /// Returns the key that it pushes to.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_key(py, self.dest.get(py)?.key())
    }

    /// Puts a message (any bytes-like object) into the batch; the batch leaves when it is full or
    /// old enough. Waits while there is no room, unless `when_full` says otherwise.
    #[pyo3(signature = (message, timeout=None))]
    fn push(&self, message: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let py = message.py();
        let timeout = wait::timeout(timeout)?;
        if let Ok(bytes) = message.cast_exact::<PyBytes>() {
            return self.push_bytes(py, bytes.as_bytes(), timeout);
        }
        // Others may change what they hold while this waits for room.
        self.push_bytes(py, &copied(message)?, timeout)
    }

    /// Returns what `await dest.push_async(message)` awaits: it pushes as `push` does, but the
    /// event loop goes on while it waits for room.
    fn push_async<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("quelea_cmq.waiting")?.call_method1("push", (slf, message))
    }

    /// Pushes every message of an iterable; returns how many there were.
    fn push_batch(&self, messages: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = messages.py();
        let mut gathered = Vec::new();
        let mut pushed = 0;
        for message in messages.try_iter()? {
            gathered.push(bytes_like(&message?)?);
            if gathered.len() == PUSH_BATCH {
                self.push_gathered(py, &gathered, pushed)?;
                pushed += gathered.len();
                gathered.clear();
            }
        }
        self.push_gathered(py, &gathered, pushed)?;
        Ok(pushed + gathered.len())
    }

    /// Sends what is pending now.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let dest = self.dest.get(py)?;
        py.detach(|| dest.flush());
        Ok(())
    }

    /// Flushes and waits until everything has left and, in reliable modes, is acknowledged. Raises
    /// `NotAcknowledged` when the time is over, or messages were given up.
    #[pyo3(signature = (timeout=None))]
    fn wait_acknowledged(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let dest = self.dest.get(py)?;
        let timeout = wait::timeout(timeout)?;
        let outcome = wait::until(py, timeout, |slice| match dest.wait_acknowledged(slice) {
            Outcome::TimedOut => None,
            outcome => Some(outcome),
        })?;
        match outcome.unwrap_or(Outcome::TimedOut) {
            Outcome::Acknowledged => Ok(()),
            Outcome::TimedOut => Err(error::not_acknowledged(py, timeout.unwrap_or_default())),
            Outcome::Abandoned => Err(error::abandoned(py)),
            Outcome::Closed => Err(error::closed(py, "destination")),
        }
    }

    /// Returns what `await dest.acknowledged_async()` awaits: it waits as `wait_acknowledged` does,
    /// for an event loop.
    fn acknowledged_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("quelea_cmq.waiting")?.call_method1("acknowledged", (slf,))
    }

    /// Pushes the message if that needs no waiting; returns whether it was pushed.
    fn _push_now(&self, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = message.py();
        match self.dest.get(py)?.try_push(&bytes_like(message)?) {
            Ok(()) => Ok(true),
            Err(PushError::WouldBlock) if self.waits => Ok(false),
            Err(error) => Err(error::push(py, error, 0)),
        }
    }

    fn _push_later(
        &self,
        message: &Bound<'_, PyAny>,
        bell: &Bound<'_, Bell>,
        number: u64,
    ) -> PyResult<Pending> {
        let dest = self.dest.get(message.py())?.clone();
        let message = bytes_like(message)?;
        let pushed = async move {
            dest.push_async(&message).await.map_err(Failed::Push)?;
            Ok(Done::Nothing)
        };
        Ok(Pending::new(pushed, bell.get(), number))
    }

    fn _settle_later(&self, bell: &Bound<'_, Bell>, number: u64) -> PyResult<Pending> {
        let dest = self.dest.get(bell.py())?.clone();
        let settled = async move {
            match dest.wait_acknowledged_async().await {
                Outcome::Acknowledged | Outcome::TimedOut => Ok(Done::Nothing),
                Outcome::Abandoned => Err(Failed::Abandoned),
                Outcome::Closed => Err(Failed::Push(PushError::Closed)),
            }
        };
        Ok(Pending::new(settled, bell.get(), number))
    }

    /// Flushes, and has the endpoint forget the destination once everything is sent (and
    /// acknowledged, where it is reliable). Later pushes fail.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let dest = self.dest.get(py)?.clone();
        py.detach(|| dest.close());
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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Dest {}>", self.dest.get(py)?.key()))
    }
}

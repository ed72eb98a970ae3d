//! Request and response (paper, "Request - Response"), with the library's store of outstanding
//! requests on the one side and of answers on the other.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use quelea_cmq::responder::Responder as CmqResponder;
use quelea_cmq::{Caller as CmqCaller, OnLoss};

use crate::bell::Bell;
use crate::bytes_like::bytes_like;
use crate::fork::Owned;
use crate::incoming_request::Request;
use crate::key::to_key;
use crate::pending::{Done, Failed, Pending, run};
use crate::{error, wait};

/// Asks one server. Any thread or task may use it; each waits for its own answer.
///
/// What has no answer is asked again after 20 ms by default: longer than a round trip in a network, far
/// shorter than TCP's 200 ms. Python shows a default only if it is a number there, not a name.
#[pyclass(frozen, module = "quelea_cmq", weakref)]
pub(crate) struct Caller {
    caller: Owned<Arc<CmqCaller>>,
}

impl Caller {
    pub(crate) fn new(caller: CmqCaller) -> Self {
        Self { caller: Owned::new(Arc::new(caller)) }
    }
}

/// Asks until there is an answer, or `within` is over.
async fn ask(
    caller: Arc<CmqCaller>,
    request: impl AsRef<[u8]> + Send,
    resend_after: Duration,
    within: Duration,
) -> Result<Done, Failed> {
    let one = resend_after.as_nanos().max(1);
    let times = u32::try_from(within.as_nanos().div_ceil(one)).unwrap_or(u32::MAX);
    let on_loss = OnLoss::Resend { times: times.saturating_sub(1) };
    let pending = caller.request(request.as_ref(), resend_after.min(within), on_loss);
    let answer = pending.map_err(Failed::Push)?.await.map_err(Failed::Lost)?;
    Ok(Done::Answer(answer.to_vec()))
}

fn times(timeout: f64, resend_after: f64) -> PyResult<(Duration, Duration)> {
    let within = wait::timeout(Some(timeout))?.unwrap_or(Duration::MAX);
    let resend_after = wait::timeout(Some(resend_after))?.unwrap_or(Duration::MAX);
    Ok((resend_after, within))
}

#[pymethods]
impl Caller {
    /// Returns the server's key.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_key(py, self.caller.get(py)?.dest().key())
    }

    /// Returns the number of requests that are neither answered nor lost.
    #[getter]
    fn outstanding(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.caller.get(py)?.outstanding())
    }

    /// Asks and waits for the answer, at most `timeout` seconds; what has no answer is asked again each
    /// `resend_after` seconds. Raises `NoAnswer`.
    #[pyo3(signature = (request, timeout=1.0, resend_after=0.02))]
    fn call(
        &self,
        request: &Bound<'_, PyAny>,
        timeout: f64,
        resend_after: f64,
    ) -> PyResult<Py<PyAny>> {
        let py = request.py();
        let caller = Arc::clone(self.caller.get(py)?);
        let (resend_after, within) = times(timeout, resend_after)?;
        run(py, ask(caller, bytes_like(request)?, resend_after, within))
    }

    /// Returns what `await caller.call_async(request)` awaits: it asks as `call` does, for an event
    /// loop.
    #[pyo3(signature = (request, timeout=1.0, resend_after=0.02))]
    fn call_async<'py>(
        slf: &Bound<'py, Self>,
        request: &Bound<'py, PyAny>,
        timeout: f64,
        resend_after: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let waiting = slf.py().import("quelea_cmq.waiting")?;
        waiting.call_method1("call", (slf, request, timeout, resend_after))
    }

    fn _ask_later(
        &self,
        request: &Bound<'_, PyAny>,
        timeout: f64,
        resend_after: f64,
        bell: &Bound<'_, Bell>,
        number: u64,
    ) -> PyResult<Pending> {
        let caller = Arc::clone(self.caller.get(request.py())?);
        let (resend_after, within) = times(timeout, resend_after)?;
        let asked = ask(caller, bytes_like(request)?, resend_after, within);
        Ok(Pending::new(asked, bell.get(), number))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Caller {}>", self.caller.get(py)?.dest().key()))
    }
}

/// Answers the requests that are pushed to a mailbox. It remembers its answers: a request that was sent
/// again is answered again, and not done again.
#[pyclass(frozen, module = "quelea_cmq", weakref)]
pub(crate) struct Responder {
    responder: Owned<Arc<CmqResponder>>,
}

impl Responder {
    pub(crate) fn new(responder: CmqResponder) -> Self {
        Self { responder: Owned::new(Arc::new(responder)) }
    }
}

#[pymethods]
impl Responder {
    /// Waits for the next request and returns it; with a timeout it waits at most so many seconds,
    /// then it returns None.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        let responder = self.responder.get(py)?;
        let is_closed = || responder.queue().is_closed();
        let timeout = wait::timeout(timeout)?;
        let next = wait::until(py, timeout, |slice| match responder.next_timeout(slice) {
            None => is_closed().then_some(None),
            next => Some(next),
        })?;
        match next {
            Some(Some(asked)) => Ok(Some(Request::new(asked))),
            Some(None) => Err(error::closed(py, "queue")),
            None => Ok(None),
        }
    }

    /// Returns what `await responder.next_async()` awaits: the next request, as of `next`, for an
    /// event loop.
    fn next_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("quelea_cmq.waiting")?.call_method1("next_request", (slf,))
    }

    fn _next_later(&self, bell: &Bound<'_, Bell>, number: u64) -> PyResult<Pending> {
        let responder = Arc::clone(self.responder.get(bell.py())?);
        let next = async move {
            let asked = responder.next_async().await.ok_or(Failed::Closed)?;
            Ok(Done::Request(Box::new(asked)))
        };
        Ok(Pending::new(next, bell.get(), number))
    }

    /// Answers a request. The answer is remembered, and leaves with its batch.
    fn answer(&self, request: &Bound<'_, Request>, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = answer.py();
        let responder = self.responder.get(py)?;
        let (request, answer) = (request.get().asked(), bytes_like(answer)?);
        let sent = py.detach(|| responder.answer(request, &answer));
        sent.map_err(|error| error::push(py, error, 0))
    }

    /// Closes the mailbox: waiting threads and tasks end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let responder = self.responder.get(py)?;
        py.detach(|| responder.queue().close());
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

    /// Waits for the next request; the end is when it is closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Request>> {
        self.next(py, None)
            .or_else(|error| if error::is_closed(py, &error)? { Ok(None) } else { Err(error) })
    }
}

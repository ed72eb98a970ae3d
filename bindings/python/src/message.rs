//! What a pop returns.

use std::net::SocketAddr;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use quelea_cmq::{Message as Popped, Receipt};

use crate::key::to_address;

/// A message, and who sent it. Its bytes are copied once, into Python's own object: a slice of the
/// received train would keep all of the train as long as the message lives.
#[pyclass(frozen, module = "quelea_cmq")]
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Py<PyBytes>,
    from: SocketAddr,
    mailbox: u64,
    session: u64,
    receipt: Receipt,
}

impl Message {
    pub(crate) fn new(
        bytes: Bound<'_, PyBytes>,
        from: SocketAddr,
        mailbox: u64,
        session: u64,
        receipt: Receipt,
    ) -> Self {
        Self { bytes: bytes.unbind(), from, mailbox, session, receipt }
    }

    pub(crate) fn copied(py: Python<'_>, popped: &Popped) -> Self {
        let bytes = PyBytes::new(py, &popped.bytes);
        Self::new(bytes, popped.from, popped.mailbox.0, popped.session, popped.receipt())
    }

    pub(crate) const fn receipt(&self) -> Receipt {
        self.receipt
    }
}

#[pymethods]
impl Message {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["bytes", "address", "mailbox", "session"])
    }

    /// Returns the message itself.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    /// Returns the address of the sending socket: push there to reply.
    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_address(py, self.from)
    }

    /// Returns the mailbox that it was pushed to.
    #[getter]
    const fn mailbox(&self) -> u64 {
        self.mailbox
    }

    /// Returns the sender's session: another after its restart.
    #[getter]
    const fn session(&self) -> u64 {
        self.session
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.bytes.as_bytes(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let bytes = self.bytes.bind(py).repr()?;
        Ok(format!("Message({bytes} from {} to mailbox {})", self.from, self.mailbox))
    }
}

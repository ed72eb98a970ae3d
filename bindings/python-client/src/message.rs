//! A message, as a listener gives it.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use quelea_elastic_client::{ClientId, Message as Given};

/// A message, who sent it, and its number. Its parts are copied once, into Python's own objects: slices
/// of what was read would keep all of it as long as one message lives.
#[pyclass(frozen, module = "quelea_client")]
#[derive(Debug)]
pub(crate) struct Message {
    topic: Py<PyBytes>,
    parts: Py<PyTuple>,
    producer: Py<PyString>,
    sequence: u64,
    /// Counts the listener's messages, for acknowledgements by hand.
    pub(crate) ordinal: u64,
    pub(crate) listener: ClientId,
}

impl Message {
    pub(crate) fn copied(
        py: Python<'_>,
        given: &Given,
        producer: Py<PyString>,
        ordinal: u64,
        listener: ClientId,
    ) -> PyResult<Self> {
        let mut parts = given.parts().map(|part| PyBytes::new(py, part));
        let topic = parts.next().unwrap_or_else(|| PyBytes::new(py, b"")).unbind();
        let parts = PyTuple::new(py, parts.collect::<Vec<_>>())?.unbind();
        Ok(Self { topic, parts, producer, sequence: given.sequence.0, ordinal, listener })
    }
}

#[pymethods]
impl Message {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, ["topic", "parts", "producer", "sequence"])
    }

    /// Returns the first part, which prefixes are compared with.
    #[getter]
    fn topic(&self, py: Python<'_>) -> Py<PyBytes> {
        self.topic.clone_ref(py)
    }

    /// Returns the parts behind the topic.
    #[getter]
    fn parts(&self, py: Python<'_>) -> Py<PyTuple> {
        self.parts.clone_ref(py)
    }

    /// Returns the part behind the topic, empty if there is none: all of a message of two parts.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts.bind(py);
        if parts.is_empty() {
            return Ok(PyBytes::new(py, b"").into_any());
        }
        parts.get_item(0)
    }

    /// Returns the id of the producer that sent it: 32 hexadecimal digits, as `Producer.id`.
    #[getter]
    fn producer(&self, py: Python<'_>) -> Py<PyString> {
        self.producer.clone_ref(py)
    }

    /// Returns the message's number, which counts its producer's messages from 0.
    #[getter]
    const fn sequence(&self) -> u64 {
        self.sequence
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (topic, parts) = (self.topic.bind(py).repr()?, self.parts.bind(py).repr()?);
        Ok(format!("Message({topic}, {parts}, number {} of {})", self.sequence, self.producer))
    }
}

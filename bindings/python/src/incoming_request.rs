//! A request that a responder took.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quelea_cmq::responder::Request as Asked;

use crate::key::to_address;

/// A request, to be answered by `Responder.answer`.
#[pyclass(frozen, module = "quelea_cmq")]
pub(crate) struct Request {
    asked: Asked,
}

impl Request {
    pub(crate) const fn new(asked: Asked) -> Self {
        Self { asked }
    }

    pub(crate) const fn asked(&self) -> &Asked {
        &self.asked
    }
}

#[pymethods]
impl Request {
    /// Returns what is asked.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.asked.bytes)
    }

    /// Returns the address of the one who asks.
    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_address(py, self.asked.from)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Request({} from {})", self.bytes(py).repr()?, self.asked.from))
    }
}

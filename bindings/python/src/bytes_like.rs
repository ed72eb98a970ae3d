//! Whatever holds bytes: `bytes` as they are, everything else copied.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// Returns the object's bytes, without a copy if it is `bytes`.
pub(crate) fn bytes_like(object: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.clone().into());
    }
    Ok(PyBytes::new(object.py(), &copied(object)?).into())
}

/// Returns a copy of what a buffer holds: `bytearray`, `memoryview`, an array of numbers.
pub(crate) fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = object.py();
    // Any layout of items is bytes in the end; a view as bytes refuses what is not contiguous.
    let view = py
        .import("builtins")?
        .getattr("memoryview")?
        .call1((object,))
        .map_err(|_| not_bytes(object))?;
    let view = view.call_method1("cast", ("B",))?;
    PyBuffer::<u8>::get(&view)?.to_vec(py)
}

fn not_bytes(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("a message is bytes-like, not {name}; text has to be encoded"))
}

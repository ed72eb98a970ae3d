//! What a program gives as a topic, a part of a message or a prefix: bytes, or text as UTF-8.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString};

/// `bytes` and `str` as they are, everything else copied: others may change it.
pub(crate) enum Part {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
    Copied(Vec<u8>),
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

impl Part {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.clone().into()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self::Text(text.clone().try_into()?));
        }
        copied(object).map(Self::Copied)
    }

    /// Returns the parts of all objects of an iterable.
    pub(crate) fn all(objects: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        objects.try_iter()?.map(|object| Self::of(&object?)).collect()
    }
}

/// Returns a copy of what a buffer holds: `bytearray`, `memoryview`, an array of numbers.
fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = object.py();
    // Any layout of items is bytes in the end; a view as bytes refuses what is not contiguous.
    let view = py
        .import("builtins")?
        .getattr("memoryview")?
        .call1((object,))
        .map_err(|_| no_part(object))?;
    let view = view.call_method1("cast", ("B",))?;
    PyBuffer::<u8>::get(&view)?.to_vec(py)
}

fn no_part(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("topics, parts and prefixes are bytes-like or str, not {name}"))
}

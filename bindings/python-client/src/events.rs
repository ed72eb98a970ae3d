//! The library's events as those of quelea_client/events.py.

use pyo3::prelude::*;
use quelea_elastic_client::{ClientId, GapNotice, NoticeCode, WireError};

/// A client as the management API shows it.
pub(crate) fn id(client: ClientId) -> String {
    format!("{:032x}", client.0)
}

/// `TooSlow` is `too_slow` in Python.
pub(crate) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("quelea_client.events")?.getattr(name)
}

pub(crate) fn gap<'py>(py: Python<'py>, gap: &GapNotice) -> PyResult<Bound<'py, PyAny>> {
    let numbers = py.import("builtins")?.getattr("range")?.call1((gap.from.0, gap.to.0))?;
    let cause = class(py, "GapCause")?.call1((snake(&format!("{:?}", gap.cause)),))?;
    class(py, "Gap")?.call1((id(gap.producer), numbers, gap.messages, cause))
}

pub(crate) fn notice<'py>(
    py: Python<'py>,
    code: NoticeCode,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let code = class(py, "NoticeCode")?.call1((snake(&format!("{code:?}")),))?;
    class(py, "Notice")?.call1((code, text))
}

pub(crate) fn refusal<'py>(py: Python<'py>, error: &WireError) -> PyResult<Bound<'py, PyAny>> {
    let code = snake(&format!("{:?}", error.code));
    class(py, "Refusal")?.call1((code, error.field.as_str(), error.text.as_str()))
}

//! The library's events as those of quelea_client/events.py.

use pyo3::prelude::*;
use quelea_elastic_client::{ClientId, GapNotice, Named as _, NoticeCode, WireError};

/// Returns a client's id as the management API shows it.
pub(crate) fn id(client: ClientId) -> String {
    format!("{:032x}", client.0)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("quelea_client.events")?.getattr(name)
}

pub(crate) fn gap<'py>(py: Python<'py>, gap: &GapNotice) -> PyResult<Bound<'py, PyAny>> {
    let numbers = py.import("builtins")?.getattr("range")?.call1((gap.from.0, gap.to.0))?;
    let cause = class(py, "GapCause")?.call1((gap.cause.as_str(),))?;
    class(py, "Gap")?.call1((id(gap.producer), numbers, gap.messages, cause))
}

pub(crate) fn notice<'py>(
    py: Python<'py>,
    code: NoticeCode,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let code = class(py, "NoticeCode")?.call1((code.as_str(),))?;
    class(py, "Notice")?.call1((code, text))
}

pub(crate) fn refusal<'py>(py: Python<'py>, error: &WireError) -> PyResult<Bound<'py, PyAny>> {
    let code = error.code.as_str();
    class(py, "Refusal")?.call1((code, error.field.as_str(), error.text.as_str()))
}

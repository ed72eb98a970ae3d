//! The library's errors as Python's. The classes stand in quelea_client/errors.py.

use std::ops::Range;
use std::time::Duration;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use quelea_elastic_client::{Error, MessageSeq, Named as _, PublishError};

fn raise<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let error = py
        .import("quelea_client.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1(arguments));
    match error {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Returns Python's `range(from, to)`.
fn numbers<'py>(py: Python<'py>, of: &Range<MessageSeq>) -> PyResult<Bound<'py, PyAny>> {
    py.import("builtins")?.getattr("range")?.call1((of.start.0, of.end.0))
}

pub(crate) fn forked(py: Python<'_>) -> PyErr {
    raise(py, "Forked", ("it belongs to the parent process; make a new client",))
}

/// Returns a `NotAcknowledged`. `unacknowledged` are the producer's messages that are in doubt now.
pub(crate) fn not_acknowledged(
    py: Python<'_>,
    unacknowledged: &Range<MessageSeq>,
    within: Option<Duration>,
) -> PyErr {
    match numbers(py, unacknowledged) {
        Ok(numbers) => {
            raise(py, "NotAcknowledged", (numbers, within.map(|within| within.as_secs_f64())))
        }
        Err(error) => error,
    }
}

/// Returns Python's exception for an error of the client. `unacknowledged` are the messages that
/// are in doubt, if it concerns a producer.
pub(crate) fn client(
    py: Python<'_>,
    error: Error,
    unacknowledged: Option<&Range<MessageSeq>>,
) -> PyErr {
    let in_doubt = match numbers(py, unacknowledged.unwrap_or(&(MessageSeq(0)..MessageSeq(0)))) {
        Ok(in_doubt) => in_doubt,
        Err(error) => return error,
    };
    match error {
        Error::Refused(refused) => {
            let code = refused.code.as_str();
            raise(py, "Refused", (code, refused.field, refused.text, in_doubt))
        }
        Error::Publish(PublishError::Full { bytes, limit }) => {
            raise(py, "WouldBlock", (bytes, limit))
        }
        Error::Publish(PublishError::Message(reason)) => {
            let reason = reason.to_string();
            raise(py, "InvalidMessage", (reason.strip_prefix("message: ").unwrap_or(&reason),))
        }
        Error::Publish(PublishError::Closed) | Error::Closed => raise(py, "Closed", (in_doubt,)),
        Error::Subscribe(reason) => {
            let reason = reason.to_string();
            let (field, reason) = reason.split_once(": ").unwrap_or(("prefix", &reason));
            raise(py, "ConfigurationError", (field, reason))
        }
        Error::NoDirectory => {
            raise(py, "ConfigurationError", ("directories", "at least one address is needed"))
        }
        Error::Invalid { field, reason } => raise(py, "ConfigurationError", (field, reason)),
        Error::NotOpened { queue, within, cause } => {
            raise(py, "NotOpened", (queue, within.as_secs_f64(), cause))
        }
        Error::Random(reason) => PyOSError::new_err(reason),
    }
}

/// Returns what `client` returns, from a thread of the library.
pub(crate) fn from_afar(error: Error, unacknowledged: Option<&Range<MessageSeq>>) -> PyErr {
    Python::attach(|py| client(py, error, unacknowledged))
}

pub(crate) fn configuration(py: Python<'_>, field: &str, reason: &str) -> PyErr {
    raise(py, "ConfigurationError", (field, reason))
}

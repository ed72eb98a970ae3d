//! The library's errors as Python's. The classes stand in quelea_cmq/errors.py.

use std::io;
use std::time::Duration;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use quelea_cmq::request::CallerError;
use quelea_cmq::{DestinationError, MailboxError, PushError};

fn raise<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let error = py
        .import("quelea_cmq.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1(arguments));
    match error {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// Returns Python's exception for an error of the operating system, with the number, by which
/// Python chooses among the kinds of `OSError`.
pub(crate) fn system(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text))
        }
        None => error.into(),
    }
}

pub(crate) fn closed(py: Python<'_>, what: &str) -> PyErr {
    raise(py, "Closed", (format!("the {what} is closed"),))
}

pub(crate) fn is_closed(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    Ok(error.is_instance(py, &py.import("quelea_cmq.errors")?.getattr("Closed")?))
}

pub(crate) fn forked(py: Python<'_>) -> PyErr {
    raise(py, "Forked", ("it belongs to the parent process; bind a new endpoint",))
}

pub(crate) fn not_acknowledged(py: Python<'_>, within: Duration) -> PyErr {
    raise(py, "NotAcknowledged", (within.as_secs_f64(),))
}

/// Returns the exception for messages that were given up: the peer is gone, or a deadline has
/// passed.
pub(crate) fn abandoned(py: Python<'_>) -> PyErr {
    raise(py, "NotAcknowledged", (py.None(),))
}

pub(crate) fn no_answer(py: Python<'_>, asked: u32) -> PyErr {
    raise(py, "NoAnswer", (asked,))
}

/// Returns the exception for a caller that cannot be made.
pub(crate) fn caller(py: Python<'_>, error: CallerError) -> PyErr {
    match error {
        CallerError::Destination(error) => destination(py, error),
        CallerError::Mailbox(error) => mailbox(py, error),
        CallerError::Random => PyOSError::new_err(error.to_string()),
    }
}

/// Returns the exception for an option with a value that it cannot have.
pub(crate) fn configuration(
    option: &str,
    value: &Bound<'_, PyAny>,
    reason: impl AsRef<str>,
) -> PyErr {
    raise(value.py(), "ConfigurationError", (option, value, reason.as_ref()))
}

pub(crate) fn unknown_option(name: &str) -> PyErr {
    PyTypeError::new_err(format!("'{name}' is not an option here"))
}

/// Returns the exception for a push that failed; `pushed` messages of the batch were taken before.
pub(crate) fn push(py: Python<'_>, error: PushError, pushed: usize) -> PyErr {
    match error {
        PushError::TooLarge { bytes, limit } => raise(py, "MessageTooLarge", (bytes, limit)),
        PushError::WouldBlock => raise(py, "WouldBlock", (pushed,)),
        PushError::Closed => closed(py, "destination"),
        PushError::NotText => {
            raise(py, "NotText", ("the message is not UTF-8, and this wire carries strings only",))
        }
    }
}

pub(crate) fn mailbox(py: Python<'_>, error: MailboxError) -> PyErr {
    match error {
        MailboxError::Open(mailbox) => raise(py, "MailboxInUse", (mailbox.0,)),
        // It has no number of its own.
        MailboxError::OthersOpen => raise(py, "MailboxInUse", (py.None(),)),
        MailboxError::TooMany { limit } => raise(py, "TooMany", ("mailboxes", limit)),
    }
}

pub(crate) fn destination(py: Python<'_>, error: DestinationError) -> PyErr {
    match error {
        DestinationError::TooMany { limit } => raise(py, "TooMany", ("destinations", limit)),
        DestinationError::Conflict => {
            raise(py, "DestinationConflict", ("the destination exists with other options",))
        }
        DestinationError::Invalid(reason) => {
            raise(py, "ConfigurationError", ("options", py.None(), reason))
        }
    }
}

//! The library's events as those of quelea_cmq/events.py.

use pyo3::prelude::*;
use quelea_cmq::Event;

use crate::key::{to_address, to_key};

pub(crate) fn to_python(py: Python<'_>, event: Event) -> PyResult<Bound<'_, PyAny>> {
    let classes = py.import("quelea_cmq.events")?;
    match event {
        Event::Lost { from, mailbox, messages } => {
            classes.getattr("Lost")?.call1((to_address(py, from)?, mailbox.0, messages))
        }
        Event::Restarted { from, mailbox } => {
            classes.getattr("Restarted")?.call1((to_address(py, from)?, mailbox.0))
        }
        Event::Ended { from, session, mailbox } => {
            classes.getattr("Ended")?.call1((to_address(py, from)?, session, mailbox.0))
        }
        Event::Abandoned { to, messages } => {
            classes.getattr("Abandoned")?.call1((to_key(py, to)?, messages))
        }
    }
}

//! The library's queue, and what was given back to it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quelea_cmq::Queue as CmqQueue;

use crate::message::Message;

/// The library's queue, and messages that were taken from it for somebody who no longer wanted them.
pub(crate) struct Mailbox {
    pub(crate) queue: CmqQueue,
    returned: Mutex<VecDeque<Py<Message>>>,
    returned_count: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new(queue: CmqQueue) -> Self {
        let (returned, returned_count) = (Mutex::new(VecDeque::new()), AtomicUsize::new(0));
        Self { queue, returned, returned_count }
    }

    pub(crate) fn next_returned(&self) -> Option<Py<Message>> {
        if self.returned_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        let message = returned.pop_front();
        self.returned_count.store(returned.len(), Ordering::Release);
        message
    }

    pub(crate) fn put_back(&self, message: Py<Message>) {
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        returned.push_front(message);
        self.returned_count.store(returned.len(), Ordering::Release);
    }

    pub(crate) fn try_pop<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Message>>> {
        if let Some(message) = self.next_returned() {
            return Ok(Some(message.into_bound(py)));
        }
        self.queue
            .try_pop()
            .map(|popped| Message::copied(py, &popped).into_pyobject(py))
            .transpose()
    }

    /// Takes what is here now, at most `max` messages, and returns it.
    pub(crate) fn take<'py>(
        &self,
        py: Python<'py>,
        max: usize,
    ) -> PyResult<Vec<Bound<'py, Message>>> {
        let mut messages = Vec::new();
        while messages.len() < max
            && let Some(message) = self.next_returned()
        {
            messages.push(message.into_bound(py));
        }
        // Only bytes are made in the library's callback: nothing there may run Python code, which
        // could come back to this queue.
        let mut popped = Vec::new();
        self.queue.pop_batch(max - messages.len(), Duration::ZERO, |message| {
            let bytes = PyBytes::new(py, message.bytes);
            let (mailbox, receipt) = (message.mailbox.0, message.receipt());
            popped.push(Message::new(bytes, message.from, mailbox, message.session, receipt));
        });
        for message in popped {
            messages.push(message.into_pyobject(py)?);
        }
        Ok(messages)
    }
}

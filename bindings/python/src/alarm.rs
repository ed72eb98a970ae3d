//! What one event loop waits for at one queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use quelea_cmq::Message as Popped;

use crate::bell::Bell;
use crate::error;
use crate::fork::Owned;
use crate::mailbox::Mailbox;
use crate::message::Message;

type NextPop = Pin<Box<dyn Future<Output = Option<Popped>> + Send>>;

/// Rings a loop's bell when a queue has a message. However many wait in a loop for a queue, the
/// library knows of one. quelea_cmq/waiting.py says how it is used.
#[pyclass(frozen, module = "quelea_cmq._core")]
pub(crate) struct Alarm {
    mailbox: Owned<Arc<Mailbox>>,
    waker: Waker,
    armed: Owned<Mutex<Option<NextPop>>>,
}

impl Alarm {
    pub(crate) fn new(mailbox: Arc<Mailbox>, bell: &Bell, number: u64) -> Self {
        let armed = Owned::new(Mutex::new(None));
        Self { mailbox: Owned::new(mailbox), waker: bell.waker(number), armed }
    }
}

#[pymethods]
impl Alarm {
    /// Takes at most `max` messages that are here now, and returns them.
    fn take<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Vec<Bound<'py, Message>>> {
        self.mailbox.get(py)?.take(py, max)
    }

    /// Lets the bell ring when there is a message. Returns True if there is one already.
    fn arm(&self, py: Python<'_>) -> PyResult<bool> {
        let mailbox = self.mailbox.get(py)?;
        let mut armed = self.armed.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        let next = armed.get_or_insert_with(|| {
            let mailbox = Arc::clone(mailbox);
            Box::pin(async move { mailbox.queue.pop_async().await })
        });
        let popped = match next.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => return Ok(false),
            Poll::Ready(popped) => popped,
        };
        *armed = None;
        drop(armed);
        let popped = popped.ok_or_else(|| error::closed(py, "queue"))?;
        mailbox.put_back(Message::copied(py, &popped).into_pyobject(py)?.unbind());
        Ok(true)
    }

    /// Ends the waiting: nobody waits any more.
    fn disarm(&self, py: Python<'_>) -> PyResult<()> {
        let armed = self.armed.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(armed);
        Ok(())
    }

    /// Makes a message the next one again.
    fn put_back(&self, py: Python<'_>, message: Py<Message>) -> PyResult<()> {
        self.mailbox.get(py)?.put_back(message);
        Ok(())
    }
}

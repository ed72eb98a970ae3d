//! How an event loop learns that a queue has a message: a descriptor becomes readable. Whoever rings
//! it is a thread of the library, which must not wait for the GIL.

use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::prelude::*;
use quelea_cmq::Message as Popped;

use crate::error;
use crate::fork::Owned;
use crate::message::Message;
use crate::queue::Mailbox;

type NextPop = Pin<Box<dyn Future<Output = Option<Popped>> + Send>>;

/// One event loop's ear at a queue. quelea_cmq/waiting.py says how it is used.
#[pyclass(frozen, module = "quelea_cmq._core")]
pub(crate) struct Alarm {
    mailbox: Owned<Arc<Mailbox>>,
    bell: Arc<Bell>,
    armed: Owned<Mutex<Option<NextPop>>>,
}

impl Alarm {
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> PyResult<Self> {
        let bell = Arc::new(Bell::new()?);
        Ok(Self { mailbox: Owned::new(mailbox), bell, armed: Owned::new(Mutex::new(None)) })
    }
}

#[pymethods]
impl Alarm {
    /// The descriptor to watch for reading.
    fn fileno(&self) -> i32 {
        self.bell.ear.as_raw_fd()
    }

    /// Makes the descriptor unreadable until it is rung again.
    fn silence(&self) {
        self.bell.silence();
    }

    /// At most `max` messages that are here now.
    fn take<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Vec<Bound<'py, Message>>> {
        self.mailbox.get(py)?.take(py, max)
    }

    /// Has the descriptor rung when there is a message. True if there is one already.
    fn arm(&self, py: Python<'_>) -> PyResult<bool> {
        let mailbox = self.mailbox.get(py)?;
        let mut armed = self.armed.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        let next = armed.get_or_insert_with(|| {
            let mailbox = Arc::clone(mailbox);
            Box::pin(async move { mailbox.queue.pop_async().await })
        });
        let waker = Waker::from(Arc::clone(&self.bell));
        let popped = match next.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => return Ok(false),
            Poll::Ready(popped) => popped,
        };
        *armed = None;
        drop(armed);
        match popped {
            Some(popped) => {
                mailbox.put_back(Message::copied(py, &popped).into_pyobject(py)?.unbind());
                Ok(true)
            }
            None => Err(error::closed(py, "queue")),
        }
    }

    /// Nobody waits any more.
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

/// A pair of connected sockets: a byte in the one makes the other readable.
struct Bell {
    ear: UnixStream,
    rope: UnixStream,
    rung: AtomicBool,
}

impl Bell {
    fn new() -> PyResult<Self> {
        let (ear, rope) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Self { ear, rope, rung: AtomicBool::new(false) })
    }

    /// The flag is put down after the byte was read: a ring in between finds it up and writes
    /// nothing, and its message is found by whoever looks after this.
    fn silence(&self) {
        if self.rung.load(Ordering::Acquire) {
            let mut byte = [0];
            // Nothing to read is as good as silence.
            let _ = (&self.ear).read(&mut byte);
            self.rung.store(false, Ordering::Release);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // At most one byte is under way, so it is never full; a closed ear hears nothing.
            let _ = (&self.rope).write(&[1]);
        }
    }
}

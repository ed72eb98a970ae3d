//! How an event loop learns that something of the library is ready: a descriptor becomes readable.
//! Whoever rings it is a thread of the library, which must not wait for the GIL.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use pyo3::prelude::*;

/// One event loop's bell. quelea_cmq/loops.py says how it is used.
#[pyclass(frozen, module = "quelea_cmq._core")]
pub(crate) struct Bell {
    ropes: Arc<Ropes>,
    ear: UnixStream,
}

impl Bell {
    /// Rings for `number`.
    pub(crate) fn waker(&self, number: u64) -> Waker {
        Waker::from(Arc::new(Rope { ropes: Arc::clone(&self.ropes), number }))
    }
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let (ear, far) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok(Self { ropes: Arc::new(Ropes { far, pulled: Mutex::new(Vec::new()) }), ear })
    }

    /// Returns the descriptor to watch for reading.
    fn fileno(&self) -> i32 {
        self.ear.as_raw_fd()
    }

    /// Returns the numbers for which it was rung since the last time.
    fn heard(&self) -> Vec<u64> {
        let mut byte = [0];
        // Read before the numbers are taken: a ring in between leaves a number, or a byte, behind.
        // Nothing to read means that they were taken already.
        let _ = (&self.ear).read(&mut byte);
        std::mem::take(&mut *self.ropes.pulled.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The far end: a byte written there makes the ear readable.
struct Ropes {
    far: UnixStream,
    pulled: Mutex<Vec<u64>>,
}

/// What is given to the library to ring with.
struct Rope {
    ropes: Arc<Ropes>,
    number: u64,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut pulled = self.ropes.pulled.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = pulled.is_empty();
        pulled.push(self.number);
        drop(pulled);
        if silent {
            // At most two bytes are under way, so there is always room; a closed ear hears nothing.
            let _ = (&self.ropes.far).write(&[1]);
        }
    }
}

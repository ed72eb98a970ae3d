//! Closing: by the program, or when Python ends and the program forgot.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use quelea_cmq::Endpoint as CmqEndpoint;
use quelea_cmq::endpoint::Unsettled;

use crate::fork::Owned;

/// An endpoint until it is closed.
#[derive(Debug)]
pub(crate) struct Leaving {
    open: Mutex<Option<CmqEndpoint>>,
    address: SocketAddr,
    linger: Duration,
}

impl Leaving {
    pub(crate) fn new(endpoint: CmqEndpoint, linger: Duration) -> Self {
        let address = endpoint.local_addr();
        Self { open: Mutex::new(Some(endpoint)), address, linger }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) const fn linger(&self) -> Duration {
        self.linger
    }

    /// Returns a handle to the endpoint if it is open.
    pub(crate) fn open(&self) -> Option<CmqEndpoint> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the endpoint. Returns an error if not everything was sent, and acknowledged where it
    /// is reliable, in that time. Closing twice is closing once.
    pub(crate) fn close(&self, within: Duration) -> Result<(), Unsettled> {
        let endpoint = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        endpoint.map_or(Ok(()), |endpoint| endpoint.close(within))
    }
}

/// Every endpoint that is not closed, so that the last batches leave when Python ends.
static LEAVING: Mutex<Vec<Owned<Weak<Leaving>>>> = Mutex::new(Vec::new());

pub(crate) fn remember(py: Python<'_>, leaving: &Arc<Leaving>) {
    let mut all = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|other| other.get(py).is_ok_and(|other| other.strong_count() > 0));
    all.push(Owned::new(Arc::downgrade(leaving)));
}

/// `atexit` has it called.
#[pyfunction]
pub(crate) fn _at_exit(py: Python<'_>) {
    let all = std::mem::take(&mut *LEAVING.lock().unwrap_or_else(PoisonError::into_inner));
    for leaving in all.iter().filter_map(|leaving| leaving.get(py).ok()?.upgrade()) {
        // Nobody is left to report to that something was not acknowledged.
        let _ = py.detach(|| leaving.close(leaving.linger()));
    }
}

//! Ending a client's call from another thread: a long poll may have twenty seconds to go.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Ends the calls of one client, the one under way and those to come.
#[derive(Debug, Clone, Default)]
pub struct Canceller(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_cancelled: bool,
    socket: Option<TcpStream>,
}

impl Canceller {
    /// From now on every call fails with [`crate::Error::Cancelled`]. A message that was on its way
    /// comes back by its visibility timeout.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        if let Some(socket) = state.socket.take() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.0.changed.notify_all();
    }

    /// Returns whether calls fail now.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Remembers what to shut down when it comes to that; false if it has already.
    pub(crate) fn watch(&self, socket: TcpStream) -> bool {
        let mut state = self.lock();
        state.socket = Some(socket);
        !state.is_cancelled
    }

    /// Waits; true if it was cancelled meanwhile.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self.0.changed.wait_timeout_while(state, time, |state| !state.is_cancelled);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_cancelled
    }

    /// Locks the state. It is two fields that are always in order, so a panic elsewhere does not
    /// spoil it.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

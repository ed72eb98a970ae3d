//! Logins of connections: passwords are checked on another thread, and the results come back to the
//! core's next turn.

use std::sync::{Arc, mpsc};

use tokio::sync::Notify;

use crate::authenticator::{Authenticator, Credentials};

/// The result of a password check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginResult {
    /// The connection's slot, and its generation there.
    pub(crate) slot: usize,
    pub(crate) generation: u64,
    pub(crate) verified: bool,
}

/// Password checks under way.
pub(crate) struct Logins {
    authenticator: Authenticator,
    wake: Arc<Notify>,
    sender: mpsc::Sender<LoginResult>,
    results: mpsc::Receiver<LoginResult>,
}

impl Logins {
    pub(crate) fn new(authenticator: Authenticator, wake: Arc<Notify>) -> Self {
        let (sender, results) = mpsc::channel();
        Self { authenticator, wake, sender, results }
    }

    /// Checks the credentials of a connection. Returns the result if it is known at once; else it comes
    /// by [`Logins::poll_result`].
    pub(crate) fn check(
        &self,
        slot: usize,
        generation: u64,
        credentials: Credentials,
    ) -> Option<bool> {
        if self.authenticator.remembers(&credentials) {
            return Some(true);
        }
        let (sender, wake) = (self.sender.clone(), Arc::clone(&self.wake));
        let reply = move |verified| {
            // Without a core there is no connection either.
            let _ = sender.send(LoginResult { slot, generation, verified });
            wake.notify_one();
        };
        if self.authenticator.verify(credentials, reply).is_err() {
            tracing::warn!("a login is refused: too many wait already");
            return Some(false);
        }
        None
    }

    pub(crate) fn poll_result(&self) -> Option<LoginResult> {
        self.results.try_recv().ok()
    }
}

//! Logins of connections: passwords are checked on another thread, and the results come back to the
//! core's next turn.

use std::net::IpAddr;
use std::sync::{Arc, mpsc};

use quelea_net::{Failed, Front};
use tokio::sync::Notify;

use crate::authenticator::{Authenticator, Credentials, Verdict, Verification};

/// The result of a password check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginResult {
    /// The connection's slot, and its generation there.
    pub(crate) slot: usize,
    pub(crate) generation: u64,
    pub(crate) verdict: Verdict,
}

/// What is known at once.
pub(crate) enum LoginCheck {
    /// The verdict.
    Known(Verdict),
    /// Nothing: it comes by [`Logins::poll_result`], unless this is dropped before.
    Waits(Verification),
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

    /// Checks the credentials of a connection.
    pub(crate) fn check(
        &self,
        slot: usize,
        generation: u64,
        peer: IpAddr,
        credentials: Credentials,
    ) -> LoginCheck {
        if let Some(is_good) = self.authenticator.remembered(&credentials) {
            return LoginCheck::Known(is_good.into());
        }
        let (sender, wake) = (self.sender.clone(), Arc::clone(&self.wake));
        let reply = move |verdict| {
            // Without a core there is no connection either.
            let _ = sender.send(LoginResult { slot, generation, verdict });
            wake.notify_one();
        };
        LoginCheck::Waits(self.authenticator.verify(peer, credentials, reply))
    }

    /// Counts a login that has failed; returns how long its answer is to wait.
    pub(crate) fn failed(&self, peer: IpAddr, user: &str) -> Failed {
        self.authenticator.failures().add(Front::Amqp, peer, user)
    }

    pub(crate) fn poll_result(&self) -> Option<LoginResult> {
        self.results.try_recv().ok()
    }
}

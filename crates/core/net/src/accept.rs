//! Accepting connections, which goes on whatever happens.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Until accepting is tried again after it failed for want of open files or memory, which last for a while.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A listener that never ends. When accepting fails it logs one line for the whole time, which may be long, and tries
/// again.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    /// What is accepted, for the log: "AMQP connections".
    accepted: &'static str,
    failing: bool,
}

impl Acceptor {
    /// Returns an acceptor over a listener; `accepted` says in the log what could not be accepted
    /// ("AMQP connections").
    #[must_use]
    pub const fn new(listener: TcpListener, accepted: &'static str) -> Self {
        Self { listener, accepted, failing: false }
    }

    /// Returns the next connection and its peer; `failed` is called for each attempt that fails. A
    /// caller that stops waiting loses no connection.
    pub async fn accept(&mut self, mut failed: impl FnMut()) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => {
                    self.failing = false;
                    return accepted;
                }
                Err(error) => {
                    failed();
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(%error, "cannot accept {}, tries again", self.accepted);
                    }
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

//! A message in a worker's hands, with the lease on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::message::Message;

/// A message that is to be handled.
#[derive(Debug)]
pub struct Task {
    message: Message,
    lease: Mutex<Lease>,
    is_lost: AtomicBool,
}

/// For how long nobody else gets the message. Whoever calls the service about it holds the lock, so
/// that an extension cannot overtake the return of the message.
#[derive(Debug)]
pub(crate) struct Lease {
    /// When it is to be extended.
    pub extend_at: Instant,
    /// The message was deleted or given back.
    pub is_settled: bool,
}

impl Task {
    pub(crate) fn new(message: Message, extend_after: Duration) -> Self {
        let lease = Lease { extend_at: Instant::now() + extend_after, is_settled: false };
        Self { message, lease: Mutex::new(lease), is_lost: AtomicBool::new(false) }
    }

    /// Returns the message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// Returns whether the message is still in nobody else's hands, as far as is known. A handler
    /// that takes long may look, and give up.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed)
    }

    /// Waits while somebody calls the service about it.
    pub(crate) fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the lease; `None` while somebody calls the service about it.
    pub(crate) fn lease_if_free(&self) -> Option<MutexGuard<'_, Lease>> {
        match self.lease.try_lock() {
            Ok(lease) => Some(lease),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes note that somebody else may have the message; true the first time.
    pub(crate) fn lose(&self) -> bool {
        !self.is_lost.swap(true, Ordering::Relaxed)
    }

    /// Returns the message group, if it has one.
    pub(crate) fn group(&self) -> Option<&str> {
        self.message.attributes.get("MessageGroupId").map(String::as_str)
    }
}

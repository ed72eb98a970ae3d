//! The paper's interface: `newRq`, `cwPush`, `cwPop`, for values of one type.

use std::io;
use std::marker::PhantomData;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use quelea_cmq_proto::{Config, Key, MailboxOptions, PushError};

use crate::codec::Codec;
use crate::endpoint::Endpoint;
use crate::message::Message;
use crate::queue::Queue;

/// A queue of values of `T`, in and out by one socket (paper, section "newRq"). `C` says how values
/// become bytes.
#[cfg(feature = "postcard")]
#[derive(Debug)]
pub struct Cmq<T, C = crate::codec::Postcard> {
    queue: Queue,
    undecodable: AtomicU64,
    values: PhantomData<fn(T, C) -> T>,
}

/// A queue of values of `T`, in and out by one socket (paper, section "newRq"). `C` says how values
/// become bytes.
#[cfg(not(feature = "postcard"))]
#[derive(Debug)]
pub struct Cmq<T, C> {
    queue: Queue,
    undecodable: AtomicU64,
    values: PhantomData<fn(T, C) -> T>,
}

/// Why a value was not pushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CwPushError<E> {
    /// It can't be encoded.
    #[error("the value can't be encoded: {0}")]
    Encode(E),
    /// It can't be pushed.
    #[error(transparent)]
    Push(#[from] PushError),
}

impl<T, C: Codec<T>> Cmq<T, C> {
    /// Opens a queue on `socket`, whose batches have at most `qthresh` bytes and wait at most
    /// `timeout`. It gets what is pushed to the socket's address and `mailbox`, the integer of the
    /// paper's key (a process number, or 0), and nothing else.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn new_rq(
        socket: UdpSocket,
        mailbox: u64,
        qthresh: usize,
        timeout: Duration,
    ) -> io::Result<Self> {
        let config = Config { qthresh, timeout, ..Config::default() };
        let endpoint = Endpoint::from_socket(socket, config)?;
        let queue = endpoint.queue(mailbox, MailboxOptions::default()).map_err(io::Error::other)?;
        Ok(Self::from_queue(queue))
    }

    /// Returns the typed side of a queue that is open already.
    #[must_use]
    pub const fn from_queue(queue: Queue) -> Self {
        Self { queue, undecodable: AtomicU64::new(0), values: PhantomData }
    }

    /// Pushes `value` to `key`.
    ///
    /// # Errors
    /// [`CwPushError`]: it can't be encoded, or not pushed.
    pub fn cw_push(&self, key: Key, value: &T) -> Result<(), CwPushError<C::Error>> {
        let mut bytes = Vec::new();
        C::encode(value, &mut bytes).map_err(CwPushError::Encode)?;
        Ok(self.endpoint().push(key, &bytes)?)
    }

    /// Takes the next value if one is here. What can't be decoded is counted and skipped.
    #[must_use]
    pub fn cw_pop(&self) -> Option<T> {
        loop {
            if let Some(value) = self.value_of(&self.queue.try_pop()?) {
                return Some(value);
            }
        }
    }

    /// Waits for the next value at most so long.
    #[must_use]
    pub fn cw_pop_timeout(&self, within: Duration) -> Option<T> {
        let clock = self.endpoint().driver().clock;
        let deadline = clock.after(within);
        loop {
            let left = Duration::from_micros(deadline.since_us(clock.now()));
            if let Some(value) = self.value_of(&self.queue.pop_timeout(left)?) {
                return Some(value);
            }
        }
    }

    fn value_of(&self, message: &Message) -> Option<T> {
        let value = C::decode(&message.bytes).ok();
        if value.is_none() {
            self.undecodable.fetch_add(1, Relaxed);
        }
        value
    }

    /// Returns the number of messages that were not those of a `T`, and were skipped.
    #[must_use]
    pub fn undecodable(&self) -> u64 {
        self.undecodable.load(Relaxed)
    }

    /// Returns the endpoint below.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        self.queue.endpoint()
    }

    /// Returns the queue below.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
}

//! The paper's interface: `newRq`, `cwPush`, `cwPop`, for values of one type.

use std::io;
use std::marker::PhantomData;
use std::net::UdpSocket;
use std::time::Duration;

use quelea_cmq_proto::{Key, PushError};

use crate::codec::Codec;
use crate::endpoint::Endpoint;
use crate::queue::Queue;

/// A queue of values of `T`, in and out by one socket (paper, section "newRq"). `C` says how values
/// become bytes.
#[cfg(feature = "postcard")]
#[derive(Debug)]
pub struct Cmq<T, C = crate::codec::Postcard> {
    queue: Queue,
    values: PhantomData<fn(T, C) -> T>,
}

/// A queue of values of `T`, in and out by one socket (paper, section "newRq"). `C` says how values
/// become bytes.
#[cfg(not(feature = "postcard"))]
#[derive(Debug)]
pub struct Cmq<T, C> {
    queue: Queue,
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

#[allow(unused_variables, clippy::todo, clippy::unused_self)]
impl<T, C: Codec<T>> Cmq<T, C> {
    /// A queue on `socket`, mailbox 0, whose batches have at most `qthresh` bytes and wait at most
    /// `timeout`.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn new_rq(socket: UdpSocket, qthresh: usize, timeout: Duration) -> io::Result<Self> {
        todo!()
    }

    /// The typed side of a queue that is open already.
    #[must_use]
    pub const fn from_queue(queue: Queue) -> Self {
        Self { queue, values: PhantomData }
    }

    /// Pushes `value` to `key`.
    ///
    /// # Errors
    /// [`CwPushError`]: it can't be encoded, or not pushed.
    pub fn cw_push(&self, key: Key, value: &T) -> Result<(), CwPushError<C::Error>> {
        todo!()
    }

    /// The next value if one is here. What can't be decoded is counted and skipped.
    #[must_use]
    pub fn cw_pop(&self) -> Option<T> {
        todo!()
    }

    /// Waits for the next value at most so long.
    #[must_use]
    pub fn cw_pop_timeout(&self, within: Duration) -> Option<T> {
        todo!()
    }

    /// The endpoint below.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        self.queue.endpoint()
    }

    /// The queue below.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
}

//! A handle to a destination: pushes without the look-up of its key.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use quelea_cmq_proto::config::Wire;
use quelea_cmq_proto::{
    DestinationId, DestinationOptions, DestinationStats, Key, PushError, Time, WhenFull,
};

use crate::endpoint::{DestinationError, Endpoint};
use crate::outcome::Outcome;
use crate::push::Patience;
pub use crate::push::PushBatchError;
use crate::until::Until;
use crate::wait_future::WaitFuture;

/// A destination of an [`Endpoint`]. Clones are handles to the same one; dropping one closes nothing,
/// and what is pending leaves when its time has come.
#[derive(Clone, Debug)]
pub struct Dest {
    endpoint: Endpoint,
    key: Key,
    id: DestinationId,
    blocks: bool,
    /// How many occasions on which messages were given up this handle and its clones have reported.
    reported: Arc<AtomicU32>,
}

impl Endpoint {
    /// Returns a handle to the destination `key`, made anew or found. `options.path_bytes` is found
    /// out and need not be set; a multicast group has no credit, whatever the options say.
    ///
    /// # Errors
    /// [`DestinationError`]: too many, other options than before, or options that make no sense.
    pub fn dest(&self, key: Key, options: DestinationOptions) -> Result<Dest, DestinationError> {
        let when_full = options.when_full;
        let id = self.destination(key, options)?;
        Ok(Dest::new(self.clone(), key, id, when_full))
    }

    fn destination(
        &self,
        key: Key,
        mut options: DestinationOptions,
    ) -> Result<DestinationId, DestinationError> {
        let driver = self.driver();
        // Asks the kernel, the first time; not under a lock.
        if let Some(bytes) = driver.net.path_bytes(key.address.ip()) {
            options.path_bytes = bytes;
        }
        if key.address.ip().is_multicast() || self.wire() != Wire::Quelea {
            options.credit = false;
        }
        driver.lock().proto.destination(key, options)
    }

    /// Pushes to the destination of `key`, made with the default options if there is none: the paper's
    /// `cwPush`.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::push`]; closed also if there are too many destinations.
    pub fn push(&self, key: Key, message: &[u8]) -> Result<(), PushError> {
        self.push_to(key, message, Some(None))
    }

    /// Pushes as [`push`](Self::push) does, but never waits.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::try_push`]; closed also if there are too many destinations.
    pub fn try_push(&self, key: Key, message: &[u8]) -> Result<(), PushError> {
        self.push_to(key, message, None)
    }

    fn push_to(&self, key: Key, message: &[u8], patience: Patience) -> Result<(), PushError> {
        let driver = self.driver();
        let found = driver.lock().proto.find(&key);
        let id = match found {
            Some(id) => id,
            None => self
                .destination(key, DestinationOptions::default())
                .map_err(|_| PushError::Closed)?,
        };
        driver.push(id, message, patience)
    }
}

impl Dest {
    pub(crate) fn new(
        endpoint: Endpoint,
        key: Key,
        id: DestinationId,
        when_full: WhenFull,
    ) -> Self {
        let blocks = matches!(when_full, WhenFull::Block);
        let before = endpoint.driver().lock().proto.given_up(id).map_or(0, |(times, _)| times);
        Self { endpoint, key, id, blocks, reported: Arc::new(AtomicU32::new(before)) }
    }

    /// Puts a message into the destination's batch; sends the batch first if the message would make
    /// it too large. With [`WhenFull::Block`] it waits for room.
    ///
    /// # Errors
    /// [`PushError`]: too large, no room (and set not to wait), or closed.
    #[inline]
    pub fn push(&self, message: &[u8]) -> Result<(), PushError> {
        self.endpoint.driver().push(self.id, message, self.blocks.then_some(None))
    }

    /// Pushes as [`push`](Self::push) does, but never waits.
    ///
    /// # Errors
    /// [`PushError`]: too large, no room, or closed.
    #[inline]
    pub fn try_push(&self, message: &[u8]) -> Result<(), PushError> {
        self.endpoint.driver().push(self.id, message, None)
    }

    /// Pushes as [`push`](Self::push) does, but waits for room at most so long, whatever the
    /// options say.
    ///
    /// # Errors
    /// [`PushError`]: too large, no room in that time, or closed.
    pub fn push_timeout(&self, message: &[u8], within: Duration) -> Result<(), PushError> {
        let driver = self.endpoint.driver();
        match driver.push(self.id, message, None) {
            Err(PushError::WouldBlock) => {
                let deadline = driver.clock.after(within);
                driver.push(self.id, message, Some(Some(deadline)))
            }
            done => done,
        }
    }

    /// Pushes as [`push`](Self::push) does, but waits for room, if it does, no longer than to
    /// `deadline`.
    pub(crate) fn push_until(&self, message: &[u8], deadline: Time) -> Result<(), PushError> {
        self.endpoint.driver().push(self.id, message, self.blocks.then_some(Some(deadline)))
    }

    /// Pushes as [`push`](Self::push) does, but waits for room as a future of any runtime, whatever
    /// the options say. Dropped before its end it has pushed nothing.
    ///
    /// # Errors
    /// [`PushError`]: too large, or closed.
    pub async fn push_async(&self, message: &[u8]) -> Result<(), PushError> {
        let until = Until::Writable(self.id, message.len());
        loop {
            match self.try_push(message) {
                Err(PushError::WouldBlock) => {
                    WaitFuture::new(self.endpoint.driver(), until.clone(), None).await;
                }
                done => return done,
            }
            // Room that others take each time must not keep this executor's thread.
            yield_now().await;
        }
    }

    /// Pushes many messages under one lock; returns how many.
    ///
    /// # Errors
    /// The first message that could not be pushed, and how many were before it.
    pub fn push_batch<I>(&self, messages: I) -> Result<usize, PushBatchError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        self.endpoint.driver().push_batch(self.id, messages, self.blocks.then_some(None))
    }

    /// Pushes as [`push_batch`](Self::push_batch) does, but never waits.
    ///
    /// # Errors
    /// The first message that could not be pushed, and how many were before it.
    pub fn try_push_batch<I>(&self, messages: I) -> Result<usize, PushBatchError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        self.endpoint.driver().push_batch(self.id, messages, None)
    }

    /// Sends what is pending now.
    pub fn flush(&self) {
        self.endpoint.driver().change(|state, _| state.proto.flush(self.id));
    }

    /// Flushes and waits until everything has left, and in reliable modes is acknowledged, at most so
    /// long. What was given up since this handle and its clones last returned is
    /// [`Outcome::Abandoned`].
    pub fn wait_acknowledged(&self, within: Duration) -> Outcome {
        let driver = self.endpoint.driver();
        let deadline = driver.clock.after(within);
        let reported = self.reported.load(Relaxed);
        let mut found = None;
        driver.wait_then(&Until::Settled(self.id), Some(deadline), |state, _| {
            found = Outcome::of(state, self.id, reported);
            0
        });
        self.report(found)
    }

    /// Waits as [`wait_acknowledged`](Self::wait_acknowledged) does, as a future of any runtime and
    /// without a limit: never [`Outcome::TimedOut`].
    pub async fn wait_acknowledged_async(&self) -> Outcome {
        let driver = self.endpoint.driver();
        let reported = self.reported.load(Relaxed);
        loop {
            WaitFuture::new(driver, Until::Settled(self.id), None).await;
            // None if another one has pushed between the two looks.
            let found = Outcome::of(&driver.lock(), self.id, reported);
            if found.is_some() {
                return self.report(found);
            }
        }
    }

    fn report(&self, found: Option<(Outcome, u32)>) -> Outcome {
        let (outcome, times) = found.unwrap_or((Outcome::TimedOut, 0));
        self.reported.fetch_max(times, Relaxed);
        outcome
    }

    /// Returns what was sent, repeated and lost of what was pushed, what is under way, and the
    /// round trip. None once it is closed and forgotten.
    #[must_use]
    pub fn stats(&self) -> Option<DestinationStats> {
        self.endpoint.driver().lock().proto.destination_stats(self.id)
    }

    /// Returns the key that it pushes to.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// Returns the endpoint that it belongs to.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Flushes, and has the endpoint forget the destination once everything is sent (and
    /// acknowledged, where it is reliable). Later pushes of other handles fail with
    /// [`PushError::Closed`].
    pub fn close(self) {
        self.endpoint.driver().change(|state, _| state.proto.close_destination(self.id));
    }
}

/// Ready the second time that it is asked.
async fn yield_now() {
    let mut asked = false;
    poll_fn(|context| {
        if mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

//! Request and response (paper, "Request - Response"): requests carry a number, the answer carries it
//! back, and what is outstanding is kept until it is answered or lost. [`Caller`] asks, as
//! [`crate::responder::Responder`] answers; docs/cmq/library.md has the bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quelea_cmq_proto::{DestinationOptions, Key, Mailbox, MailboxOptions};

use crate::call_frame::Frame;
use crate::dest::Dest;
use crate::endpoint::{DestinationError, Endpoint, MailboxError};
use crate::replies::Replies;
use crate::state::Sink;

/// How often a [`Caller`] looks for a mailbox that is not open yet: its number is random, and there
/// are 2^64.
const MAILBOX_TRIES: u32 = 8;

/// Asks one server. Any number of threads and tasks may use it at once; each waits for its own answer.
#[derive(Debug)]
pub struct Caller {
    dest: Dest,
    replies: Arc<Replies>,
    reply_to: u64,
    next_id: AtomicU64,
}

/// Why there is no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallerError {
    /// The server's destination was refused.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// The mailbox for answers was refused.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// The system gives no random numbers.
    #[error("no random number for the mailbox of the answers")]
    Random,
}

impl Caller {
    /// Asks `server`, with its answers in a mailbox of a random number. The answers come in the mode
    /// of the requests, which `options` say.
    ///
    /// # Errors
    /// [`CallerError`].
    pub fn new(
        endpoint: &Endpoint,
        server: Key,
        options: DestinationOptions,
    ) -> Result<Self, CallerError> {
        let dest = endpoint.dest(server, options)?;
        let replies = Arc::new(Replies::default());
        let mut tries = 0;
        loop {
            tries += 1;
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|_| CallerError::Random)?;
            let random = u128::from_le_bytes(random);
            // The numbers of requests begin at random too: a server that answers resent requests from
            // memory must not take ours for those of the process before us.
            let (reply_to, first_id) = (random as u64, (random >> 64) as u64);
            let mut state = endpoint.driver().lock();
            match state.proto.open_mailbox(Mailbox(reply_to), MailboxOptions::default()) {
                Ok(()) => {
                    state.open_sink(Some(Mailbox(reply_to)), Sink::Replies(Arc::clone(&replies)));
                    drop(state);
                    let next_id = AtomicU64::new(first_id);
                    return Ok(Self { dest, replies, reply_to, next_id });
                }
                Err(MailboxError::Open(_)) if tries < MAILBOX_TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the number of requests that are neither answered nor lost.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.replies.outstanding()
    }

    /// Returns the number of answers that nobody waited for any more.
    #[must_use]
    pub fn unwanted(&self) -> u64 {
        self.replies.unwanted()
    }

    /// Returns the handle to the server.
    #[must_use]
    pub const fn dest(&self) -> &Dest {
        &self.dest
    }

    pub(crate) fn replies(&self) -> &Replies {
        &self.replies
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Returns the request's bytes: its frame, and `payload` behind it.
    pub(crate) fn frame(&self, id: u64, payload: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(Frame::REQUEST_BYTES + payload.len());
        Frame::Request { id, reply_to: self.reply_to }.write(&mut message);
        message.extend_from_slice(payload);
        message
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let driver = self.dest.endpoint().driver();
        let mut state = driver.lock();
        let mailbox = Mailbox(self.reply_to);
        if !state.closed {
            state.proto.close_mailbox(mailbox);
        }
        state.close_sink(Some(mailbox));
        driver.release_and_transmit(state);
    }
}

//! How messages get into batches, and batches out when they are full.

use quelea_cmq_proto::{DestinationId, PushError, Time};

use crate::driver::Driver;
use crate::until::Until;

/// Messages that are pushed under one lock at most, so that others get the lock in between.
const BATCH_MAX: usize = 1_024;

/// Why a batch was not pushed whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}, after {pushed} messages were pushed")]
pub struct PushBatchError {
    /// Messages pushed before the one that failed.
    pub pushed: usize,
    /// Why it failed.
    #[source]
    pub error: PushError,
}

/// Whether to wait for room: not at all, or until some time, or for ever.
pub(crate) type Patience = Option<Option<Time>>;

impl Driver {
    /// Pushes one message.
    #[inline]
    pub(crate) fn push(
        &self,
        id: DestinationId,
        message: &[u8],
        patience: Patience,
    ) -> Result<(), PushError> {
        let mut waited = true;
        loop {
            let mut state = self.lock();
            if state.closed {
                return Err(PushError::Closed);
            }
            let mut began = false;
            let pushed = state.proto.push(id, message, || {
                began = true;
                self.clock.now()
            });
            if began || state.proto.has_transmit() || pushed.is_err() {
                let transmits = state.proto.has_transmit();
                self.release_and_transmit(state);
                if transmits {
                    self.try_recv();
                }
            }
            match (pushed, patience) {
                (Err(PushError::WouldBlock), Some(deadline)) if waited => {
                    // Others may have taken the room each time; the limit holds all the same.
                    waited = self.wait(&Until::Writable(id, message.len()), deadline)
                        && deadline.is_none_or(|deadline| self.clock.now() < deadline);
                }
                (pushed, _) => return pushed,
            }
        }
    }

    /// Pushes many.
    pub(crate) fn push_batch<I>(
        &self,
        id: DestinationId,
        messages: I,
        patience: Patience,
    ) -> Result<usize, PushBatchError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        let mut messages = messages.into_iter();
        let mut pushed = 0;
        // The iterator is code of others: it does not run under the lock, a few messages do.
        let mut few: Vec<I::Item> = Vec::new();
        loop {
            few.extend(messages.by_ref().take(BATCH_MAX));
            if few.is_empty() {
                return Ok(pushed);
            }
            let mut rest = &few[..];
            while let Some(first) = rest.first() {
                let done = self.push_some(id, rest);
                rest = &rest[done..];
                pushed += done;
                if done == 0 {
                    // Alone it may wait, or says what is wrong with it.
                    self.push(id, first.as_ref(), patience)
                        .map_err(|error| PushBatchError { pushed, error })?;
                    rest = &rest[1..];
                    pushed += 1;
                }
            }
            few.clear();
        }
    }

    /// Pushes until something is to be sent, or one is refused; returns how many it took.
    fn push_some<M: AsRef<[u8]>>(&self, id: DestinationId, messages: &[M]) -> usize {
        let mut state = self.lock();
        if state.closed {
            return 0;
        }
        let mut done = 0;
        for message in messages {
            if state.proto.push(id, message.as_ref(), || self.clock.now()).is_err() {
                break;
            }
            done += 1;
            if state.proto.has_transmit() {
                break;
            }
        }
        let transmits = state.proto.has_transmit();
        self.release_and_transmit(state);
        if transmits {
            self.try_recv();
        }
        done
    }
}

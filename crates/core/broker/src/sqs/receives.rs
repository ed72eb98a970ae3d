//! The receives of all queues that have no answer yet.

use std::collections::VecDeque;

use quelea_model::limits::RECEIVES_WAITING_MAX;
use quelea_store::Ticket;

use crate::effect::Effect;
use crate::error::{LimitReached, ReceiveError};
use crate::ids::ReceiveId;
use crate::random::Random;

/// The receives of all queues that have no answer yet.
#[derive(Debug)]
pub(crate) struct Receives {
    last: ReceiveId,
    waiting: usize,
    /// Chooses among the first messages of a queue with an order hint.
    pub(super) random: Random,
}

impl Receives {
    pub(crate) fn new(seed: u64) -> Self {
        Self { last: ReceiveId(0), waiting: 0, random: Random::new(seed) }
    }

    /// Begins another one. Returns its number.
    ///
    /// # Errors
    /// [`ReceiveError::Busy`] if too many wait.
    pub(super) fn begin(&mut self) -> Result<ReceiveId, ReceiveError> {
        if self.waiting >= RECEIVES_WAITING_MAX {
            let what = String::from("another receive that waits");
            return Err(ReceiveError::Busy(LimitReached { what, limit: RECEIVES_WAITING_MAX }));
        }
        self.waiting += 1;
        self.last = ReceiveId(self.last.0 + 1);
        Ok(self.last)
    }

    /// One of them has its answer, or does not want it any more.
    pub(super) const fn end(&mut self) {
        self.waiting -= 1;
    }

    /// The queue of these receives is gone.
    pub(crate) fn fail(
        &mut self,
        effects: &mut VecDeque<Effect>,
        receives: impl IntoIterator<Item = ReceiveId>,
    ) {
        for receive in receives {
            self.end();
            effects.push_back(Effect::Received { receive, messages: None, ticket: Ticket::NONE });
        }
    }
}

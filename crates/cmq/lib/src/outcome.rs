//! How waiting for acknowledgements ended.

use quelea_cmq_proto::DestinationId;

use crate::state::State;

/// How waiting for acknowledgements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "what was pushed may not have arrived"]
pub enum Outcome {
    /// Everything has left, and in reliable modes has arrived.
    Acknowledged,
    /// Not yet, when the time was over.
    TimedOut,
    /// Messages were given up: the peer is gone, or their deadline has passed. The others have left, or
    /// arrived, unless the time was over too.
    Abandoned,
    /// The endpoint was closed meanwhile, or the destination is closed and forgotten: nobody knows any
    /// more.
    Closed,
}

impl Outcome {
    /// Returns whether everything has left, and in reliable modes has arrived.
    #[must_use]
    pub const fn is_acknowledged(self) -> bool {
        matches!(self, Self::Acknowledged)
    }

    /// Returns the outcome, with how often messages were given up; none if there is something to
    /// wait for. Of the first `reported` times the caller knows already, unless they were the last.
    pub(crate) fn of(state: &State, id: DestinationId, reported: u32) -> Option<(Self, u32)> {
        let Some((times, is_dead)) = state.proto.given_up(id) else {
            return Some((Self::Closed, 0));
        };
        if times > reported || is_dead && times > 0 {
            Some((Self::Abandoned, times))
        } else if state.proto.is_settled(id) {
            Some((Self::Acknowledged, times))
        } else {
            state.closed.then_some((Self::Closed, times))
        }
    }
}

//! A look at the oldest messages, as a queue's owner knows them. It is no use of the queue: an owner that is only looked at lets
//! go of it all the same.

use quelea_sqs_protocol::PeekedState;

use super::Owner;
use crate::clock::Now;
use crate::message::RowKey;
use crate::peeked_row::{PeekedRow, PeekedRows};
use crate::window::State;

impl Owner {
    /// Returns the oldest messages that are in memory and still kept, at most so many.
    #[must_use]
    pub fn peek(&self, max: usize, now: Now) -> PeekedRows {
        let mut kept = self.window.from(0).filter(|(_, held)| self.is_kept(held, now));
        let oldest = kept.by_ref().take(max);
        let messages: Vec<PeekedRow> = oldest
            .map(|(number, held)| PeekedRow {
                row: RowKey { segment: held.segment, number },
                id: held.id,
                bytes: held.bytes,
                receive_count: Some(held.receive_count),
                first_received_at_ms: held.first_received_at_ms,
                state: Some(match held.state {
                    State::Ready => PeekedState::Visible,
                    State::Delayed { until_ms } => PeekedState::Delayed { until_ms },
                    State::InFlight(flight) => PeekedState::InFlight { until_ms: flight.until_ms },
                    State::Leaving => PeekedState::InFlight { until_ms: 0 },
                }),
            })
            .collect();
        let is_all_loaded = self.loaded_to >= self.acked_to && !self.is_loading;
        let is_whole = is_all_loaded && kept.next().is_none();
        PeekedRows { messages, is_whole }
    }
}

//! What an owner says of messages that are looked at, as bytes.

use quelea_cassandra_fifo::{PeekedRow, RowKey, SegmentKey};
use quelea_sqs_protocol::PeekedState;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
pub(super) struct WirePeekedRow {
    epoch: u64,
    first: u64,
    number: u64,
    id: u128,
    bytes: u64,
    receive_count: Option<u32>,
    first_received_at_ms: u64,
    state: Option<WireState>,
}

#[derive(Serialize, Deserialize)]
enum WireState {
    Visible,
    Delayed { until_ms: u64 },
    InFlight { until_ms: u64 },
}

impl WirePeekedRow {
    pub(super) fn of(one: PeekedRow) -> Self {
        let RowKey { segment: SegmentKey { epoch, first }, number } = one.row;
        let state = |state| match state {
            PeekedState::Visible => WireState::Visible,
            PeekedState::Delayed { until_ms } => WireState::Delayed { until_ms },
            PeekedState::InFlight { until_ms } => WireState::InFlight { until_ms },
        };
        Self {
            epoch,
            first,
            number,
            id: one.id.as_u128(),
            bytes: one.bytes as u64,
            receive_count: one.receive_count,
            first_received_at_ms: one.first_received_at_ms,
            state: one.state.map(state),
        }
    }

    pub(super) fn peeked_row(self) -> PeekedRow {
        let segment = SegmentKey { epoch: self.epoch, first: self.first };
        let state = |state| match state {
            WireState::Visible => PeekedState::Visible,
            WireState::Delayed { until_ms } => PeekedState::Delayed { until_ms },
            WireState::InFlight { until_ms } => PeekedState::InFlight { until_ms },
        };
        PeekedRow {
            row: RowKey { segment, number: self.number },
            id: Uuid::from_u128(self.id),
            bytes: usize::try_from(self.bytes).unwrap_or(usize::MAX),
            receive_count: self.receive_count,
            first_received_at_ms: self.first_received_at_ms,
            state: self.state.map(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use quelea_cassandra_fifo::PeekedRows;

    use super::*;
    use crate::fifo::operation::Answer;
    use crate::fifo::wire::{decode_answer, encode_answer};

    #[test]
    fn what_is_said_of_a_message_survives() {
        let peeked_row = |number, state| PeekedRow {
            row: RowKey { segment: SegmentKey { epoch: 1, first: 2 }, number },
            id: Uuid::from_u128(4),
            bytes: 5,
            receive_count: Some(6),
            first_received_at_ms: 7,
            state,
        };
        let all = || PeekedRows {
            messages: vec![
                peeked_row(1, Some(PeekedState::Visible)),
                peeked_row(2, Some(PeekedState::Delayed { until_ms: 8 })),
                peeked_row(3, Some(PeekedState::InFlight { until_ms: 9 })),
                PeekedRow { receive_count: None, ..peeked_row(4, None) },
            ],
            is_whole: true,
        };
        let bytes = encode_answer(Answer::Peeked(all())).unwrap();
        assert_eq!(decode_answer(&bytes), Some(Answer::Peeked(all())));
    }
}

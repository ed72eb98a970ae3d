//! What a look shows of a queue's messages beside what they hold: by its owner's memory, or by the rows where nobody owns it.

use std::collections::BTreeMap;

use quelea_sqs_protocol::PeekedState;
use uuid::Uuid;

use crate::message::{Row, RowKey, SegmentKey};
use crate::receptions::{Reception, decode};
use crate::segments::SegmentRange;
use crate::take_over::{OwnerRow, SegmentRow, take_over};

/// A message that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeekedRow {
    /// Where its row is.
    pub row: RowKey,
    /// Its id.
    pub id: Uuid,
    /// [`Content::bytes`](crate::Content::bytes).
    pub bytes: usize,
    /// How often it was received in this queue; `None`: only an owner that does not answer knows.
    pub receive_count: Option<u32>,
    /// When it was first received, in ms since 1970; 0: never, as far as is known.
    pub first_received_at_ms: u64,
    /// Whether it can be received; `None` as above.
    pub state: Option<PeekedState>,
}

/// The oldest messages of a queue, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeekedRows {
    /// They.
    pub messages: Vec<PeekedRow>,
    /// Whether there are no others.
    pub is_whole: bool,
}

/// A queue whose owner does not answer, or that has none, as its rows show it.
#[derive(Debug)]
pub struct Unowned {
    /// What is in flight, if the last owner has let go and said so.
    received: Option<BTreeMap<u64, Reception>>,
}

impl Unowned {
    /// Returns the queue as its owner's row shows it.
    #[must_use]
    pub fn new(row: &OwnerRow) -> Self {
        let has_let_go = row.held_until_ms == 0;
        let received = has_let_go.then(|| {
            let said = decode(row.epoch, &row.received).into_iter();
            said.map(|one| (one.number, one)).collect()
        });
        Self { received }
    }

    /// Returns the partitions that count among the listed ones, the oldest first, each with the
    /// numbers that do: beyond the first and up to the second. Of those of the last epoch it is all
    /// that is in them, as its owner may still write there.
    #[must_use]
    pub fn parts(row: &OwnerRow, listed: &[SegmentRow]) -> Vec<(SegmentKey, u64, u64)> {
        let all = take_over(Some(row), listed, Some(i64::MAX.unsigned_abs()), 1, 0);
        let part = |one: SegmentRange| (one.key, one.key.first.saturating_sub(1), one.last);
        all.ranges.into_iter().map(part).collect()
    }

    /// Returns a message of one of these partitions, as it is shown.
    #[must_use]
    pub fn peeked_row(&self, segment: SegmentKey, row: &Row, now_ms: u64) -> PeekedRow {
        let reception = self.received.as_ref().map(|all| all.get(&row.number));
        let state = match reception {
            _ if row.visible_at_ms > now_ms => {
                Some(PeekedState::Delayed { until_ms: row.visible_at_ms })
            }
            None => None,
            Some(Some(one)) if one.until_ms > now_ms => {
                Some(PeekedState::InFlight { until_ms: one.until_ms })
            }
            Some(_) => Some(PeekedState::Visible),
        };
        let is_delayed = matches!(state, Some(PeekedState::Delayed { .. }));
        let count = reception.map(|one| one.map_or(0, |one| one.receive_count));
        PeekedRow {
            row: RowKey { segment, number: row.number },
            id: row.id,
            bytes: row.bytes,
            receive_count: if is_delayed { Some(0) } else { count },
            first_received_at_ms: reception.flatten().map_or(0, |one| one.first_received_at_ms),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receptions::encode;

    const NOW_MS: u64 = 1_000;

    fn row(number: u64, visible_at_ms: u64) -> Row {
        let id = Uuid::from_u128(number.into());
        Row { number, id, group_id: "g".to_owned(), bytes: 10, visible_at_ms }
    }

    fn states(of: &Unowned) -> Vec<(Option<u32>, Option<PeekedState>)> {
        let key = SegmentKey { epoch: 1, first: 1 };
        let rows = [row(1, 0), row(2, 0), row(3, 0), row(4, NOW_MS + 5)];
        let peeked_rows = rows.iter().map(|row| of.peeked_row(key, row, NOW_MS));
        peeked_rows.map(|one| (one.receive_count, one.state)).collect()
    }

    fn owner(held_until_ms: i64) -> OwnerRow {
        let received = |number, until_ms| Reception {
            number,
            holder: (1, 1),
            until_ms,
            received_at_ms: 1,
            first_received_at_ms: 1,
            receive_count: 2,
        };
        let received = encode(3, &[received(1, NOW_MS + 1), received(2, NOW_MS)]);
        OwnerRow { epoch: 3, held_until_ms, received, ..OwnerRow::default() }
    }

    #[test]
    fn an_owner_that_has_let_go_has_said_what_is_in_flight() {
        let in_flight = PeekedState::InFlight { until_ms: NOW_MS + 1 };
        let delayed = PeekedState::Delayed { until_ms: NOW_MS + 5 };
        let expected = [
            (Some(2), Some(in_flight)),
            (Some(2), Some(PeekedState::Visible)),
            (Some(0), Some(PeekedState::Visible)),
            (Some(0), Some(delayed)),
        ];
        assert_eq!(states(&Unowned::new(&owner(0))), expected);
    }

    #[test]
    fn without_a_word_of_the_owner_only_delays_are_known() {
        let delayed = PeekedState::Delayed { until_ms: NOW_MS + 5 };
        let unknown = (None, None);
        let expected = [unknown, unknown, unknown, (Some(0), Some(delayed))];
        assert_eq!(states(&Unowned::new(&owner(7))), expected);
    }

    #[test]
    fn what_came_late_into_a_sealed_epoch_is_not_looked_at() {
        let key = |epoch, first| SegmentKey { epoch, first };
        let listed = |epoch, first| SegmentRow { key: key(epoch, first), began_at_ms: 1 };
        let all = [listed(1, 1), listed(1, 5), listed(1, 9), listed(2, 8)];
        let row = OwnerRow { epoch: 2, sealed: BTreeMap::from([(1, 7)]), sealed_to: 7, ..owner(7) };
        let parts = Unowned::parts(&row, &all);
        let last = i64::MAX.unsigned_abs();
        assert_eq!(parts, [(key(1, 1), 0, 4), (key(1, 5), 4, 7), (key(2, 8), 7, last)]);
    }
}

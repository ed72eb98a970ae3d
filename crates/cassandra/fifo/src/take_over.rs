//! How one owner follows another. Whoever takes a queue over reads how far the last epoch has come, and enters that, with
//! its own name, in one lightweight transaction on the owner's row: the seal. What comes into a sealed epoch later has a
//! number beyond its seal, or is in a partition that begins beyond it, and no reader counts it.

use std::collections::BTreeMap;

use crate::message::SegmentKey;
use crate::segments::SegmentRange;

/// The row that says whose a queue is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerRow {
    /// Grows with each owner.
    pub epoch: u64,
    /// The owner's name, which no other has or will have.
    pub holder: u128,
    /// Where other front-ends find it; empty: nowhere.
    pub address: String,
    /// Until when it says to have it, in ms since 1970; another one with each renewal. 0: it has let go.
    pub held_until_ms: i64,
    /// The last number that counts of each earlier epoch of which there are messages.
    pub sealed: BTreeMap<u64, u64>,
    /// The last number that counts of all earlier epochs.
    pub sealed_to: u64,
    /// The first partition of the list that may count: all before it were removed. It may be an earlier one than that.
    pub oldest: SegmentKey,
    /// What is in flight, said by one that has let go; empty: nobody says.
    pub received: Vec<u8>,
}

/// A row of the list of a queue's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// The partition.
    pub key: SegmentKey,
    /// When it was begun, in ms since 1970.
    pub began_at_ms: u64,
}

/// What follows for whoever takes a queue over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeOver {
    /// The next epoch.
    pub epoch: u64,
    /// [`OwnerRow::sealed`] of the row that it writes.
    pub sealed: BTreeMap<u64, u64>,
    /// [`OwnerRow::sealed_to`] of it: the next message has a larger number.
    pub sealed_to: u64,
    /// The partitions that count, the oldest first.
    pub ranges: Vec<SegmentRange>,
    /// What is in flight, as the last owner has said.
    pub received: Vec<u8>,
}

/// Returns the partition that has to be read whole before a queue is taken over: the last of its
/// last epoch, where a batch may be at some replicas only.
#[must_use]
pub fn tail_of(row: Option<&OwnerRow>, listed: &[SegmentRow]) -> Option<SegmentKey> {
    let epoch = row?.epoch;
    listed.iter().map(|row| row.key).filter(|key| key.epoch == epoch).max()
}

/// Returns where the list of partitions is to be read from: none before that counts. What was
/// removed from it stands in Cassandra's way for some hours.
#[must_use]
pub fn listed_from(row: Option<&OwnerRow>) -> SegmentKey {
    let Some(row) = row else { return SegmentKey::default() };
    let epoch = row.sealed.keys().next().map_or(row.epoch, |first| row.epoch.min(*first));
    row.oldest.max(SegmentKey { epoch, first: 0 })
}

/// Returns what a queue's next owner begins with. `tail` is what the partition of [`tail_of`] says
/// its last number to be, if there was a batch in it at all. Without a row, or anything that says how far numbers have come, they begin at
/// `first_number`.
#[must_use]
pub fn take_over(
    row: Option<&OwnerRow>,
    listed: &[SegmentRow],
    tail: Option<u64>,
    first_number: u64,
    now_ms: u64,
) -> TakeOver {
    let Some(row) = row else {
        let sealed_to = first_number.saturating_sub(1);
        return TakeOver { epoch: 1, sealed_to, ..TakeOver::default() };
    };
    let mut sealed = row.sealed.clone();
    let mut sealed_to = row.sealed_to;
    if let Some(key) = tail_of(Some(row), listed) {
        // All batches before its partition's were acknowledged.
        let seal = tail.unwrap_or(0).max(key.first.saturating_sub(1));
        sealed.insert(row.epoch, seal);
        sealed_to = sealed_to.max(seal);
    }
    let counts =
        |row: &&SegmentRow| sealed.get(&row.key.epoch).is_some_and(|seal| row.key.first <= *seal);
    let mut counted: Vec<&SegmentRow> = listed.iter().filter(counts).collect();
    counted.sort_unstable_by_key(|row| row.key);
    let mut ranges: Vec<SegmentRange> = Vec::with_capacity(counted.len());
    for (at, row) in counted.iter().enumerate() {
        let next = counted.get(at + 1);
        let seal = sealed.get(&row.key.epoch).copied().unwrap_or(0);
        let last = match next {
            Some(next) if next.key.epoch == row.key.epoch => next.key.first - 1,
            _ => seal,
        };
        let ended_at_ms = next.map_or(now_ms, |next| next.began_at_ms);
        ranges.push(SegmentRange { key: row.key, last, ended_at_ms });
    }
    if ranges.is_empty() && tail_of(Some(row), listed).is_none() {
        // What the last epoch had was listed no longer, and so nothing of those before: its numbers are not to be used again.
        sealed_to = sealed_to.max(first_number.saturating_sub(1));
    }
    let has_messages = |epoch: &u64| ranges.iter().any(|range| range.key.epoch == *epoch);
    sealed.retain(|epoch, _| has_messages(epoch));
    let received = row.received.clone();
    TakeOver { epoch: row.epoch + 1, sealed, sealed_to, ranges, received }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(epoch: u64, first: u64) -> SegmentKey {
        SegmentKey { epoch, first }
    }

    const fn listed(epoch: u64, first: u64, began_at_ms: u64) -> SegmentRow {
        SegmentRow { key: key(epoch, first), began_at_ms }
    }

    fn owner(epoch: u64, sealed: &[(u64, u64)], sealed_to: u64) -> OwnerRow {
        let sealed = sealed.iter().copied().collect();
        OwnerRow { epoch, sealed, sealed_to, ..OwnerRow::default() }
    }

    #[test]
    fn a_fresh_queue_has_nothing() {
        let fresh = take_over(None, &[], None, 100, 5);
        assert_eq!((fresh.epoch, fresh.sealed_to, fresh.ranges.len()), (1, 99, 0));
    }

    #[test]
    fn the_last_epoch_is_sealed_where_its_last_partition_says() {
        let rows = [listed(1, 1, 10), listed(1, 5, 20), listed(2, 9, 30)];
        let row = owner(2, &[(1, 7)], 7);
        assert_eq!(tail_of(Some(&row), &rows), Some(key(2, 9)));
        let next = take_over(Some(&row), &rows, Some(12), 0, 99);
        assert_eq!((next.epoch, next.sealed_to), (3, 12));
        assert_eq!(next.sealed, BTreeMap::from([(1, 7), (2, 12)]));
        let ranges = [
            SegmentRange { key: key(1, 1), last: 4, ended_at_ms: 20 },
            SegmentRange { key: key(1, 5), last: 7, ended_at_ms: 30 },
            SegmentRange { key: key(2, 9), last: 12, ended_at_ms: 99 },
        ];
        assert_eq!(next.ranges, ranges);
    }

    #[test]
    fn a_partition_without_a_batch_counts_for_nothing_but_ends_the_one_before() {
        let rows = [listed(1, 1, 10), listed(1, 5, 20)];
        let next = take_over(Some(&owner(1, &[], 0)), &rows, None, 0, 99);
        assert_eq!((next.sealed_to, next.sealed), (4, BTreeMap::from([(1, 4)])));
        assert_eq!(next.ranges, [SegmentRange { key: key(1, 1), last: 4, ended_at_ms: 99 }]);
    }

    #[test]
    fn what_comes_late_into_a_sealed_epoch_counts_for_nothing() {
        let rows = [listed(1, 1, 10), listed(1, 8, 20), listed(3, 1, 5)];
        let row = owner(4, &[(1, 7)], 7);
        let next = take_over(Some(&row), &rows, None, 0, 99);
        assert_eq!(next.ranges, [SegmentRange { key: key(1, 1), last: 7, ended_at_ms: 99 }]);
        assert_eq!(next.sealed, BTreeMap::from([(1, 7)]));
    }

    #[test]
    fn what_no_seal_counts_need_not_be_listed() {
        assert_eq!(listed_from(None), key(0, 0));
        assert_eq!(listed_from(Some(&owner(4, &[], 7))), key(4, 0));
        let row = owner(4, &[(2, 7), (3, 9)], 9);
        assert_eq!(listed_from(Some(&row)), key(2, 0));
        let later = OwnerRow { oldest: key(2, 5), ..row.clone() };
        assert_eq!(listed_from(Some(&later)), key(2, 5));
        let rows = [listed(1, 1, 10), listed(2, 1, 10), listed(3, 8, 20), listed(4, 10, 20)];
        assert_eq!(
            take_over(Some(&row), &rows, Some(11), 0, 99),
            take_over(Some(&row), &rows[1..], Some(11), 0, 99)
        );
    }

    #[test]
    fn an_epoch_without_messages_is_forgotten_and_its_numbers_are_not_used_again() {
        let next = take_over(Some(&owner(4, &[(1, 7)], 7)), &[], None, 0, 99);
        assert_eq!((next.sealed.len(), next.sealed_to, next.epoch), (0, 7, 5));
    }

    #[test]
    fn numbers_of_an_epoch_that_is_listed_no_longer_are_not_used_again() {
        let row = owner(4, &[(1, 7)], 7);
        assert_eq!(take_over(Some(&row), &[], None, 100, 99).sealed_to, 99);
        assert_eq!(take_over(Some(&row), &[], None, 5, 99).sealed_to, 7, "its clock is behind");
        // One that has sent nothing leaves no gap behind those that wait.
        let next = take_over(Some(&row), &[listed(1, 1, 10)], None, 100, 99);
        assert_eq!((next.sealed_to, next.ranges.len()), (7, 1));
        let next = take_over(Some(&row), &[listed(4, 8, 10)], Some(9), 100, 99);
        assert_eq!(next.sealed_to, 9);
    }
}

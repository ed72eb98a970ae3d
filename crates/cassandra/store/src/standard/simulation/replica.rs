//! A replica: rows of partitions, each cell with its timestamp. The later one counts, and a deletion against a value of the same time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use quelea_sqs_protocol::Consistency;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::standard::content::Content;
use crate::standard::tables::{Lease, List};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Partition {
    /// Messages and entries of a bucket.
    Rows(Uuid, Bucket),
    Listed(Uuid, List),
    Mark(Uuid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Message(Uuid),
    /// What the same row has of the last change of visibility.
    Lease(Uuid),
    Entry(i64, Uuid),
    Bucket(Bucket),
    Mark,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Message(Arc<Content>),
    Lease(Lease),
    Entry(Entry),
    Listed,
    Mark(i64),
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) at_us: i64,
    pub(super) ends_at_us: i64,
    /// `None`: it was deleted.
    pub(super) value: Option<Value>,
}

pub(super) type Cells = BTreeMap<Key, Cell>;

/// Neighbours in a partition.
pub(super) type Part = RangeInclusive<Key>;

/// What is written to one partition.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    pub(super) partition: Partition,
    pub(super) cells: Vec<(Key, Cell)>,
}

#[derive(Debug, Default)]
pub(super) struct Replica {
    partitions: BTreeMap<Partition, Cells>,
}

impl Key {
    /// Returns the message whose row it is in.
    pub(super) fn message(&self) -> Option<Uuid> {
        match self {
            Self::Message(message) | Self::Lease(message) | Self::Entry(_, message) => {
                Some(*message)
            }
            Self::Bucket(_) | Self::Mark => None,
        }
    }
}

impl Cell {
    pub(super) fn new(at_us: i64, ends_at_us: i64, value: Value) -> Self {
        Self { at_us, ends_at_us, value: Some(value) }
    }

    pub(super) fn deleted(at_us: i64) -> Self {
        Self { at_us, ends_at_us: i64::MAX, value: None }
    }

    pub(super) fn live(&self, now_us: i64) -> Option<&Value> {
        self.value.as_ref().filter(|_| self.ends_at_us > now_us)
    }

    fn wins_over(&self, other: &Self) -> bool {
        let rank = |cell: &Self| (cell.at_us, cell.value.is_none());
        rank(self) > rank(other)
    }
}

/// Adds cells to others.
pub(super) fn merge(
    cells: &mut Cells,
    more: impl IntoIterator<Item = (Key, Cell)>,
    is_by_timestamp: bool,
) {
    for (key, cell) in more {
        match cells.get_mut(&key) {
            Some(known) if is_by_timestamp && !cell.wins_over(known) => {}
            Some(known) => *known = cell,
            None => drop(cells.insert(key, cell)),
        }
    }
}

impl Replica {
    pub(super) fn apply(&mut self, mutation: &Mutation, is_by_timestamp: bool) {
        let cells = self.partitions.entry(mutation.partition).or_default();
        merge(cells, mutation.cells.iter().cloned(), is_by_timestamp);
    }

    pub(super) fn snapshot(&self, partition: Partition, parts: &[Part]) -> Cells {
        let Some(cells) = self.partitions.get(&partition) else { return Cells::new() };
        let found = parts.iter().flat_map(|part| cells.range(part.clone()));
        found.map(|(key, cell)| (*key, cell.clone())).collect()
    }

    /// Takes in cells that others have, too.
    pub(super) fn repair(&mut self, partition: Partition, known: &Cells) {
        let cells = self.partitions.entry(partition).or_default();
        let is_new =
            |(key, cell): &(&Key, &Cell)| cells.get(*key).is_none_or(|own| cell.wins_over(own));
        let new: Vec<(Key, Cell)> =
            known.iter().filter(is_new).map(|(key, cell)| (*key, cell.clone())).collect();
        cells.extend(new);
    }
}

/// Returns how many replicas answer for a request.
pub(super) fn needed(consistency: Consistency) -> usize {
    match consistency {
        Consistency::One => 1,
        Consistency::LocalQuorum => 2,
    }
}

//! A model of Cassandra: three replicas, the last write wins by its timestamp; a write is acknowledged by two of them and
//! may come to any of them late; a read asks two and repairs both before it is answered.

use std::collections::BTreeMap;

use quelea_cassandra_fifo::{Noted, OwnerRow, Row, SegmentKey};

pub(crate) const REPLICAS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Partition {
    Segments,
    Messages(SegmentKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Segment(SegmentKey),
    Last,
    Message(u64),
    Noted(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Segment { began_at_ms: u64 },
    Last(u64),
    Message(Row, String),
    Noted(Noted),
}

/// A row's value at a timestamp; `None`: it was deleted.
pub(crate) type Cell = (u64, Option<Value>);
pub(crate) type Rows = BTreeMap<Key, Cell>;

/// Rows of one partition that are written together.
#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    pub(crate) partition: Partition,
    pub(crate) cells: Vec<(Key, Cell)>,
}

#[derive(Debug, Default)]
pub(crate) struct Replicas {
    rows: [BTreeMap<Partition, Rows>; REPLICAS],
    pub(crate) owner: Option<OwnerRow>,
}

impl Replicas {
    pub(crate) fn apply(&mut self, replica: usize, mutation: &Mutation) {
        let rows = self.rows[replica].entry(mutation.partition).or_default();
        merge(rows, mutation.cells.iter().cloned());
    }

    pub(crate) fn snapshot(&self, replica: usize, partition: Partition) -> Rows {
        self.rows[replica].get(&partition).cloned().unwrap_or_default()
    }

    /// Merges what two replicas said, and returns it; both have it then.
    pub(crate) fn repair(&mut self, partition: Partition, said: [(usize, Rows); 2]) -> Rows {
        let [(one, mut merged), (other, rows)] = said;
        merge(&mut merged, rows);
        for replica in [one, other] {
            merge(self.rows[replica].entry(partition).or_default(), merged.clone());
        }
        merged.retain(|_, (_, value)| value.is_some());
        merged
    }
}

fn merge(rows: &mut Rows, cells: impl IntoIterator<Item = (Key, Cell)>) {
    for (key, cell) in cells {
        let known = rows.entry(key).or_insert_with(|| cell.clone());
        // Of a value and a deletion with one timestamp the deletion wins.
        if cell.0 > known.0 || cell.0 == known.0 && cell.1.is_none() {
            *known = cell;
        }
    }
}

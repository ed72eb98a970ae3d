//! Rows of one partition, cut into batches that Cassandra takes.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX};

/// Rows that go into one request: all of one partition, within the limits, in the order in which they came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch<P, R> {
    /// The partition.
    pub(crate) partition: P,
    /// The rows.
    pub(crate) rows: Vec<R>,
}

/// Divides rows, each of which has a partition and a size in bytes, into batches. A row that is too
/// large for any batch is one alone.
pub(crate) fn batches<P: Copy + Eq + Hash, R>(
    rows: impl IntoIterator<Item = (P, usize, R)>,
) -> Vec<Batch<P, R>> {
    let mut batches: Vec<Batch<P, R>> = Vec::new();
    // The open batch of each partition, with its bytes.
    let mut open: FxHashMap<P, (usize, usize)> = FxHashMap::default();
    for (partition, size, row) in rows {
        if let Some((at, bytes)) = open.get_mut(&partition) {
            let batch = &mut batches[*at];
            if batch.rows.len() < BATCH_ROWS_MAX && *bytes + size <= BATCH_BYTES_MAX {
                batch.rows.push(row);
                *bytes += size;
                continue;
            }
        }
        open.insert(partition, (batches.len(), size));
        batches.push(Batch { partition, rows: vec![row] });
    }
    batches
}

/// Returns how many of the first of them have so many bytes together, at most.
pub(crate) fn within_bytes(sizes: impl IntoIterator<Item = usize>, bytes_max: usize) -> usize {
    let mut bytes = 0_usize;
    let fits = |size: &usize| {
        bytes = bytes.saturating_add(*size);
        bytes <= bytes_max
    };
    sizes.into_iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_batch_of_its_partition(
            rows in prop::collection::vec((0u8..4, 1usize..BATCH_BYTES_MAX + 2), 0..300)
        ) {
            let numbered = rows.iter().enumerate().map(|(number, (partition, size))| (*partition, *size, number));
            let batches = batches(numbered);
            let mut seen: Vec<usize> = Vec::new();
            for batch in &batches {
                let bytes: usize = batch.rows.iter().map(|row| rows[*row].1).sum();
                prop_assert!(batch.rows.len() <= BATCH_ROWS_MAX);
                prop_assert!(bytes <= BATCH_BYTES_MAX || batch.rows.len() == 1);
                prop_assert!(batch.rows.iter().all(|row| rows[*row].0 == batch.partition));
                prop_assert!(batch.rows.windows(2).all(|pair| pair[0] < pair[1]));
                seen.extend(&batch.rows);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..rows.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_hundred_small_rows_are_one_batch() {
        let batches = batches((0..100).map(|row| ("partition", 2_048, row)));
        assert_eq!(batches.len(), 1);
    }
}

//! What has changed, in order: each transaction leaves rows for those that watch, for some minutes.

use quelea_elastic_directory::meta::{Change, Entry, LeaseId, MetaError, Revision};

use crate::limits::PAGE_ROWS;
use crate::tables::{ChangeRow, Tables, lease_from, unsigned};

/// A change, and the lease of the entry that it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) change: Change,
    pub(crate) lease: Option<LeaseId>,
}

/// What a look at the changes behind some revision found: those of whole transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangePage {
    pub(crate) changes: Vec<Logged>,
    /// The last of them, or the one that was asked for.
    pub(crate) revision: Revision,
}

/// Returns where the row of a transaction's change stands: in the order of revisions.
pub(crate) fn row_of(revision: Revision, number: usize) -> String {
    format!("{:020}/{number:04}", revision.0)
}

/// Returns a place behind all rows of a revision, and before those of the next.
fn end_of(revision: Revision) -> String {
    format!("{:020}~", revision.0)
}

/// Returns the changes behind a revision, some of them at least; none if nothing has changed.
pub(crate) async fn changes_after(
    tables: &Tables,
    after: Revision,
) -> Result<ChangePage, MetaError> {
    let revision = Revision(tables.revision().await?);
    if revision == after {
        return Ok(ChangePage { changes: Vec::new(), revision });
    }
    let rows = tables.changes_after(&end_of(after)).await?;
    // A table that was restored from a backup may be older than what was seen of it.
    if revision < after || rows.is_empty() {
        return Err(MetaError::Compacted(after));
    }
    found(after, rows, PAGE_ROWS as usize)
}

/// Returns what rows say that follow a revision, of which there may be more if there are
/// `rows_max`. Each transaction has rows, so that a revision that is missing has been forgotten.
fn found(
    after: Revision,
    mut rows: Vec<ChangeRow>,
    rows_max: usize,
) -> Result<ChangePage, MetaError> {
    let revision_of = |row: &ChangeRow| Revision(unsigned(row.4));
    if rows.len() >= rows_max
        && let (Some(first), Some(last)) =
            (rows.first().map(revision_of), rows.last().map(revision_of))
        && first < last
    {
        // The rest of the last one may be missing. One that is alone is whole: it has no more rows than one answer.
        rows.retain(|row| revision_of(row) < last);
    }
    let mut revision = after;
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let modified = revision_of(&row);
        if modified != revision && modified.0 != revision.0 + 1 {
            return Err(MetaError::Compacted(after));
        }
        revision = modified;
        changes.extend(logged(row, modified));
    }
    Ok(ChangePage { changes, revision })
}

/// Returns a row's change; `None` if it is nobody's.
fn logged((_, name, value, created, _, lease): ChangeRow, modified: Revision) -> Option<Logged> {
    let key = name.filter(|name| !name.is_empty())?;
    let created = Revision(unsigned(created));
    let change = match value {
        Some(value) => Change::Put(Entry { key, value: value.into(), created, modified }),
        None => Change::Gone { key, revision: modified },
    };
    Some(Logged { change, lease: lease.map(lease_from) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 500;

    fn row(revision: u64, number: usize, name: &str, value: Option<&str>) -> ChangeRow {
        let value = value.map(|value| value.as_bytes().to_vec());
        let modified = Some(revision as i64);
        (row_of(Revision(revision), number), Some(name.to_owned()), value, modified, modified, None)
    }

    #[test]
    fn rows_stand_in_the_order_of_their_revisions() {
        assert!(end_of(Revision(9)) > row_of(Revision(9), 499));
        assert!(end_of(Revision(9)) < row_of(Revision(10), 0));
        assert!(row_of(Revision(u64::MAX), 0) > row_of(Revision(2), 10));
    }

    #[test]
    fn changes_come_in_order_and_what_has_no_name_is_nobodys() {
        let rows = vec![row(5, 0, "a", Some("1")), row(5, 1, "b", None), row(6, 0, "", None)];
        let ChangePage { changes, revision } = found(Revision(4), rows, MANY).unwrap();
        let gone = Change::Gone { key: "b".to_owned(), revision: Revision(5) };
        assert_eq!(changes.len(), 2);
        assert!(matches!(&changes[0].change, Change::Put(entry) if entry.key == "a"));
        assert_eq!(changes[1].change, gone);
        assert_eq!(revision, Revision(6));
    }

    #[test]
    fn a_transaction_that_an_answer_cuts_off_is_read_whole_later() {
        let rows = vec![row(5, 0, "a", None), row(6, 0, "b", None), row(6, 1, "c", None)];
        let cut_off = found(Revision(4), rows.clone(), 3).unwrap();
        assert_eq!((cut_off.changes.len(), cut_off.revision), (1, Revision(5)));
        let alone = found(Revision(5), rows[1..].to_vec(), 2).unwrap();
        assert_eq!((alone.changes.len(), alone.revision), (2, Revision(6)));
    }

    #[test]
    fn a_revision_that_is_missing_was_forgotten() {
        let refused = found(Revision(4), vec![row(6, 0, "a", None)], MANY);
        assert_eq!(refused, Err(MetaError::Compacted(Revision(4))));
    }
}

//! What is written of a queue's messages and of its index. Both tables have the same partitions, so that what is of one
//! partition is one mutation, whatever table it is of: all of it is stored, or nothing.

use quelea_sqs_protocol::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::MaybeUnset;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::driver::OwnedValues;
use crate::database::statements::Statements;
use crate::entry::Entry;
use crate::standard::content::{NewRow, Timed, stored_attributes};

/// A row of the index without its message's body, in bytes: what a batch counts.
const ENTRY_BYTES: usize = 128;

/// A write to one partition.
#[derive(Clone, Debug)]
pub(crate) enum RowWrite {
    /// A message's row, at its timestamp.
    InsertMessage(Box<NewRow>),
    /// An entry, at its timestamp.
    InsertEntry(Timed<Entry>),
    /// An entry, and the one that it replaces goes: both are in the same bucket.
    ReplaceEntry(Timed<Entry>, Entry),
    /// An entry goes. One that stays leads to a message that is elsewhere or gone, and is dropped later.
    DeleteEntry(Entry),
    /// The message of an entry says that this is its entry.
    NoteLease(Timed<Entry>),
    /// The message of an entry goes, at a timestamp that is later than any of its row.
    DeleteMessage(Entry, i64),
}

impl RowWrite {
    /// Returns its partition.
    pub(crate) const fn bucket(&self) -> Bucket {
        match self {
            Self::InsertMessage(row) => row.bucket,
            Self::InsertEntry(new) | Self::ReplaceEntry(new, _) => new.row.bucket,
            Self::DeleteEntry(entry) => entry.bucket,
            Self::NoteLease(new) => new.row.body,
            Self::DeleteMessage(entry, _) => entry.body,
        }
    }

    /// Returns its size, as a batch counts it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::InsertMessage(row) => row.content.bytes(),
            Self::ReplaceEntry(..) => 2 * ENTRY_BYTES,
            Self::InsertEntry(_)
            | Self::DeleteEntry(_)
            | Self::NoteLease(_)
            | Self::DeleteMessage(..) => ENTRY_BYTES,
        }
    }

    /// Adds its statements, with their values.
    pub(crate) fn put<'a>(
        self,
        generation: Uuid,
        (statements, consistency): (&'a Statements, Consistency),
        to: &mut Vec<(&'a PreparedStatement, OwnedValues)>,
    ) {
        match self {
            Self::InsertMessage(row) => {
                to.push((
                    statements.insert_message.at(consistency),
                    insert_message(generation, *row),
                ));
            }
            Self::InsertEntry(new) => {
                to.push((statements.insert_entry.at(consistency), insert_entry(generation, &new)));
            }
            Self::ReplaceEntry(new, old) => {
                debug_assert_eq!(new.row.bucket, old.bucket);
                to.push((statements.insert_entry.at(consistency), insert_entry(generation, &new)));
                to.push((statements.delete_entry.at(consistency), delete_entry(generation, &old)));
            }
            Self::DeleteEntry(entry) => {
                to.push((
                    statements.delete_entry.at(consistency),
                    delete_entry(generation, &entry),
                ));
            }
            Self::NoteLease(new) => {
                to.push((statements.write_lease.at(consistency), note_lease(generation, &new)));
            }
            Self::DeleteMessage(entry, at_us) => {
                let Bucket { start_s, level } = entry.body;
                let values = (at_us, generation, start_s, level, entry.message);
                to.push((statements.delete_message.at(consistency), Box::new(values)));
            }
        }
    }
}

fn insert_message(generation: Uuid, row: NewRow) -> OwnedValues {
    let NewRow { bucket, id, written_at_us, content, ttl_s } = row;
    let attributes =
        (!content.attributes.is_empty()).then(|| stored_attributes(content.attributes));
    let source = content.source;
    let source = source.map(|source| (source.account.to_string(), source.name.to_string()));
    let earlier_receives = Some(content.earlier_receives).filter(|count| *count > 0);
    Box::new((
        generation,
        bucket.start_s,
        bucket.level,
        id,
        content.body,
        MaybeUnset::from_option(attributes),
        content.sender,
        MaybeUnset::from_option(content.trace_header),
        MaybeUnset::from_option(content.group_id),
        MaybeUnset::from_option(content.deduplication_id),
        MaybeUnset::from_option(source),
        MaybeUnset::from_option(earlier_receives),
        written_at_us,
        ttl_s,
    ))
}

fn insert_entry(generation: Uuid, new: &Timed<Entry>) -> OwnedValues {
    let Timed { row: entry, ttl_s } = new;
    Box::new((
        generation,
        entry.bucket.start_s,
        entry.bucket.level,
        entry.visible_at_us,
        entry.message,
        entry.body.start_s,
        entry.body.level,
        entry.bytes,
        entry.receive_count,
        entry.first_received_at_ms,
        MaybeUnset::from_option((entry.group != 0).then_some(entry.group)),
        entry.written_at_us,
        entry.written_at_us,
        *ttl_s,
    ))
}

fn note_lease(generation: Uuid, Timed { row: entry, ttl_s }: &Timed<Entry>) -> OwnedValues {
    Box::new((
        entry.written_at_us,
        *ttl_s,
        entry.visible_at_us,
        entry.written_at_us,
        entry.bucket.start_s,
        entry.bucket.level,
        generation,
        entry.body.start_s,
        entry.body.level,
        entry.message,
    ))
}

fn delete_entry(generation: Uuid, entry: &Entry) -> OwnedValues {
    let Bucket { start_s, level } = entry.bucket;
    let at_us = entry.deleted_at_us();
    Box::new((at_us, generation, start_s, level, entry.visible_at_us, entry.message))
}

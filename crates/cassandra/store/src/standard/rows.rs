//! Rows of messages and of the index, written and read in batches of one partition.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt};
use quelea_sqs_protocol::{Consistency, Fault};
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::database::For;
use crate::entry::Entry;
use crate::limits::{BATCHES_AT_ONCE, READ_ROWS_MAX};
use crate::standard::batch::{Batch, batches};
use crate::standard::content::StoredMessage;
use crate::standard::row_write::RowWrite;
use crate::standard::tables::{Asked, Lease, Of, Tables};

/// What was found of a message.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// It is there.
    Message(StoredMessage),
    /// It is there, and its row cannot be read.
    Unreadable,
    /// It is not there.
    Nothing,
}

/// Where a queue's rows are, and how many replicas answer for them.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) tables: &'a dyn Tables,
    pub(crate) of: Of,
}

impl Rows<'_> {
    /// Returns the same rows, answered for by so many replicas.
    pub(crate) fn at(&self, consistency: Consistency) -> Self {
        Self { of: Of { consistency, ..self.of }, ..*self }
    }

    /// Carries out writes, those of one partition together; an outcome for each.
    pub(crate) async fn write(&self, writes: Vec<RowWrite>) -> Vec<Result<(), Fault>> {
        let count = writes.len();
        let sized = writes.into_iter().enumerate();
        let sized = sized.map(|(number, write)| (write.bucket(), write.bytes(), (number, write)));
        let write = |batch: Batch<Bucket, (usize, RowWrite)>| async move {
            let (numbers, writes): (Vec<usize>, Vec<RowWrite>) = batch.rows.into_iter().unzip();
            let written = self.tables.write(self.of, writes);
            (numbers, written.await)
        };
        let mut outcomes = vec![Ok(()); count];
        let mut written = stream::iter(batches(sized)).map(write).buffer_unordered(BATCHES_AT_ONCE);
        while let Some((numbers, written)) = written.next().await {
            for (number, outcome) in numbers.into_iter().zip(written) {
                outcomes[number] = outcome;
            }
        }
        outcomes
    }

    /// Removes rows of the index.
    pub(crate) async fn delete_entries(&self, entries: &[Entry]) -> Vec<Result<(), Fault>> {
        self.write(entries.iter().copied().map(RowWrite::DeleteEntry).collect()).await
    }

    /// Reads messages. What one replica does not have is asked of more than half of them:
    /// whoever finds no message drops its entry for good.
    pub(crate) async fn read_messages(&self, entries: &[Entry]) -> Vec<Result<Found, Fault>> {
        let mut messages = self.read_messages_once(entries).await;
        if self.of.consistency == Consistency::LocalQuorum {
            return messages;
        }
        let missing: Vec<usize> = (0..entries.len())
            .filter(|number| matches!(messages[*number], Ok(Found::Nothing)))
            .collect();
        if missing.is_empty() {
            return messages;
        }
        let again: Vec<Entry> = missing.iter().map(|number| entries[*number]).collect();
        let quorum = self.at(Consistency::LocalQuorum);
        for (number, message) in missing.into_iter().zip(quorum.read_messages_once(&again).await) {
            messages[number] = message;
        }
        messages
    }

    async fn read_messages_once(&self, entries: &[Entry]) -> Vec<Result<Found, Fault>> {
        let read = |bucket, messages| self.tables.messages(self.of, bucket, messages);
        let found = by_body(entries, Entry::body_bytes, read).await;
        let found = found.into_iter().map(|found| {
            Ok(match found? {
                Some(Some(message)) => Found::Message(message),
                Some(None) => Found::Unreadable,
                None => Found::Nothing,
            })
        });
        found.collect()
    }

    /// Reads where the last change of their visibility has put messages. `None`: it is gone; `Some(None)`: nobody has changed it.
    pub(crate) async fn read_leases(
        &self,
        entries: &[Entry],
    ) -> Vec<Result<Option<Option<Lease>>, Fault>> {
        let read = |bucket, messages| self.tables.leases(self.of, bucket, messages, For::Messages);
        by_body(entries, |_| 0, read).await
    }

    /// Returns the entries of a bucket from a time on, the oldest first.
    pub(crate) async fn read_entries(
        &self,
        bucket: Bucket,
        from_us: i64,
        most: usize,
    ) -> Result<Vec<Entry>, Fault> {
        self.tables.entries(self.of, bucket, from_us, most.min(READ_ROWS_MAX)).await
    }
}

/// Reads something of the messages of entries, those of one partition together.
async fn by_body<'a, T: Clone>(
    entries: &[Entry],
    bytes: impl Fn(&Entry) -> usize,
    read: impl Fn(Bucket, Vec<Uuid>) -> Asked<'a, BTreeMap<Uuid, T>>,
) -> Vec<Result<Option<T>, Fault>> {
    let sized = entries.iter().enumerate();
    let sized = sized.map(|(number, entry)| (entry.body, bytes(entry), number));
    let read = |batch: Batch<Bucket, usize>| {
        let messages = batch.rows.iter().map(|number| entries[*number].message).collect();
        read(batch.partition, messages).map(|found| (batch.rows, found))
    };
    let mut outcomes = vec![Ok(None); entries.len()];
    let mut read = stream::iter(batches(sized)).map(read).buffer_unordered(BATCHES_AT_ONCE);
    while let Some((numbers, found)) = read.next().await {
        for number in numbers {
            // A message may have several entries: those that are left over from a change that was broken off.
            outcomes[number] = match &found {
                Ok(found) => Ok(found.get(&entries[number].message).cloned()),
                Err(fault) => Err(fault.clone()),
            };
        }
    }
    outcomes
}

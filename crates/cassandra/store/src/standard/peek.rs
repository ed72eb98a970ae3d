//! A look into a standard queue that is no reception: it reads the index and the bodies as a receive does, from the low-water mark
//! on, with nothing that this front-end remembers of the queue, and leaves both as they are.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use quelea_sqs_protocol::{
    Fault, PEEKED_BYTES_MAX, Peeked, PeekedMessage, PeekedState, QueueFacts,
};

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::limits::{PEEKED_BUCKETS_MAX, READ_BUCKETS_MAX};
use crate::message_id::sent_at_ms;
use crate::standard::Standard;
use crate::standard::batch::within_bytes;
use crate::standard::choice::take_leftovers;
use crate::standard::content::{Content, StoredMessage};
use crate::standard::head::merge;
use crate::standard::head_read::read_directory;
use crate::standard::rows::Rows;
use crate::standard::start::{Reach, Start};
use crate::standard::taken::Taken;

/// Entries that are looked at beyond those that are wanted: some lead nowhere.
const ENTRIES_MORE: usize = 32;

/// Entries of the index, in their order.
struct IndexPage {
    entries: Vec<Entry>,
    /// Whether there are no others.
    is_whole: bool,
}

impl Standard {
    /// Looks at the oldest messages of a queue.
    pub(crate) async fn peek(&self, facts: &QueueFacts, max: usize) -> Result<Peeked, Fault> {
        let record = self.tables.record(&facts.queue).await?;
        let record = record.filter(|record| record.facts.key == facts.key);
        let generation = record.ok_or(Fault::NoSuchQueue)?.generation;
        let rows = self.rows_of(facts, generation);
        let now_us = self.clock.now_us();
        let from_us = rows.tables.low_water_mark(rows.of).await?;
        let start = Start { from_us, now_us, reach: Reach::Full };
        let IndexPage { mut entries, mut is_whole } =
            find_oldest(&rows, start, max + ENTRIES_MORE).await?;
        take_leftovers(&mut entries);
        let (mut messages, mut bytes, mut next) = (Vec::new(), 0, 0);
        while messages.len() < max && next < entries.len() && bytes < PEEKED_BYTES_MAX {
            let left = entries[next..].iter().take(max - messages.len());
            let fitting = within_bytes(left.map(Entry::body_bytes), PEEKED_BYTES_MAX - bytes);
            // The first of all is read whatever its size.
            let wanted = if bytes == 0 { fitting.max(1) } else { fitting };
            let some = &entries[next..next + wanted];
            if some.is_empty() {
                break;
            }
            next += wanted;
            bytes += some.iter().map(Entry::body_bytes).sum::<usize>();
            for (entry, message) in some.iter().zip(rows.read_messages(some).await) {
                match self.classify(facts, &rows, entry, Ok(message?), now_us) {
                    Taken::Message(message) => messages.push(peeked(entry, *message, now_us)),
                    Taken::Stale | Taken::Expired => {}
                    Taken::Later | Taken::Unreadable => is_whole = false,
                }
            }
        }
        is_whole &= next == entries.len();
        Ok(Peeked { messages, is_whole })
    }
}

/// Reads entries, visible or not, until there are so many of which it is known that none is before them.
async fn find_oldest(rows: &Rows<'_>, start: Start, wanted: usize) -> Result<IndexPage, Fault> {
    let directory = read_directory(rows, start, start.from_us).await?;
    let buckets = directory.buckets_from(start.from_us);
    let mut entries = Vec::new();
    // Beyond here nothing is known of the buckets that were read: one has more, or is not listed.
    let mut known_to_us = directory.to_us().unwrap_or(i64::MAX);
    for (at, some) in buckets.chunks(READ_BUCKETS_MAX).enumerate() {
        // What is in those that are left begins there, or later.
        let border_us = known_to_us.min(some[0].start_us());
        let before = entries.iter().take_while(|entry: &&Entry| entry.visible_at_us < border_us);
        if before.count() >= wanted || at * READ_BUCKETS_MAX >= PEEKED_BUCKETS_MAX {
            known_to_us = border_us;
            break;
        }
        let read = |bucket: Bucket| rows.read_entries(bucket, start.from_us, wanted);
        let read = stream::iter(some.iter().copied()).map(read).buffered(READ_BUCKETS_MAX);
        let read: Vec<Vec<Entry>> = read.try_collect().await?;
        for more in read {
            let last = more.last().filter(|_| more.len() == wanted);
            known_to_us = last.map_or(known_to_us, |last| known_to_us.min(last.visible_at_us));
            merge(&mut entries, more);
        }
    }
    let is_whole = known_to_us == i64::MAX;
    // Of the bucket that has more, the last is known, too.
    entries.retain(|entry| entry.visible_at_us <= known_to_us);
    Ok(IndexPage { entries, is_whole })
}

fn peeked(entry: &Entry, message: StoredMessage, now_us: i64) -> PeekedMessage {
    let Content { body, attributes, sender, trace_header, group_id, deduplication_id, .. } =
        message.content;
    let until_ms = entry.visible_at_us.max(0).unsigned_abs().div_ceil(1_000);
    let state = match entry {
        Entry { visible_at_us, .. } if *visible_at_us <= now_us => PeekedState::Visible,
        Entry { receive_count: 1.., .. } => PeekedState::InFlight { until_ms },
        _ => PeekedState::Delayed { until_ms },
    };
    let received = entry.receive_count.saturating_add(message.content.earlier_receives);
    let first_received_at_ms = entry.first_received_at_ms.max(0).unsigned_abs();
    let sent_at_ms = sent_at_ms(entry.message);
    PeekedMessage {
        message_id: entry.message.to_string(),
        body,
        attributes,
        receive_count: Some(received.max(0).unsigned_abs()),
        sent_at_ms,
        // Two front-ends' clocks may differ. No message was received before it was sent.
        first_received_at_ms: (first_received_at_ms > 0)
            .then(|| first_received_at_ms.max(sent_at_ms)),
        sender_id: Some(sender).filter(|sender| !sender.is_empty()),
        trace_header,
        group_id,
        deduplication_id,
        sequence_number: None,
        dead_letter_source: message.content.source,
        state: Some(state),
    }
}

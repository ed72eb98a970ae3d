//! Read jobs: bodies, ranges, and whole segments to be copied forward.

use std::sync::Arc;

use quelea_model::{QueueId, Seq, limits};

use crate::chunk::CHUNK_ENTRIES;
use crate::disk::read_all_at;
use crate::record::{MessageRecord, Record, Seed};
use crate::record_reader::{ReadError, RecordReader};
use crate::segment::SegmentFile;
use crate::{
    LoadError, LoadFault, LoadItem, Loaded, LoadedRange, Location, Missed, NEVER, PagedRange,
};

/// Items whose records lie closer than this are read together: reading on is cheaper than a call.
const GAP_BYTES_MAX: u32 = 32 * 1024;
/// What one read fetches at most, unless a record is larger.
const READ_BYTES_MAX: u32 = 1024 * 1024;
/// Guess of what a record has besides its body.
const OVERHEAD_BYTES_GUESS: u32 = 512;

/// A read that the disk refuses is tried so often, over half a minute: a path to a disk may come back, and a
/// message is not to be set aside for that.
const READ_ATTEMPTS_MAX: u32 = 6;

/// A read job.
#[derive(Debug)]
pub(crate) enum ReadJob {
    /// Single bodies; those found in memory are in the answer already.
    Items { spans: Vec<ItemsOfSegment>, loaded: Loaded, attempt: u32 },
    /// A paged-out range.
    PagedRange { segment: OpenSegment, range: PagedRange, loaded: Loaded, attempt: u32 },
    /// All records of a segment.
    Segment { segment: OpenSegment, end: u32 },
}

/// A segment to read from; it is pinned while the job is under way.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) number: u32,
    pub(crate) file: SegmentFile,
    pub(crate) seed: Seed,
}

/// Bodies in one segment.
#[derive(Debug)]
pub(crate) struct ItemsOfSegment {
    pub(crate) segment: OpenSegment,
    pub(crate) items: Vec<LoadItem>,
}

/// The result of a read job.
#[derive(Debug)]
pub(crate) struct ReadDone {
    /// Segments that it does not need any more.
    pub(crate) unpin: Vec<u32>,
    pub(crate) bytes: u64,
    pub(crate) result: ReadResult,
}

#[derive(Debug)]
pub(crate) enum ReadResult {
    Loaded(Loaded),
    /// The disk gave an error: the rest has to be read again, not before so many milliseconds.
    Again(u64, Box<ReadJob>),
    /// The content of a segment from its first byte on, or why there is none.
    Segment(u32, Result<Vec<u8>, String>),
}

impl ReadJob {
    pub(crate) fn run(self) -> ReadDone {
        match self {
            Self::Items { spans, loaded, attempt } => run_items(spans, loaded, attempt),
            Self::PagedRange { segment, range, loaded, attempt } => {
                run_paged_range(segment, range, loaded, attempt)
            }
            Self::Segment { segment, end } => {
                let mut bytes = vec![0; end as usize];
                let result = match read_all_at(&*segment.file.file, 0, &mut bytes) {
                    Ok(read) if read == bytes.len() => Ok(bytes),
                    Ok(read) => Err(format!("the file ends at byte {read}")),
                    Err(error) => Err(error.to_string()),
                };
                ReadDone {
                    // A victim stays pinned until the pass is over.
                    unpin: Vec::new(),
                    bytes: u64::from(end),
                    result: ReadResult::Segment(segment.number, result),
                }
            }
        }
    }
}

fn run_items(spans: Vec<ItemsOfSegment>, mut loaded: Loaded, attempt: u32) -> ReadDone {
    let mut bytes = 0;
    let (mut unpin, mut refused) = (Vec::new(), Vec::new());
    for span in spans {
        let number = span.segment.number;
        let (read, rest) = read_items(span, &mut loaded, attempt);
        bytes += read;
        match rest {
            Some(rest) => refused.push(rest),
            None => unpin.push(number),
        }
    }
    let result = if refused.is_empty() {
        loaded.messages.sort_unstable_by_key(|(seq, _)| *seq);
        ReadResult::Loaded(loaded)
    } else {
        let job = ReadJob::Items { spans: refused, loaded, attempt: attempt + 1 };
        ReadResult::Again(retry_after_ms(attempt), Box::new(job))
    };
    ReadDone { unpin, bytes, result }
}

fn run_paged_range(
    segment: OpenSegment,
    range: PagedRange,
    mut loaded: Loaded,
    attempt: u32,
) -> ReadDone {
    let mut reader = RecordReader::new(Arc::clone(&segment.file.file), segment.seed);
    let max = limits::READ_AHEAD_BYTES_MAX;
    let messages = &mut loaded.messages;
    let found = read_paged_range(&mut reader, loaded.queue, &range, max, messages);
    let bytes = reader.bytes_read;
    match found {
        Ok(found) => loaded.range = Some(found),
        Err((_, ReadError::Io(_))) if attempt < READ_ATTEMPTS_MAX => {
            loaded.messages.clear();
            let job = ReadJob::PagedRange { segment, range, loaded, attempt: attempt + 1 };
            let result = ReadResult::Again(retry_after_ms(attempt), Box::new(job));
            return ReadDone { unpin: Vec::new(), bytes, result };
        }
        Err((offset, error)) => {
            loaded.messages.clear();
            loaded.errors.push(segment.error(Missed::PagedRange(range), offset, &error));
        }
    }
    ReadDone { unpin: vec![segment.number], bytes, result: ReadResult::Loaded(loaded) }
}

/// Returns how long to wait after so many attempts: 100 ms, then four times as long each time. A
/// job keeps the number of the attempt alone, where `backon` would have it keep an iterator.
const fn retry_after_ms(attempt: u32) -> u64 {
    100 << (2 * (attempt - 1))
}

impl OpenSegment {
    fn error(&self, missed: Missed, offset: u32, error: &ReadError) -> LoadError {
        LoadError {
            missed,
            fault: match error {
                ReadError::Io(_) => LoadFault::Io,
                ReadError::Record(_) | ReadError::Other(_) => LoadFault::Damage,
            },
            file: self.file.name.clone(),
            location: Location { segment: self.number, offset },
            problem: error.to_string(),
        }
    }
}

/// Reads bodies in the order in which they lie; returns the bytes read, and what the disk refused if it is to
/// be tried again.
fn read_items(
    span: ItemsOfSegment,
    loaded: &mut Loaded,
    attempt: u32,
) -> (u64, Option<ItemsOfSegment>) {
    let ItemsOfSegment { segment, mut items } = span;
    items.sort_unstable_by_key(|item| item.location.offset);
    let mut reader = RecordReader::new(Arc::clone(&segment.file.file), segment.seed);
    let mut refused = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let offset = item.location.offset;
        let result = reader
            .record(offset, || ahead(&items[at..]))
            .and_then(|parsed| item.message(&parsed.record).map_err(ReadError::Other));
        match result {
            Ok(message) => loaded.messages.push((item.seq, message)),
            Err(ReadError::Io(_)) if attempt < READ_ATTEMPTS_MAX => refused.push(*item),
            Err(error) => {
                loaded.errors.push(segment.error(Missed::Message(item.seq), offset, &error));
            }
        }
    }
    let again = !refused.is_empty();
    (reader.bytes_read, again.then_some(ItemsOfSegment { segment, items: refused }))
}

impl LoadItem {
    /// Returns the message in the record that was found where this item should lie.
    pub(crate) fn message(
        &self,
        record: &Record<'_>,
    ) -> Result<Arc<quelea_model::Message>, String> {
        match record {
            Record::Message(found) | Record::Copy(found) if found.seq == self.seq => {
                found.message().map_err(|error| error.to_string())
            }
            _ => Err("another record lies there".to_owned()),
        }
    }
}

/// Returns how many bytes are worth reading at once for the first of these items and what lies
/// close behind it.
fn ahead(items: &[LoadItem]) -> usize {
    let start = items[0].location.offset;
    let end_of = |item: &LoadItem| {
        item.location.offset.saturating_add(item.body_bytes).saturating_add(OVERHEAD_BYTES_GUESS)
    };
    let mut end = end_of(&items[0]);
    for item in &items[1..] {
        let next = end_of(item).max(end);
        if item.location.offset > end.saturating_add(GAP_BYTES_MAX) || next - start > READ_BYTES_MAX
        {
            break;
        }
        end = end.max(next);
    }
    (end - start) as usize
}

/// Reads all entries of a range, and the first bodies up to some bytes; an error has its offset.
pub(crate) fn read_paged_range(
    reader: &mut RecordReader,
    queue: QueueId,
    range: &PagedRange,
    bodies_bytes_max: usize,
    messages: &mut Vec<(Seq, Arc<quelea_model::Message>)>,
) -> Result<LoadedRange, (u32, ReadError)> {
    let mut found = LoadedRange {
        range: *range,
        entries: Vec::with_capacity((range.count as usize).min(CHUNK_ENTRIES)),
        expiries: Vec::new(),
    };
    let mut bytes = 0;
    let mut check = 0;
    let mut offset = range.first_offset;
    while offset <= range.last_offset {
        let left = (range.last_offset - offset).saturating_add(OVERHEAD_BYTES_GUESS + 4_096);
        let parsed = reader
            .record(offset, || left.min(READ_BYTES_MAX) as usize)
            .map_err(|error| (offset, error))?;
        if let Record::Message(record) | Record::Copy(record) = &parsed.record
            && range.covers(record.seq, record.priority, record.durable)
            && let Some(expiry) = record.expiry_in(queue)
        {
            let location = Location { segment: range.segment, offset };
            found.push(record, location, expiry);
            check = PagedRange::fold(check, record.seq);
            bytes += record.body.len();
            if bytes <= bodies_bytes_max {
                let message = record.message().map_err(|error| (offset, error.into()))?;
                messages.push((record.seq, message));
            }
        }
        offset = offset.saturating_add(parsed.len as u32);
    }
    if found.entries.len() != range.count as usize || check != range.check {
        let problem =
            format!("{} entries were found instead of {}", found.entries.len(), range.count);
        return Err((range.first_offset, ReadError::Other(problem)));
    }
    Ok(found)
}

/// Reads what can be read of a damaged range: the records up to the first whose length cannot be
/// trusted.
pub(crate) fn salvage_paged_range(
    reader: &mut RecordReader,
    queue: QueueId,
    range: &PagedRange,
) -> LoadedRange {
    let mut found = LoadedRange { range: *range, entries: Vec::new(), expiries: Vec::new() };
    let mut offset = range.first_offset;
    while offset <= range.last_offset {
        let len = match reader.record(offset, || READ_BYTES_MAX as usize) {
            Ok(parsed) => {
                if let Record::Message(record) | Record::Copy(record) = &parsed.record
                    && range.covers(record.seq, record.priority, record.durable)
                    && let Some(expiry) = record.expiry_in(queue)
                {
                    found.push(record, Location { segment: range.segment, offset }, expiry);
                }
                parsed.len
            }
            Err(_) => match reader.claimed_len(offset) {
                Some(len) => len,
                None => break,
            },
        };
        offset = offset.saturating_add(len as u32);
    }
    if !found.expiries.is_empty() {
        found.expiries.resize(found.entries.len(), NEVER);
    }
    found
}

impl LoadedRange {
    fn push(
        &mut self,
        record: &MessageRecord<'_>,
        location: Location,
        expiry: quelea_model::Timestamp,
    ) {
        if expiry != NEVER || !self.expiries.is_empty() {
            self.expiries.resize(self.entries.len(), NEVER);
            self.expiries.push(expiry);
        }
        self.entries.push(record.entry(location, expiry));
    }
}

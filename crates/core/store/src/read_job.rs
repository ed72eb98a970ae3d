//! Read jobs: bodies, ranges, and whole segments to be copied forward.

use std::sync::Arc;

use quelea_model::{QueueId, Seq, limits};

use crate::chunk::CHUNK_ENTRIES;
use crate::disk::read_all_at;
use crate::record::{MessageRecord, Record, Seed};
use crate::record_reader::RecordReader;
use crate::segment::SegmentFile;
use crate::{LoadError, LoadItem, Loaded, LoadedRange, Location, NEVER, PagedRange};

/// Items whose records lie closer than this are read together: reading on is cheaper than a call.
const GAP_BYTES_MAX: u32 = 32 * 1024;
/// What one read fetches at most, unless a record is larger.
const READ_BYTES_MAX: u32 = 1024 * 1024;
/// Guess of what a record has besides its body.
const OVERHEAD_BYTES_GUESS: u32 = 512;

/// A read job.
pub(crate) enum ReadJob {
    /// Single bodies; those found in memory are in the answer already.
    Items { spans: Vec<ItemsOfSegment>, loaded: Loaded },
    /// A paged-out range.
    PagedRange { segment: OpenSegment, range: PagedRange, loaded: Loaded },
    /// All records of a segment.
    Segment { segment: OpenSegment, end: u32 },
}

/// A segment to read from; it is pinned while the job is under way.
pub(crate) struct OpenSegment {
    pub(crate) number: u32,
    pub(crate) file: SegmentFile,
    pub(crate) seed: Seed,
}

/// Bodies in one segment.
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
    /// The content of a segment from its first byte on, or why there is none.
    Segment(u32, Result<Vec<u8>, String>),
}

impl ReadJob {
    pub(crate) fn run(self) -> ReadDone {
        match self {
            Self::Items { spans, mut loaded } => {
                let unpin = spans.iter().map(|span| span.segment.number).collect();
                let mut bytes = 0;
                for span in spans {
                    bytes += read_items(span, &mut loaded);
                }
                loaded.messages.sort_unstable_by_key(|(seq, _)| *seq);
                ReadDone { unpin, bytes, result: ReadResult::Loaded(loaded) }
            }
            Self::PagedRange { segment, range, mut loaded } => {
                let mut reader = RecordReader::new(Arc::clone(&segment.file.file), segment.seed);
                let max = limits::READ_AHEAD_BYTES_MAX;
                let messages = &mut loaded.messages;
                match read_paged_range(&mut reader, loaded.queue, &range, max, messages) {
                    Ok(range) => loaded.range = Some(range),
                    Err((offset, problem)) => {
                        loaded.messages.clear();
                        loaded.errors.push(segment.error(
                            None,
                            offset,
                            "a paged-out range",
                            problem,
                        ));
                    }
                }
                ReadDone {
                    unpin: vec![segment.number],
                    bytes: reader.bytes_read,
                    result: ReadResult::Loaded(loaded),
                }
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

impl OpenSegment {
    fn error(
        &self,
        seq: Option<Seq>,
        offset: u32,
        what: &'static str,
        problem: String,
    ) -> LoadError {
        let location = Location { segment: self.number, offset };
        LoadError { seq, file: self.file.name.clone(), location, what, problem }
    }
}

/// Reads bodies in the order in which they lie; returns the bytes read.
fn read_items(span: ItemsOfSegment, loaded: &mut Loaded) -> u64 {
    let ItemsOfSegment { segment, mut items } = span;
    items.sort_unstable_by_key(|item| item.location.offset);
    let mut reader = RecordReader::new(Arc::clone(&segment.file.file), segment.seed);
    for (at, item) in items.iter().enumerate() {
        let offset = item.location.offset;
        let result = match reader.record(offset, || ahead(&items[at..])) {
            Ok(parsed) => item.message(&parsed.record),
            Err(error) => Err(error.to_string()),
        };
        match result {
            Ok(message) => loaded.messages.push((item.seq, message)),
            Err(problem) => {
                loaded.errors.push(segment.error(Some(item.seq), offset, "a message", problem));
            }
        }
    }
    reader.bytes_read
}

impl LoadItem {
    /// The message in the record that was found where this item should lie.
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

/// Bytes worth reading at once for the first of these items and what lies close behind it.
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
) -> Result<LoadedRange, (u32, String)> {
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
            .map_err(|error| (offset, error.to_string()))?;
        if let Record::Message(record) | Record::Copy(record) = &parsed.record
            && range.covers(record.seq, record.priority, record.durable)
            && let Some(expiry) = record.expiry_in(queue)
        {
            let location = Location { segment: range.segment, offset };
            found.push(record, location, expiry);
            check = PagedRange::fold(check, record.seq);
            bytes += record.body.len();
            if bytes <= bodies_bytes_max {
                let message = record.message().map_err(|error| (offset, error.to_string()))?;
                messages.push((record.seq, message));
            }
        }
        offset = offset.saturating_add(parsed.len as u32);
    }
    if found.entries.len() != range.count as usize || check != range.check {
        let problem =
            format!("{} entries were found instead of {}", found.entries.len(), range.count);
        return Err((range.first_offset, problem));
    }
    Ok(found)
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

//! Requests for bodies and ranges, and their answers.

use std::collections::VecDeque;

use quelea_model::Timestamp;

use crate::appender::Appender;
use crate::batch::Batch;
use crate::read_job::{ItemsOfSegment, OpenSegment, ReadJob};
use crate::segment::Segments;
use crate::{
    LoadError, LoadFault, LoadItem, LoadRequest, LoadWhat, Loaded, Location, Missed, PagedRange,
};

/// Reads to do, reads under way, answers to fetch. Bounded by the broker, which has at most one
/// request per queue under way, and a few for those who look at queues.
#[derive(Default)]
pub(crate) struct LoadQueue {
    /// Paged-out ranges that are not wholly written yet.
    waiting: Vec<LoadRequest>,
    reads: VecDeque<ReadJob>,
    under_way: usize,
    /// Reads that the disk refused, and when they are tried again.
    retries: Vec<(Timestamp, ReadJob)>,
    loaded: VecDeque<Loaded>,
}

impl LoadQueue {
    /// Takes a request. What is not written yet is read from memory.
    pub(crate) fn request(
        &mut self,
        request: LoadRequest,
        written_to: Location,
        sealed: Option<&Batch>,
        appender: &Appender,
        segments: &mut Segments,
    ) {
        match &request.what {
            LoadWhat::Items(items) => {
                let loaded = empty_answer(&request);
                let memory = UnwrittenRecords { sealed, appender, segments };
                let (rest, loaded) = memory.take(items, written_to, loaded);
                self.push_items(rest, loaded, segments);
            }
            LoadWhat::PagedRange(range) if range.last_location() >= written_to => {
                self.waiting.push(request);
            }
            LoadWhat::PagedRange(range) => self.push_paged_range(&request, *range, segments),
        }
    }

    /// Takes the requests for paged-out ranges that could not be read at the last attempt.
    pub(crate) fn take_waiting(&mut self) -> Vec<LoadRequest> {
        std::mem::take(&mut self.waiting)
    }

    /// The store has failed: what was not written will never be.
    pub(crate) fn fail_waiting(&mut self) {
        for request in self.take_waiting() {
            let mut loaded = empty_answer(&request);
            if let LoadWhat::PagedRange(range) = &request.what {
                loaded.errors.push(range_error(range, "it was never written"));
            }
            self.loaded.push_back(loaded);
        }
    }

    pub(crate) fn push(&mut self, read: ReadJob) {
        self.reads.push_back(read);
    }

    /// Tries a read that the disk refused once more, later.
    pub(crate) fn retry(&mut self, at: Timestamp, read: ReadJob) {
        self.under_way = self.under_way.saturating_sub(1);
        self.retries.push((at, read));
    }

    /// Returns when the next retry is due; while `max` reads are under way, none is before one of
    /// them is done.
    pub(crate) fn retry_at(&self, max: usize) -> Option<Timestamp> {
        let next = self.retries.iter().map(|(at, _)| *at).min();
        next.filter(|_| self.under_way < max)
    }

    /// Returns the next job, while less than `max` are under way.
    pub(crate) fn poll(&mut self, max: usize, now: Timestamp) -> Option<ReadJob> {
        if self.under_way >= max {
            return None;
        }
        let due = self.retries.iter().position(|(at, _)| *at <= now);
        self.reads.extend(due.map(|due| self.retries.swap_remove(due).1));
        let read = self.reads.pop_front()?;
        self.under_way += 1;
        Some(read)
    }

    /// Notes that a job is done.
    pub(crate) fn complete(&mut self, loaded: Option<Loaded>) {
        self.under_way = self.under_way.saturating_sub(1);
        self.loaded.extend(loaded);
    }

    pub(crate) fn poll_loaded(&mut self) -> Option<Loaded> {
        self.loaded.pop_front()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.reads.is_empty() && self.under_way == 0
    }

    fn push_items(
        &mut self,
        mut items: Vec<LoadItem>,
        mut loaded: Loaded,
        segments: &mut Segments,
    ) {
        items.sort_unstable_by_key(|item| item.location);
        let mut spans = Vec::new();
        for group in items.chunk_by(|a, b| a.location.segment == b.location.segment) {
            match open(group[0].location.segment, segments) {
                Some(segment) => spans.push(ItemsOfSegment { segment, items: group.to_vec() }),
                None => loaded.errors.extend(
                    group
                        .iter()
                        .map(|item| item_error(item, "there is no such segment".to_owned())),
                ),
            }
        }
        if spans.is_empty() {
            loaded.messages.sort_unstable_by_key(|(seq, _)| *seq);
            self.loaded.push_back(loaded);
        } else {
            self.reads.push_back(ReadJob::Items { spans, loaded, attempt: 1 });
        }
    }

    fn push_paged_range(
        &mut self,
        request: &LoadRequest,
        range: PagedRange,
        segments: &mut Segments,
    ) {
        let mut loaded = empty_answer(request);
        match open(range.segment, segments) {
            Some(segment) => {
                self.reads.push_back(ReadJob::PagedRange { segment, range, loaded, attempt: 1 });
            }
            None => {
                loaded.errors.push(range_error(&range, "there is no such segment"));
                self.loaded.push_back(loaded);
            }
        }
    }
}

/// Opens a segment for a read job and pins it.
fn open(number: u32, segments: &mut Segments) -> Option<OpenSegment> {
    let segment = segments.get_mut(number)?;
    let file = segment.file.clone()?;
    segment.pins += 1;
    Some(OpenSegment { number, file, seed: segment.seed })
}

const fn empty_answer(request: &LoadRequest) -> Loaded {
    Loaded {
        token: request.token,
        queue: request.queue,
        messages: Vec::new(),
        range: None,
        errors: Vec::new(),
    }
}

fn error(missed: Missed, location: Location, problem: String) -> LoadError {
    let file = format!("segment {}", location.segment);
    LoadError { missed, fault: LoadFault::Damage, file, location, problem }
}

fn item_error(item: &LoadItem, problem: String) -> LoadError {
    error(Missed::Message(item.seq), item.location, problem)
}

fn range_error(range: &PagedRange, problem: &str) -> LoadError {
    error(Missed::PagedRange(*range), range.first_location(), problem.to_owned())
}

/// What was appended and is not written yet.
struct UnwrittenRecords<'a> {
    sealed: Option<&'a Batch>,
    appender: &'a Appender,
    segments: &'a Segments,
}

impl UnwrittenRecords<'_> {
    /// Answers those items that are not on the disk; returns the others.
    fn take(
        &self,
        items: &[LoadItem],
        written_to: Location,
        mut loaded: Loaded,
    ) -> (Vec<LoadItem>, Loaded) {
        let mut rest = Vec::with_capacity(items.len());
        for item in items {
            if item.location < written_to {
                rest.push(*item);
                continue;
            }
            match self.message(item) {
                Ok(message) => loaded.messages.push((item.seq, message)),
                Err(problem) => loaded.errors.push(item_error(item, problem)),
            }
        }
        (rest, loaded)
    }

    fn message(&self, item: &LoadItem) -> Result<std::sync::Arc<quelea_model::Message>, String> {
        let at = item.location;
        let sealed = self.sealed.and_then(|batch| batch.part_of(at));
        let part = sealed.or_else(|| self.appender.parts().iter().find(|part| part.holds(at)));
        let (Some(part), Some(segment)) = (part, self.segments.get(at.segment)) else {
            return Err("it was never written".to_owned());
        };
        part.with_record(at.offset, segment.seed, |parsed| item.message(&parsed.record))
            .map_err(|error| error.to_string())?
    }
}

impl std::fmt::Debug for LoadQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadQueue({} waiting, {} under way)", self.reads.len(), self.under_way)
    }
}

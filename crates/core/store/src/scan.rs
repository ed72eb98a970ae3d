//! Walks the records of segments in order and hands complete groups to the replay.

use std::collections::BTreeMap;
use std::io;

use quelea_model::Seq;

use crate::record::{self, Commit, Record};
use crate::record_reader::{ReadError, RecordReader};
use crate::replay::{Replay, ReplaySegment};
use crate::{Location, OpenError};

/// Bytes of one read.
const READ_BYTES: usize = 4 * 1024 * 1024;

/// A walk through the log.
pub(crate) struct Scan<'a> {
    pub(crate) replay: &'a mut Replay,
    reader: Option<RecordReader>,
    /// Number of the last commit.
    pub(crate) commit: u64,
    /// Behind the last complete group.
    pub(crate) committed: Location,
    /// The number of its commit.
    pub(crate) committed_commit: u64,
    /// That group ended its segment.
    pub(crate) committed_end: bool,
    /// What was found in each segment.
    pub(crate) tallies: BTreeMap<u32, Tally>,
    /// Records since the last commit.
    pub(crate) open_records: u32,
    /// Something was skipped since the last commit: the next one need not fit.
    pub(crate) lenient: bool,
    /// The greatest number of a message so far.
    pub(crate) last_seq: Seq,
    /// The commit before that message.
    pub(crate) seq_commit: u64,
    /// The same up to the last complete group.
    pub(crate) committed_seq: Seq,
    /// Damage by which messages were lost up to the next one that is read.
    pub(crate) unbounded: Vec<usize>,
}

/// What a segment holds, as far as it was walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// Where it was begun.
    pub(crate) start: u32,
    /// Behind its last record.
    pub(crate) end: u32,
    pub(crate) pairs: u32,
    pub(crate) topology: bool,
}

/// How a segment's walk ended.
pub(crate) enum SegmentEnd {
    /// With a record that says so.
    Complete,
    /// At something that is no record of this segment.
    Broken { offset: u32, problem: String },
}

/// The group that is being walked.
struct Group {
    start: u32,
    records: u32,
    chain: u32,
}

impl<'a> Scan<'a> {
    /// Returns a walk that begins behind the commit of this number.
    pub(crate) const fn new(replay: &'a mut Replay, position: Location, commit: u64) -> Self {
        Self {
            lenient: false,
            last_seq: Seq(replay.next_seq.saturating_sub(1)),
            seq_commit: commit,
            committed_seq: Seq(replay.next_seq.saturating_sub(1)),
            unbounded: Vec::new(),
            replay,
            reader: None,
            commit,
            committed: position,
            committed_commit: commit,
            committed_end: false,
            tallies: BTreeMap::new(),
            open_records: 0,
        }
    }

    /// Walks a segment from an offset at which a group begins.
    pub(crate) fn segment(
        &mut self,
        number: u32,
        segment: &ReplaySegment,
        start: u32,
    ) -> Result<SegmentEnd, OpenError> {
        let mut reader = match self.reader.take() {
            Some(mut reader) => {
                reader.switch_to(segment.file.clone(), segment.seed);
                reader
            }
            None => RecordReader::new(segment.file.clone(), segment.seed),
        };
        let mut tally = Tally { start, end: start, pairs: 0, topology: false };
        if let Some(before) = self.tallies.get(&number) {
            // Something was skipped.
            tally = Tally { end: start, ..*before };
        }
        let end = self.walk(&mut reader, number, &mut tally);
        self.tallies.insert(number, tally);
        self.reader = Some(reader);
        end.map_err(|source| OpenError::Io { action: "read", file: segment.name.clone(), source })?
    }

    fn walk(
        &mut self,
        reader: &mut RecordReader,
        number: u32,
        tally: &mut Tally,
    ) -> io::Result<Result<SegmentEnd, OpenError>> {
        let mut group = Group::at(tally.end);
        loop {
            self.open_records = group.records;
            let at = Location { segment: number, offset: tally.end };
            let parsed = match reader.record(at.offset, || READ_BYTES) {
                Ok(parsed) => parsed,
                Err(ReadError::Io(error)) => return Err(error),
                Err(error) => return Ok(Ok(broken(at, &error.to_string()))),
            };
            let Some(end) = at.offset.checked_add(parsed.len as u32) else {
                return Ok(Ok(broken(at, "the record ends beyond any segment")));
            };
            let Record::Commit(commit) = &parsed.record else {
                group.records += 1;
                group.chain = record::chain(group.chain, parsed.checksum);
                tally.count(&parsed.record);
                tally.end = end;
                self.replay.record(&parsed.record, at);
                if let Record::Message(message) = &parsed.record {
                    let seq = message.seq;
                    self.note_message(seq);
                }
                continue;
            };
            if !(self.lenient || group.fits(commit)) || commit.number <= self.commit {
                return Ok(Ok(broken(at, "the commit is not that of the records before it")));
            }
            tally.end = end;
            self.lenient = false;
            self.commit = commit.number;
            if !commit.continued {
                if let Err(error) = self.replay.commit() {
                    return Ok(Err(error));
                }
                self.committed_seq = self.last_seq;
                self.committed = Location { segment: number, offset: end };
                self.committed_commit = commit.number;
                self.committed_end = commit.segment_end;
            }
            if commit.segment_end {
                return Ok(Ok(SegmentEnd::Complete));
            }
            group = Group::at(end);
        }
    }
}

fn broken(at: Location, problem: &str) -> SegmentEnd {
    SegmentEnd::Broken { offset: at.offset, problem: problem.to_owned() }
}

impl Group {
    const fn at(start: u32) -> Self {
        Self { start, records: 0, chain: 0 }
    }

    const fn fits(&self, commit: &Commit) -> bool {
        commit.start == self.start && commit.records == self.records && commit.chain == self.chain
    }
}

impl Tally {
    fn count(&mut self, record: &Record<'_>) {
        match record {
            Record::Message(message) => {
                self.pairs = self.pairs.saturating_add(message.queue_count());
            }
            Record::Copy(_) => self.pairs = self.pairs.saturating_add(1),
            Record::TopologyPut { .. } | Record::TopologyDelete(_) | Record::Deduplication(..) => {
                self.topology = true;
            }
            _ => {}
        }
    }
}

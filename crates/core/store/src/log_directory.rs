//! What the log's directory holds, as an opening finds it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::checkpoint_file::{checkpoint_name, checkpoint_number};
use crate::disk::{final_name, read_all_at};
use crate::record::Seed;
use crate::replay::ReplaySegment;
use crate::segment::{
    FORMAT_VERSION, HeaderState, SEGMENT_HEADER_BYTES, SegmentFile, SegmentHeader, SyncedNote,
};
use crate::{Disk, DiskFile, Location, OpenError};

/// The files of a log.
#[derive(Default)]
pub(crate) struct LogDirectory {
    /// Those with the header of a segment in use, by its number.
    pub(crate) segments: BTreeMap<u32, FoundSegment>,
    pub(crate) spare_segments: Vec<SegmentFile>,
    /// Bytes of a file that is not for one large record.
    segment_bytes: u32,
    /// Numbers of checkpoints, rising.
    pub(crate) checkpoints: Vec<u64>,
    /// Files whose creation was cut off.
    unfinished: Vec<String>,
    /// Those without a header.
    headerless: Vec<(String, Arc<dyn DiskFile>)>,
    /// A header says that files are renamed when they have headers.
    is_renamed: bool,
    /// Greater than every number in a segment file's name.
    pub(crate) next_slot: u32,
}

/// A file with a segment in it.
#[derive(Debug)]
pub(crate) struct FoundSegment {
    /// Its bytes are those that are there, which may be fewer than the header says.
    pub(crate) file: SegmentFile,
    pub(crate) header: SegmentHeader,
    /// The last commit that it notes as having been on the disk; 0 if it notes none.
    noted_commit: u64,
}

impl FoundSegment {
    pub(crate) fn seed(&self) -> Seed {
        Seed::new(self.header.salt, self.header.segment)
    }
}

impl LogDirectory {
    pub(crate) fn scan(disk: &dyn Disk, segment_bytes: u32) -> Result<Self, OpenError> {
        let mut directory = Self { next_slot: 1, segment_bytes, ..Self::default() };
        let names = disk.list().map_err(|source| OpenError::Io {
            action: "list",
            file: "the log's directory".to_owned(),
            source,
        })?;
        for name in names {
            if let Some(slot) = SegmentFile::slot_of(&name) {
                directory.next_slot = directory.next_slot.max(slot.saturating_add(1));
                directory.add_segment(disk, name)?;
            } else if let Some(number) = checkpoint_number(&name) {
                directory.checkpoints.push(number);
            } else if let Some(finished) = final_name(&name) {
                let slot = SegmentFile::slot_of(finished);
                directory.next_slot =
                    directory.next_slot.max(slot.map_or(1, |slot| slot.saturating_add(1)));
                if slot.is_some() || checkpoint_number(finished).is_some() {
                    directory.unfinished.push(name);
                }
            }
            // Other files are not ours.
        }
        directory.checkpoints.sort_unstable();
        directory.check_headerless()?;
        Ok(directory)
    }

    /// Checks the files without a header. Such a file has lost it, unless the log is of a program
    /// that made files under their final names: then one of zeros was in the making.
    fn check_headerless(&mut self) -> Result<(), OpenError> {
        for (name, file) in std::mem::take(&mut self.headerless) {
            let is_damaged = self.is_renamed
                || is_written(&*file, self.segment_bytes).map_err(|source| OpenError::Io {
                    action: "read",
                    file: name.clone(),
                    source,
                })?;
            if is_damaged {
                let problem = "its header is gone".to_owned();
                return Err(OpenError::Damaged { file: name, offset: 0, problem });
            }
            self.unfinished.push(name);
        }
        Ok(())
    }

    fn add_segment(&mut self, disk: &dyn Disk, name: String) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { action: "read", file: name.clone(), source };
        let file = disk.open(&name).map_err(io)?;
        let mut sector = [0; SEGMENT_HEADER_BYTES as usize];
        let read = read_all_at(&*file, 0, &mut sector).map_err(io)?;
        let header = match SegmentHeader::decode(&sector[..read]) {
            HeaderState::Header(header) => header,
            HeaderState::Missing => {
                self.headerless.push((name, file));
                return Ok(());
            }
            HeaderState::Version(version) => {
                return Err(OpenError::Version { file: name, version, known: FORMAT_VERSION });
            }
            HeaderState::Damaged(problem) => {
                return Err(OpenError::Damaged {
                    file: name,
                    offset: 0,
                    problem: problem.to_owned(),
                });
            }
        };
        self.is_renamed |= header.is_renamed;
        // What lost its end is not used again.
        let len = file.len().map_err(io)?;
        let bytes = u32::try_from(len).map_or(header.bytes, |len| len.min(header.bytes));
        let file = SegmentFile { name, file, bytes };
        if header.segment == 0 {
            self.spare_segments.push(file);
            return Ok(());
        }
        let (number, name) = (header.segment, file.name.clone());
        let seed = Seed::new(header.salt, number);
        let noted_commit = SyncedNote::decode(&sector[..read], seed).unwrap_or(0);
        match self.segments.insert(number, FoundSegment { file, header, noted_commit }) {
            None => Ok(()),
            Some(other) => Err(OpenError::Damaged {
                file: name,
                offset: 12,
                problem: format!("segment {number} is in {} too", other.file.name),
            }),
        }
    }

    /// Returns the identity that all files agree on; `None` if there is none yet.
    pub(crate) fn log_id(&self, checkpoint: Option<u64>) -> Result<Option<u64>, OpenError> {
        let mut log_id = checkpoint;
        for found in self.segments.values() {
            if *log_id.get_or_insert(found.header.log_id) != found.header.log_id {
                return Err(OpenError::Damaged {
                    file: found.file.name.clone(),
                    offset: 16,
                    problem: "the file belongs to another log".to_owned(),
                });
            }
        }
        Ok(log_id)
    }

    pub(crate) fn for_replay(&self) -> BTreeMap<u32, ReplaySegment> {
        self.segments.iter().map(|(number, found)| (*number, found.for_replay())).collect()
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.segments.contains_key(&number)
    }

    pub(crate) fn segment(&self, number: u32) -> Result<ReplaySegment, OpenError> {
        self.segments.get(&number).map(FoundSegment::for_replay).ok_or_else(|| OpenError::Missing {
            segment: number,
            problem: "the log ends in it".to_owned(),
        })
    }

    /// Has the system read a segment ahead, if there is one.
    pub(crate) fn will_need(&self, from: Location) {
        if let Some(found) = self.segments.get(&from.segment) {
            let len = found.header.bytes.saturating_sub(from.offset);
            found.file.file.will_need(u64::from(from.offset), u64::from(len));
        }
    }

    /// Returns the greatest number of a segment.
    pub(crate) fn last(&self) -> Option<u32> {
        self.segments.last_key_value().map(|(number, _)| *number)
    }

    /// Returns the numbers from this one on, rising.
    pub(crate) fn numbers_from(&self, number: u32) -> impl Iterator<Item = u32> {
        self.segments.range(number..).map(|(number, _)| *number)
    }

    /// Returns the start of the unbroken run of numbers that ends with the last one, but at least
    /// `from`.
    pub(crate) fn run_start(&self, from: u32) -> u32 {
        let mut start = self.last().unwrap_or(from);
        while start > from && self.has(start - 1) {
            start -= 1;
        }
        start
    }

    /// Returns the number of the last commit before a segment.
    pub(crate) fn commit_before(&self, number: u32) -> u64 {
        self.segments.get(&number).map_or(0, |found| found.header.commit)
    }

    /// Returns the last commit that a segment notes as having been on the disk; 0 if it notes none.
    pub(crate) fn noted_commit(&self, number: u32) -> u64 {
        self.segments.get(&number).map_or(0, |found| found.noted_commit)
    }

    pub(crate) fn capacity(&self, number: u32) -> u32 {
        self.segments.get(&number).map_or(0, |found| found.header.bytes)
    }

    /// Returns the length of a segment's file if that is less than it was made with: it was filled with
    /// zeros then.
    pub(crate) fn cut_off(&self, number: u32) -> Option<u32> {
        let FoundSegment { file, header, .. } = self.segments.get(&number)?;
        let was_filled = header.bytes == self.segment_bytes;
        (was_filled && file.bytes < header.bytes).then_some(file.bytes)
    }

    /// Takes the segments behind this one, the last first.
    pub(crate) fn take_after(&mut self, number: u32) -> Vec<SegmentFile> {
        let after = self.segments.split_off(&number.saturating_add(1));
        after.into_values().rev().map(|found| found.file).collect()
    }

    /// Returns a number greater than every message number used before a segment.
    pub(crate) fn next_seq_before(&self, number: u32) -> u64 {
        self.segments.get(&number).map_or(1, |found| found.header.next_seq)
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.segments.values().map(|found| found.header.next_seq).max().unwrap_or(1)
    }

    pub(crate) fn next_queue(&self) -> u32 {
        self.segments.values().map(|found| found.header.next_queue).max().unwrap_or(1)
    }

    /// Returns the files that nothing needs: unfinished ones, and checkpoints that a newer one
    /// replaces.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let older = self.checkpoints.split_last().map_or(&[][..], |(_, older)| older);
        let older = older.iter().map(|number| checkpoint_name(*number));
        self.unfinished.iter().cloned().chain(older).collect()
    }
}

/// Returns whether a file without a header was a segment once. One of the usual size holds zeros while it is made;
/// the first write into that of one large record may have been torn in any way, so it proves nothing.
fn is_written(file: &dyn DiskFile, segment_bytes: u32) -> io::Result<bool> {
    if file.len()? != u64::from(segment_bytes) {
        return Ok(false);
    }
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let read = read_all_at(file, offset, &mut buffer)?;
        if buffer[..read].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        if read < buffer.len() {
            return Ok(false);
        }
        offset += read as u64;
    }
}

impl FoundSegment {
    fn for_replay(&self) -> ReplaySegment {
        ReplaySegment {
            name: self.file.name.clone(),
            file: self.file.file.clone(),
            seed: self.seed(),
            version: self.header.version,
        }
    }
}

//! Segments' files that are not part of the log: spare ones, ones in the making, ones to go.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::Timestamp;

use crate::allocation::{Allocated, Allocation};
use crate::segment::SegmentFile;
use crate::{DiskFile, Options};

/// Spare files that are always kept ahead, at least.
const AHEAD: usize = 1;

/// Keeps a file ready for the next segment, so that a full disk is seen before it hurts.
#[derive(Debug)]
pub(crate) struct SegmentPool {
    log_id: u64,
    bytes: u32,
    max: usize,
    /// Spare files to be kept ahead.
    ahead: usize,
    retry_ms: u64,
    ready: Vec<SegmentFile>,
    next_slot: u32,
    filling: Option<Filling>,
    /// The capacity that a segment for one large record needs, if one waits for its file.
    large: Option<u32>,
    retire: VecDeque<SegmentFile>,
    remove: VecDeque<String>,
    busy: bool,
    retry_at: Option<Timestamp>,
    full: Option<String>,
}

struct Filling {
    name: String,
    file: Arc<dyn DiskFile>,
    done: u32,
}

impl std::fmt::Debug for Filling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} up to {}", self.name, self.done)
    }
}

impl SegmentPool {
    pub(crate) fn new(log_id: u64, options: &Options, next_slot: u32) -> Self {
        Self {
            log_id,
            bytes: options.segment_bytes,
            max: options.spare_segments_max.max(AHEAD),
            ahead: AHEAD,
            retry_ms: options.full_retry_ms,
            ready: Vec::new(),
            next_slot,
            filling: None,
            large: None,
            retire: VecDeque::new(),
            remove: VecDeque::new(),
            busy: false,
            retry_at: None,
            full: None,
        }
    }

    /// Adds a file that is a spare one already.
    pub(crate) fn add(&mut self, file: SegmentFile) {
        if file.bytes == self.bytes && self.len() < self.max.max(self.ahead) {
            self.ready.push(file);
        } else {
            self.remove.push_back(file.name);
        }
    }

    /// Takes the file of a segment that is not part of the log any more.
    pub(crate) fn recycle(&mut self, file: SegmentFile) {
        if file.bytes == self.bytes && self.len() < self.max.max(self.ahead) {
            self.retire.push_back(file);
        } else {
            self.remove.push_back(file.name);
        }
    }

    /// So many spare files are kept ahead from now on.
    pub(crate) fn set_ahead(&mut self, files: usize) {
        self.ahead = files.max(AHEAD);
    }

    /// Returns how many files are or will be ready without allocating.
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.retire.len()
    }

    /// Returns how many files of the usual size can be written to now.
    pub(crate) fn ready(&self) -> usize {
        self.ready.iter().filter(|file| file.bytes == self.bytes).count()
    }

    /// Returns whether the next segment has no file yet.
    pub(crate) fn is_short(&self) -> bool {
        self.len() < self.ahead
    }

    /// Returns why there are too few spare files, if the disk is full.
    pub(crate) fn full(&self) -> Option<&str> {
        self.full.as_deref().filter(|_| self.ready.len() < self.ahead || self.large.is_some())
    }

    /// Returns whether a job is under way.
    pub(crate) const fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) const fn retry_at(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// Takes a file for a segment of this capacity. If there is none it will be made.
    pub(crate) fn take(&mut self, capacity: u32) -> Option<SegmentFile> {
        let found = self.ready.iter().position(|file| file.bytes == capacity);
        if found.is_none() && capacity != self.bytes {
            self.large = Some(capacity);
        }
        found.map(|at| self.ready.swap_remove(at))
    }

    /// Returns the next job.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Allocation> {
        if self.busy {
            return None;
        }
        let allocation = self.next(now)?;
        self.busy = true;
        Some(allocation)
    }

    /// Returns whether a job would be about a file that someone may wait for.
    pub(crate) fn is_urgent(&self) -> bool {
        self.large.is_some() || self.ready.is_empty()
    }

    fn next(&mut self, now: Timestamp) -> Option<Allocation> {
        if let Some(file) = self.retire.pop_front() {
            return Some(Allocation::Retire { file, log_id: self.log_id });
        }
        // Removing first may make the room that is missing.
        if let Some(name) = self.remove.pop_front() {
            return Some(Allocation::Remove { name });
        }
        if self.retry_at.is_some_and(|at| now < at) {
            return None;
        }
        self.retry_at = None;
        if let Some(bytes) = self.large {
            return Some(Allocation::Create { name: self.new_name(), bytes, log_id: self.log_id });
        }
        if self.len() >= self.ahead {
            self.full = None;
            return None;
        }
        let (name, file, done) = match self.filling.take() {
            Some(filling) => (filling.name, Some(filling.file), filling.done),
            None => (self.new_name(), None, 0),
        };
        Some(Allocation::Fill { name, bytes: self.bytes, log_id: self.log_id, file, done })
    }

    /// Takes a job's result.
    pub(crate) fn complete(&mut self, allocated: Allocated, now: Timestamp) {
        self.busy = false;
        match allocated {
            Allocated::Filling { name, file, done } => {
                self.filling = Some(Filling { name, file, done });
            }
            Allocated::Ready(file) => {
                if self.large == Some(file.bytes) {
                    self.large = None;
                }
                self.full = None;
                self.ready.push(file);
            }
            Allocated::Removed => {}
            Allocated::Failed { name, bytes, error } => {
                self.full = Some(format!("cannot allocate {bytes} bytes for {name}: {error}"));
                self.retry_at = Some(now.plus_ms(self.retry_ms));
            }
        }
    }

    fn new_name(&mut self) -> String {
        let name = SegmentFile::name_of(self.next_slot);
        self.next_slot += 1;
        name
    }
}

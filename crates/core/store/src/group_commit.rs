//! Group commit: one batch is written while the next one gathers.

use std::sync::Arc;

use quelea_model::Timestamp;

use crate::appender::Appender;
use crate::batch::Batch;
use crate::disk;
use crate::job::{BatchWrite, Work, WriteError};
use crate::segment::Segments;
use crate::segment_pool::SegmentPool;
use crate::{Durability, Location, Options, Progress, StoreStats, Ticket};

/// A batch that nobody waits for may gather this long, so that single acknowledgements do not
/// cost a system call each.
const GATHER_MS: u64 = 10;
/// Such a batch is written all the same when it has so many bytes.
const GATHER_BYTES: usize = 256 * 1024;
/// After so long without work, a commit says that all is on the disk: then damage is never taken for the torn
/// end that a crash leaves.
const ANNOUNCE_AFTER_MS: u64 = 1_000;

/// What was appended, on its way to the disk.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    /// Number of the open batch.
    open: u64,
    /// Taken out of the appender, not yet written; under way if `busy`.
    sealed: Option<Arc<Batch>>,
    busy: Option<Busy>,
    progress: Progress,
    /// Someone waits for this batch to be synced.
    sync_wanted: u64,
    /// Someone waits for the open batch.
    waited_for: bool,
    /// When the open batch was first seen.
    opened_at: Option<Timestamp>,
    /// Since when something written is not synced.
    unsynced_since: Option<Timestamp>,
    /// Where what is written ends.
    written_to: Location,
    /// Number of the last commit before that place.
    written_commit: u64,
    /// Since when everything is on the disk and no commit says so.
    quiet_since: Option<Timestamp>,
    /// The disk was full at the last attempt; the next is made then.
    retry_at: Option<Timestamp>,
    full: Option<String>,
    failed: Option<String>,
    lazy_sync_ms: u64,
    retry_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum Busy {
    Writing { sync: bool },
    Syncing { through: u64 },
}

impl GroupCommit {
    pub(crate) const fn new(options: &Options, written_to: Location) -> Self {
        Self {
            open: 1,
            sealed: None,
            busy: None,
            progress: Progress { written: 0, synced: 0 },
            sync_wanted: 0,
            waited_for: false,
            opened_at: None,
            unsynced_since: None,
            written_to,
            written_commit: 0,
            quiet_since: None,
            retry_at: None,
            full: None,
            failed: None,
            lazy_sync_ms: options.lazy_sync_ms,
            retry_ms: options.full_retry_ms,
        }
    }

    pub(crate) const fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns the number of the batch that is being appended to.
    pub(crate) const fn open(&self) -> u64 {
        self.open
    }

    pub(crate) const fn written_to(&self) -> Location {
        self.written_to
    }

    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    pub(crate) fn full(&self) -> Option<&str> {
        self.full.as_deref()
    }

    /// Returns the batch that is sealed and not yet written.
    pub(crate) fn sealed(&self) -> Option<&Batch> {
        self.sealed.as_deref()
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.sealed.as_ref().map_or(0, |batch| batch.bytes)
    }

    /// Returns a ticket that stands for all that is in the open batch or before it.
    pub(crate) fn ticket(&mut self, durability: Durability, open_is_empty: bool) -> Ticket {
        if durability == Durability::None {
            return Ticket::NONE;
        }
        if self.failed.is_some() {
            return Ticket { batch: u64::MAX, durability };
        }
        let batch = if open_is_empty { self.open - 1 } else { self.open };
        self.waited_for |= !open_is_empty;
        if durability == Durability::Fsync {
            self.sync_wanted = self.sync_wanted.max(batch);
        }
        Ticket { batch, durability }
    }

    /// Returns whether everything up to the open batch is synced, or never will be.
    pub(crate) const fn is_idle(&self) -> bool {
        let done = self.sealed.is_none() && self.progress.synced == self.progress.written;
        self.busy.is_none() && (done || self.failed.is_some())
    }

    /// Returns the next job of the write lane.
    pub(crate) fn poll(
        &mut self,
        appender: &mut Appender,
        segments: &mut Segments,
        pool: &mut SegmentPool,
        now: Timestamp,
    ) -> Option<Work> {
        if self.busy.is_some() || self.failed.is_some() {
            return None;
        }
        self.announce_when_quiet(appender, now);
        if self.sealed.is_none() && self.is_due(appender, now) {
            self.sealed = appender.seal(self.open).map(Arc::new);
            self.open += u64::from(self.sealed.is_some());
            self.waited_for = false;
            self.opened_at = None;
        }
        match &self.sealed {
            Some(batch) => {
                if self.retry_at.is_some_and(|at| now < at) {
                    return None;
                }
                let write = prepare(batch, segments, pool)?;
                let sync = self.wants_sync(now);
                self.busy = Some(Busy::Writing { sync });
                Some(Work::Write(BatchWrite { sync, ..write }))
            }
            None => self.poll_sync(segments, now),
        }
    }

    /// Notes what is on the disk for the next commit; if there is none for a while, makes one for it.
    fn announce_when_quiet(&mut self, appender: &mut Appender, now: Timestamp) {
        if self.progress.synced == self.progress.written {
            appender.note_synced(self.written_commit);
        }
        let is_quiet = self.sealed.is_none() && appender.is_empty() && !appender.is_atomic();
        if !is_quiet || !appender.has_to_announce() {
            self.quiet_since = None;
        } else if now >= self.quiet_since.get_or_insert(now).plus_ms(ANNOUNCE_AFTER_MS) {
            self.quiet_since = None;
            appender.announce();
            self.waited_for |= !appender.is_empty();
        }
    }

    /// Returns whether the open batch is to be written now.
    fn is_due(&mut self, appender: &Appender, now: Timestamp) -> bool {
        if appender.is_empty() || appender.is_atomic() {
            return false;
        }
        let opened_at = *self.opened_at.get_or_insert(now);
        self.waited_for
            || appender.pending_bytes() >= GATHER_BYTES
            || now >= opened_at.plus_ms(GATHER_MS)
    }

    fn poll_sync(&mut self, segments: &Segments, now: Timestamp) -> Option<Work> {
        if self.progress.synced == self.progress.written || !self.wants_sync(now) {
            return None;
        }
        // All earlier segments were synced before this one was begun.
        let file = segments.get(self.written_to.segment)?.file.as_ref()?;
        self.busy = Some(Busy::Syncing { through: self.progress.written });
        Some(Work::Sync(Arc::clone(&file.file)))
    }

    /// Returns whether someone waits for a sync, or nobody has for long enough.
    fn wants_sync(&self, now: Timestamp) -> bool {
        self.sync_wanted > self.progress.synced
            || self.unsynced_since.is_some_and(|since| now >= since.plus_ms(self.lazy_sync_ms))
    }

    /// Takes the result of a batch's write; returns the batch when it is done.
    pub(crate) fn written(
        &mut self,
        result: Result<(), WriteError>,
        now: Timestamp,
        stats: &mut StoreStats,
    ) -> Option<Batch> {
        let Some(Busy::Writing { sync }) = self.busy.take() else {
            return None;
        };
        match result {
            Ok(()) => {}
            Err(WriteError::Write(error)) if disk::is_full(&error) => {
                self.full = Some(format!("cannot write the log: {error}"));
                self.retry_at = Some(now.plus_ms(self.retry_ms));
                return None;
            }
            Err(WriteError::Write(error)) => {
                self.failed = Some(format!("cannot write the log: {error}"));
                return None;
            }
            Err(WriteError::Sync(error)) => {
                self.failed = Some(format!("cannot sync the log: {error}"));
                return None;
            }
        }
        let batch = self.sealed.take()?;
        self.full = None;
        self.retry_at = None;
        self.progress.written = batch.number;
        self.written_commit = batch.commit;
        if sync {
            self.progress.synced = batch.number;
            self.unsynced_since = None;
        } else {
            self.unsynced_since.get_or_insert(now);
        }
        if let Some(last) = batch.parts.last() {
            self.written_to =
                Location { segment: last.segment, offset: last.start + last.len() as u32 };
        }
        stats.batches += 1;
        stats.written_bytes += batch.bytes as u64;
        stats.syncs += u64::from(sync);
        // The job that shared it is gone.
        Arc::into_inner(batch)
    }

    /// Takes the result of a sync.
    pub(crate) fn synced(&mut self, result: std::io::Result<()>, stats: &mut StoreStats) {
        let Some(Busy::Syncing { through }) = self.busy.take() else {
            return;
        };
        match result {
            Ok(()) => {
                self.progress.synced = through;
                self.unsynced_since = None;
                stats.syncs += 1;
            }
            Err(error) => self.failed = Some(format!("cannot sync the log: {error}")),
        }
    }

    /// Returns when the next job is due although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        if self.busy.is_some() || self.failed.is_some() {
            return None;
        }
        if self.sealed.is_some() {
            return self.retry_at;
        }
        let write = self.opened_at.map(|at| at.plus_ms(GATHER_MS));
        let sync = self.unsynced_since.map(|since| since.plus_ms(self.lazy_sync_ms));
        let quiet = self.quiet_since.map(|since| since.plus_ms(ANNOUNCE_AFTER_MS));
        [write, sync, quiet].into_iter().flatten().min()
    }
}

/// Assigns each part of a batch its file; `None` if one has to be made first.
fn prepare(
    batch: &Arc<Batch>,
    segments: &mut Segments,
    pool: &mut SegmentPool,
) -> Option<BatchWrite> {
    let mut files = Vec::with_capacity(batch.parts.len());
    for part in &batch.parts {
        let segment = segments.get_mut(part.segment)?;
        if segment.file.is_none() {
            segment.file = Some(pool.take(segment.capacity)?);
        }
        files.push(Arc::clone(&segment.file.as_ref()?.file));
    }
    let first = batch.parts.first()?;
    let before = match &first.header {
        Some(_) => segments.get(first.segment - 1).and_then(|segment| segment.file.as_ref()),
        None => None,
    };
    let before = before.map(|file| Arc::clone(&file.file));
    Some(BatchWrite { batch: Arc::clone(batch), files, before, sync: false })
}

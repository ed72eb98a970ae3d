//! Work that leaves the core: the shell runs it on its own threads.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::allocation::{Allocated, Allocation};
use crate::batch::Batch;
use crate::checkpoint_file::{CheckpointWrite, CheckpointWritten};
use crate::disk::write_all_at;
use crate::read_job::{ReadDone, ReadJob};
use crate::{Disk, DiskFile};

/// Which of the shell's threads runs a job. Jobs of a lane run in the order they were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Batches and their syncs: what promises wait for. At most one is under way.
    Write,
    /// Bodies, ranges and segments to be copied forward. A few are under way.
    Read,
    /// What nobody waits for: filling the spare segment with zeros, checkpoint files, removals. At
    /// most one is under way. Wants a thread of its own, so that it holds up neither of the others.
    Background,
}

/// A piece of blocking work.
pub struct Job {
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Write(BatchWrite),
    Sync(Arc<dyn DiskFile>),
    Allocate(Allocation),
    Checkpoint(CheckpointWrite),
    Read(Box<ReadJob>),
}

impl Job {
    /// Returns where it is to run.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        match self.work {
            Work::Write(_) | Work::Sync(_) => Lane::Write,
            Work::Allocate(_) | Work::Checkpoint(_) => Lane::Background,
            Work::Read(_) => Lane::Read,
        }
    }

    /// Carries out the work. Errors are part of the result.
    #[must_use]
    pub fn run(self, disk: &dyn Disk) -> JobDone {
        let outcome = match self.work {
            Work::Write(write) => Outcome::Written(write.run()),
            Work::Sync(file) => Outcome::Synced(file.sync_data()),
            Work::Allocate(allocation) => Outcome::Allocated(allocation.run(disk)),
            Work::Checkpoint(write) => Outcome::Checkpoint(write.run(disk)),
            Work::Read(read) => Outcome::Read(read.run()),
        };
        JobDone { outcome, elapsed_us: 0 }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.work {
            Work::Write(_) => "Job(write a batch)",
            Work::Sync(_) => "Job(sync)",
            Work::Allocate(_) => "Job(allocate)",
            Work::Checkpoint(_) => "Job(checkpoint)",
            Work::Read(_) => "Job(read)",
        })
    }
}

/// The result of a [`Job`], to be given to [`crate::Store::complete`].
#[derive(Debug)]
pub struct JobDone {
    pub(crate) outcome: Outcome,
    /// How long it took, in microseconds; the shell measures it, for the metrics only.
    pub elapsed_us: u64,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Written(Result<(), WriteError>),
    Synced(io::Result<()>),
    Allocated(Allocated),
    Checkpoint(CheckpointWritten),
    Read(ReadDone),
}

impl JobDone {
    /// Returns where it ran.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        match self.outcome {
            Outcome::Written(_) | Outcome::Synced(_) => Lane::Write,
            Outcome::Allocated(_) | Outcome::Checkpoint(_) => Lane::Background,
            Outcome::Read(_) => Lane::Read,
        }
    }
}

/// Writes a batch.
pub(crate) struct BatchWrite {
    pub(crate) batch: Arc<Batch>,
    /// The file of each part.
    pub(crate) files: Vec<Arc<dyn DiskFile>>,
    /// The file of the segment before the first part's, if that part begins a segment.
    pub(crate) before: Option<Arc<dyn DiskFile>>,
    /// Whether someone waits for the disk to have it.
    pub(crate) sync: bool,
}

/// What failed. A failed sync is final: what the disk has is unknown from then on.
#[derive(Debug)]
pub(crate) enum WriteError {
    Write(io::Error),
    Sync(io::Error),
}

impl BatchWrite {
    /// Writes the batch. A segment is synced before the next one is begun: so a torn end is only
    /// ever in the last.
    fn run(self) -> Result<(), WriteError> {
        let mut before = self.before.as_ref();
        for (part, file) in self.batch.parts.iter().zip(&self.files) {
            if part.header.is_some()
                && let Some(before) = before
            {
                before.sync_data().map_err(WriteError::Sync)?;
            }
            write_all_at(&**file, part.file_offset(), part.slices()).map_err(WriteError::Write)?;
            if let Some(note) = &part.note {
                // The log is whole without it, so no error of it stops the log.
                let _ = note.write(&**file);
            }
            before = Some(file);
        }
        match self.files.last() {
            Some(file) if self.sync => file.sync_data().map_err(WriteError::Sync),
            _ => Ok(()),
        }
    }
}

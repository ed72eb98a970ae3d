//! Work that leaves the core: the shell runs it on its own threads.

use crate::Disk;

/// Which of the shell's threads runs a job. Jobs of a lane run in the order they were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Batches and their syncs: what promises wait for. At most one is under way.
    Write,
    /// Bodies, stretches and segments to be copied forward. A few are under way.
    Read,
    /// What nobody waits for: filling the spare segment with zeros, checkpoint files, removals. At
    /// most one is under way. Wants a thread of its own, so that it holds up neither of the others.
    Background,
}

/// A piece of blocking work.
#[derive(Debug)]
pub struct Job {
    pub(crate) lane: Lane,
}

impl Job {
    /// Where it is to run.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        self.lane
    }

    /// Does the work. Errors are part of the result.
    #[must_use]
    pub fn run(self, disk: &dyn Disk) -> JobDone {
        let _ = disk;
        JobDone { lane: self.lane, elapsed_us: 0 }
    }
}

/// The result of a [`Job`], to be given to [`crate::Store::complete`].
#[derive(Debug)]
pub struct JobDone {
    pub(crate) lane: Lane,
    /// How long it took, in microseconds; the shell measures it, for the metrics only.
    pub elapsed_us: u64,
}

impl JobDone {
    /// Where it ran.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        self.lane
    }
}

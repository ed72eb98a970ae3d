//! What is done when the store has come far enough.

use quelea_store::{Progress, Ticket};

/// Waiters for the store: fewer than there may be connections of all fronts.
const PROMISES_MAX: usize = 262_144;

/// What is done when the store has come far enough; dropped if it never will.
pub(crate) type Promise<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Promises to the callers of `C` whose tickets the store has not reached.
pub(crate) struct Promises<C> {
    progress: Progress,
    waiting: Vec<(Ticket, Promise<C>)>,
}

impl<C> Promises<C> {
    pub(crate) const fn new(progress: Progress) -> Self {
        Self { progress, waiting: Vec::new() }
    }

    /// Returns how far the store had come at the last [`Promises::advance`].
    pub(crate) const fn progress(&self) -> Progress {
        self.progress
    }

    /// Beyond the limit the promise is dropped, as if the store had failed.
    pub(crate) fn add(&mut self, ticket: Ticket, promise: Promise<C>) {
        if self.waiting.len() < PROMISES_MAX {
            self.waiting.push((ticket, promise));
        }
    }

    /// Notes how far the store has come. Returns the promises that are due, or `None` if it is no further
    /// than it was.
    pub(crate) fn advance(&mut self, progress: Progress) -> Option<Vec<Promise<C>>> {
        if progress == self.progress {
            return None;
        }
        self.progress = progress;
        let reached = self.waiting.extract_if(.., |(ticket, _)| progress.reached(*ticket));
        Some(reached.map(|(_, promise)| promise).collect())
    }

    /// The store has failed: nothing that waits will ever be due.
    pub(crate) fn break_all(&mut self) {
        self.waiting.clear();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

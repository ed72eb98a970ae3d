//! What the broker asks of a store.

use std::any::Any;

use quelea_model::{QueueId, Seq, Timestamp};

use crate::{
    Deduplication, Durability, Entry, Job, JobDone, LoadRequest, Loaded, Location, NewMessage,
    PagedRange, Progress, SegmentReport, StoreStats, Ticket, Visibility,
};

/// Whether the store can be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreState {
    /// It can.
    #[default]
    Healthy,
    /// The disk is full: publishers have to be held back. What was appended waits in memory and
    /// is written when space returns, which the store notices by itself.
    Full {
        /// For people: what failed and how.
        reason: String,
    },
    /// A write or sync failed. Nothing that waits will ever be confirmed; only a restart helps.
    Failed {
        /// For people: what failed and how.
        reason: String,
    },
}

/// A durable, append-only store of messages and topology.
///
/// Appending never blocks or fails: positions are known at once, a [`Ticket`] says what to wait
/// for. The shell pumps [`Store::poll_job`] and [`Store::complete`] and calls the former again when
/// [`Store::deadline`] has come.
///
/// For `live` accounts (which decide when a segment is free) every (queue, message) pair
/// that ends has to be reported, exactly once: by [`Store::append_acks`], [`Store::release`] or
/// [`Store::release_paged_range`].
///
/// It is [`Any`], so that a test finds the store that it gave to a broker again, instead of wrapping it
/// in one that restates each operation. What has a body here is what holds for a store without a disk: nothing is
/// pending, no job is under way, and a checkpoint has nothing to carry over.
pub trait Store: Any + Send {
    /// Appends a message; returns the place for its entries, which are then `STORED`.
    fn append_message(&mut self, new: NewMessage<'_>) -> Location;

    /// Notes that the queue is done with these messages: acknowledged, dropped or expired. Entries
    /// that are not `STORED` are ignored; those not `DURABLE` are only released.
    fn append_acks(&mut self, queue: QueueId, entries: &[Entry]);

    /// Notes that a message went back to its queue, with the entry's `delivery_count`. Needed for
    /// every durable message that goes back while a checkpoint is under way
    /// ([`Store::checkpoint_under_way`]), since it may go to a place that the pass has left behind.
    /// Entries that are not `DURABLE` and `STORED` are ignored.
    fn append_requeue(&mut self, queue: QueueId, entry: &Entry, expires_at: Option<Timestamp>);

    /// Notes from when a message may be received. Not needed for one that was appended with its
    /// [`NewMessage::visible_at`], but while a checkpoint is under way the broker repeats it for every
    /// message that is not visible, or was received before: nothing else carries it over. Messages
    /// that are not durable need none.
    fn append_visibility(&mut self, queue: QueueId, visibility: &Visibility);

    /// Notes a new deduplication id. As long as it counts the broker repeats it in each checkpoint, by
    /// [`Store::repeat_deduplication`]: the room for that is kept from now on.
    fn append_deduplication(&mut self, queue: QueueId, sent: &Deduplication);

    /// Notes a deduplication id again, for the checkpoint that is under way.
    fn repeat_deduplication(&mut self, queue: QueueId, sent: &Deduplication) {
        self.append_deduplication(queue, sent);
    }

    /// Notes that the queue lost all its messages but `kept` (those delivered and not settled), and its
    /// deduplication ids. The entries that went have to be released.
    fn append_purge(&mut self, queue: QueueId, kept: &[Seq]);

    /// Notes that the queue and all its messages are gone. The entries have to be released.
    fn append_queue_deleted(&mut self, queue: QueueId);

    /// Lowers the live account by an entry that went by a purge or with its queue, or that was
    /// transient.
    fn release(&mut self, entry: &Entry);

    /// Lowers the live account by a paged-out range that went by a purge or with its queue.
    fn release_paged_range(&mut self, range: &PagedRange);

    /// Writes an item of the topology, replacing one of that key. Keys ≤ 64 KiB, values ≤ 1 MiB.
    fn put_topology(&mut self, key: &[u8], value: &[u8]);

    /// Deletes an item of the topology; nothing happens if there is none.
    fn delete_topology(&mut self, key: &[u8]);

    /// All that is appended up to [`Store::end_atomic`] is recovered as a whole or not at all. May
    /// be nested; the outermost counts. No job may be polled in between.
    fn begin_atomic(&mut self) {}

    /// Ends what [`Store::begin_atomic`] began.
    fn end_atomic(&mut self) {}

    /// Returns a ticket that stands for all that was appended so far. Asking for `Fsync` has it
    /// synced at once; otherwise it is synced within [`crate::Options::lazy_sync_ms`].
    fn ticket(&mut self, durability: Durability) -> Ticket;

    /// Returns how far the log has come.
    fn progress(&self) -> Progress;

    /// Returns whether it can be written to.
    fn state(&self) -> &StoreState;

    /// Returns the bytes appended and not yet written. The broker stops taking messages beyond a
    /// limit.
    fn pending_bytes(&self) -> usize {
        0
    }

    /// Returns whether messages of so many bytes should be appended: what is appended already has its place on the
    /// disk, and room is left behind them for what frees space. Everything else may be appended at any time.
    fn has_room(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Asks for bodies or a range; the answer comes by [`Store::poll_loaded`].
    fn load(&mut self, request: LoadRequest);

    /// Takes the next answer to [`Store::load`].
    fn poll_loaded(&mut self) -> Option<Loaded>;

    /// Returns the next job, if there is one that can start now. At most one of
    /// [`crate::Lane::Write`] and of [`crate::Lane::Background`] is under way, and a few of
    /// [`crate::Lane::Read`]. Call it until it returns none, and again after each
    /// [`Store::complete`], after appends, and at the [`Store::deadline`].
    fn poll_job(&mut self, now: Timestamp) -> Option<Job>;

    /// Takes a job's result. Jobs of different lanes may complete in any order.
    fn complete(&mut self, done: JobDone) {
        let _ = done;
    }

    /// Returns when [`Store::poll_job`] has to be called although nothing else happens.
    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    /// Returns whether the log has grown enough since the last checkpoint for a new one.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Begins a checkpoint, if none is under way and the store is healthy. Then, once
    /// [`Store::checkpoint_ready`], the broker hands over all its entries, in slices: of each queue
    /// first the ready ones ([`crate::QueueIndex::checkpoint`]), then those delivered and not
    /// settled ([`Store::checkpoint_entries`]); then [`Store::finish_checkpoint`]. Operations go on
    /// in between.
    fn begin_checkpoint(&mut self);

    /// Returns whether entries may be handed over now: segments that are to be copied forward are loaded
    /// and the chunks of the checkpoint do not pile up in memory. If not, ask again after the next
    /// [`Store::complete`].
    fn checkpoint_ready(&self) -> bool {
        true
    }

    /// Returns whether a checkpoint has begun and is not yet on the disk (or given up).
    fn checkpoint_under_way(&self) -> bool;

    /// Returns whether the broker's part of the pass is still wanted: begun, neither finished nor
    /// given up because the disk refused it. If it turns false midway, stop handing over entries.
    fn checkpoint_gathering(&self) -> bool {
        self.checkpoint_under_way()
    }

    /// Lets the checkpoint take the next `max` items of the topology; call it until it returns
    /// true, before the entries. What it has not been given until [`Store::finish_checkpoint`] it
    /// takes then.
    fn checkpoint_topology(&mut self, max: usize) -> bool {
        let _ = max;
        true
    }

    /// Takes entries of a queue; those in a segment that is to be emptied get a new location in
    /// place. `expiries` is empty or as long as `entries`, with [`crate::NEVER`] where there is
    /// none. Any order; passing an entry twice is harmless.
    fn checkpoint_entries(
        &mut self,
        queue: QueueId,
        entries: &mut [Entry],
        expiries: &[Timestamp],
    ) {
        let _ = (queue, entries, expiries);
    }

    /// The same, for entries that are all messages which the queue got between the first and the
    /// last of them, none gone, except for transient ones: [`crate::QueueIndex::checkpoint`] knows.
    fn checkpoint_run(&mut self, queue: QueueId, entries: &mut [Entry], expiries: &[Timestamp]) {
        self.checkpoint_entries(queue, entries, expiries);
    }

    /// Takes a paged-out range of a queue.
    fn checkpoint_paged_range(&mut self, queue: QueueId, range: &PagedRange) {
        let _ = (queue, range);
    }

    /// Ends the broker's part; the rest is done by jobs.
    fn finish_checkpoint(&mut self);

    /// Returns whether nothing is left to write, sync or finish.
    fn is_idle(&self) -> bool;

    /// Returns the segments of the log behind that number, at most so many; a store without a log
    /// has none.
    fn segments(&self, _after: u32, _max: usize) -> Vec<SegmentReport> {
        Vec::new()
    }

    /// Returns the counters.
    fn stats(&self) -> StoreStats;
}

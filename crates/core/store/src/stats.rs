//! Counters of a store.

use quelea_model::LatencyHistogram;

/// Counts since the store was opened, and sizes as they are now. For metrics and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Bytes of records that were encoded.
    pub appended_bytes: u64,
    /// Bytes of the log that were handed to the operating system.
    pub written_bytes: u64,
    /// Appended and not yet written.
    pub pending_bytes: u64,
    /// Message records appended.
    pub messages: u64,
    /// Acknowledgements appended.
    pub acks: u64,
    /// Batches written.
    pub batches: u64,
    /// Calls of fdatasync for the log.
    pub syncs: u64,
    /// How long the write jobs took that synced, as the shell measured it.
    pub sync_times: LatencyHistogram,
    /// Segments that are part of the log.
    pub segments: u64,
    /// Segments ready for use.
    pub segments_spare: u64,
    /// Segments that were freed and went back among the spare ones or were removed.
    pub segments_recycled: u64,
    /// Bytes of all segments of the log.
    pub log_bytes: u64,
    /// Live (queue, message) pairs whose records are in the log.
    pub live: u64,
    /// Bytes of records that were copied forward.
    pub copied_bytes: u64,
    /// Checkpoints finished.
    pub checkpoints: u64,
    /// Checkpoints given up because the disk refused them.
    pub checkpoints_failed: u64,
    /// Bytes of the last checkpoint.
    pub checkpoint_bytes: u64,
    /// Bytes of the log that a recovery would replay.
    pub replay_bytes: u64,
    /// Bytes read for bodies and ranges.
    pub read_bytes: u64,
    /// Read jobs done.
    pub reads: u64,
    /// Of these, those that the disk refused and that were tried again.
    pub reads_retried: u64,
}

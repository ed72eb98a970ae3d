//! What a log can be told.

use quelea_model::limits;

/// Settings of a [`crate::LogStore`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of one segment. At least 4 KiB; a multiple of 512. Segments that exist keep theirs.
    pub segment_bytes: u32,
    /// Written into the files of a new log and mixed into every checksum, so that files of two
    /// logs cannot be mixed and nobody can publish a body that looks like a record. Any random
    /// number; a log that exists keeps its own.
    pub log_id: u64,
    /// Longest time that something written stays unsynced although nobody waits for it.
    pub lazy_sync_ms: u64,
    /// Time between two attempts while the disk is full.
    pub full_retry_ms: u64,
    /// Recycled segments that are kept for later use; further ones are removed.
    pub spares_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: limits::SEGMENT_BYTES,
            log_id: 0x5155_454c_4541_0001,
            lazy_sync_ms: 250,
            full_retry_ms: 1_000,
            spares_max: 4,
        }
    }
}

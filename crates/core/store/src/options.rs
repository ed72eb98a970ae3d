//! Settings of a log.

use quelea_model::limits;

/// Settings of a [`crate::LogStore`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of one segment. At least 4 KiB; a multiple of 512. Segments that exist keep theirs.
    pub segment_bytes: u32,
    /// A random number, a new one at every opening. It becomes the identity of a new log, which is
    /// in all its files so that those of two logs cannot be mixed; and it is mixed into the checksums
    /// of the segments that are begun, so that nothing that lies in a file from before, nor a body
    /// made to look like a record, is taken for a record.
    pub nonce: u64,
    /// Longest time that something written stays unsynced although nobody waits for it.
    pub lazy_sync_ms: u64,
    /// Time between two attempts while the disk is full.
    pub full_retry_ms: u64,
    /// Whether a damaged log is opened without what is lost. Else it is refused.
    pub accept_damage: bool,
    /// Recycled segments that are kept for later use; further ones are removed.
    pub spare_segments_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: limits::SEGMENT_BYTES,
            nonce: 0x5155_454c_4541_0001,
            lazy_sync_ms: 250,
            full_retry_ms: 1_000,
            accept_damage: false,
            spare_segments_max: 4,
        }
    }
}

//! The room that messages leave in the log's files for what frees space, on a disk that has no more.

use crate::log::LogStore;
use crate::segment::{SEGMENT_HEADER_BYTES, Segment};

/// Messages leave so much room in the files that there are: what frees space is appended behind them,
/// and would wait for ever if they waited for it. Some million acknowledgements.
const ROOM_BYTES_KEPT: u32 = 8 * 1024 * 1024;

impl LogStore {
    /// Returns whether all that was appended has a file to lie in, and enough is left behind another message of
    /// so many bytes.
    pub(crate) fn has_file_room(&self, bytes: usize) -> bool {
        let segment_bytes = self.options.segment_bytes;
        let kept = self.room_kept();
        let tail = self.appender.tail();
        let left = u64::from(tail.capacity.saturating_sub(tail.offset));
        let behind = left.saturating_sub(bytes as u64);
        let has_file = |segment: &Segment| segment.file.is_some();
        let tail_has_file = self.segments.get(tail.segment).is_some_and(has_file);
        if tail_has_file && behind >= kept && self.noted.bytes() == 0 {
            return true;
        }
        let waiting = self.segments.iter().rev().take_while(|segment| !has_file(segment));
        let (mut count, mut large) = (0, false);
        for segment in waiting {
            count += 1;
            large |= segment.capacity != segment_bytes;
        }
        if self.segments.iter().next().is_none_or(|first| !has_file(first)) {
            // Nothing is in the log yet that could be freed.
            return true;
        }
        let ready = self.pool.ready();
        if large || ready < count {
            return false;
        }
        let spare = (ready - count) as u64;
        // A message too long for any spare file waits for its own.
        let has_room = behind >= kept || spare > 0;
        let payload = u64::from(segment_bytes - SEGMENT_HEADER_BYTES);
        has_room && behind + spare * payload >= kept + self.noted.bytes()
    }

    /// Returns how many spare files are to be kept: one, and as many as a checkpoint may need for
    /// what it has to note.
    pub(crate) fn segments_ahead(&self) -> usize {
        let payload = u64::from(self.options.segment_bytes - SEGMENT_HEADER_BYTES);
        (self.room_kept() + self.noted.bytes()).div_ceil(payload) as usize
    }

    fn room_kept(&self) -> u64 {
        u64::from(ROOM_BYTES_KEPT.min(self.options.segment_bytes / 2))
    }
}

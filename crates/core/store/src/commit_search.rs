//! Looks for commits behind the place where a log can no longer be read: they tell damage from the torn end
//! that a crash leaves.

use std::io;

use crate::DiskFile;
use crate::disk::read_all_at;
use crate::record::{self, COMMIT_BYTES, COMMIT_BYTES_V1, Commit, Record, Seed};

/// Bytes of one read.
const READ_BYTES: usize = 4 * 1024 * 1024;

/// Calls `f` with each commit in a segment's file from an offset on, and where it lies. What lies between them
/// is not looked at: its lengths may be what is damaged.
pub(crate) fn for_each_commit(
    file: &dyn DiskFile,
    from: u32,
    seed: Seed,
    mut f: impl FnMut(u32, &Commit),
) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES + COMMIT_BYTES];
    let mut start = u64::from(from);
    loop {
        let read = read_all_at(file, start, &mut buffer)?;
        let found = &buffer[..read];
        for at in 0..read.saturating_sub(COMMIT_BYTES_V1 - 1).min(READ_BYTES) {
            let rest = &found[at..];
            if record::may_be_commit(rest)
                && let Ok(parsed) = record::parse(rest, seed)
                && let Record::Commit(commit) = &parsed.record
                && let Ok(offset) = u32::try_from(start + at as u64)
            {
                f(offset, commit);
            }
        }
        if read < buffer.len() {
            return Ok(());
        }
        start += READ_BYTES as u64;
    }
}

//! Getting segments' files ready and getting rid of them.

use std::io::{self, IoSlice};
use std::sync::Arc;

use crate::disk::{rename_to_final, temporary_name, write_all_at};
use crate::segment::{FORMAT_VERSION, SegmentFile, SegmentHeader};
use crate::{Disk, DiskFile};

/// Zeros written and synced by one job: short enough that a stop does not wait for long.
const ZEROS_PER_JOB: u32 = 4 * 1024 * 1024;
/// So small a share of a segment stays free, for a checkpoint: on a full disk it may take one to free
/// segments.
const KEPT_FREE_SHARE: u32 = 16;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// A job about a segment's file.
pub(crate) enum Allocation {
    /// Creates a file of this many bytes, or goes on with it.
    Fill { name: String, bytes: u32, log_id: u64, file: Option<Arc<dyn DiskFile>>, done: u32 },
    /// Creates a file for one large record, without zeros: it is written once.
    Create { name: String, bytes: u32, log_id: u64 },
    /// Makes a file that was part of the log a spare one.
    Retire { file: SegmentFile, log_id: u64 },
    /// Removes a file that was part of the log.
    Remove { name: String },
}

/// How it went.
pub(crate) enum Allocated {
    Filling { name: String, file: Arc<dyn DiskFile>, done: u32 },
    Ready(SegmentFile),
    Removed,
    Failed { name: String, bytes: u32, error: io::Error },
}

impl std::fmt::Debug for Allocated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Filling { name, done, .. } => write!(f, "Filling({name}, {done})"),
            Self::Ready(file) => write!(f, "Ready({file:?})"),
            Self::Removed => write!(f, "Removed"),
            Self::Failed { name, error, .. } => write!(f, "Failed({name}, {error})"),
        }
    }
}

impl Allocation {
    pub(crate) fn run(self, disk: &dyn Disk) -> Allocated {
        match self {
            Self::Fill { name, bytes, log_id, file, done } => {
                match fill(disk, &name, bytes, log_id, file, done) {
                    Ok((file, done)) if done == bytes => {
                        Allocated::Ready(SegmentFile { name, file, bytes })
                    }
                    Ok((file, done)) => Allocated::Filling { name, file, done },
                    Err(error) => give_up(disk, name, bytes, error),
                }
            }
            Self::Create { name, bytes, log_id } => {
                match create_empty(disk, &name, bytes, log_id) {
                    Ok(file) => Allocated::Ready(SegmentFile { name, file, bytes }),
                    Err(error) => give_up(disk, name, bytes, error),
                }
            }
            Self::Retire { file, log_id } => {
                match write_spare_header(&*file.file, file.bytes, log_id) {
                    Ok(()) => Allocated::Ready(file),
                    Err(error) => give_up(disk, file.name, file.bytes, error),
                }
            }
            Self::Remove { name } => {
                // One that stays is found and removed by the next opening.
                let _ = disk.remove(&name);
                Allocated::Removed
            }
        }
    }
}

/// Takes back what was begun: it must not eat the space that others wait for.
fn give_up(disk: &dyn Disk, name: String, bytes: u32, error: io::Error) -> Allocated {
    let _ = disk.remove(&temporary_name(&name));
    let _ = disk.remove(&name);
    Allocated::Failed { name, bytes, error }
}

fn fill(
    disk: &dyn Disk,
    name: &str,
    bytes: u32,
    log_id: u64,
    file: Option<Arc<dyn DiskFile>>,
    done: u32,
) -> io::Result<(Arc<dyn DiskFile>, u32)> {
    let file = match file {
        Some(file) => file,
        None => create(disk, name, bytes)?,
    };
    let end = bytes.min(done.saturating_add(ZEROS_PER_JOB));
    let mut at = done;
    while at < end {
        let len = (end - at).min(ZEROS.len() as u32);
        write_all_at(&*file, u64::from(at), vec![IoSlice::new(&ZEROS[..len as usize])])?;
        at += len;
    }
    file.sync_data()?;
    if end == bytes {
        finish(disk, name, &*file, bytes, log_id)?;
    }
    Ok((file, end))
}

fn create_empty(
    disk: &dyn Disk,
    name: &str,
    bytes: u32,
    log_id: u64,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = create(disk, name, bytes)?;
    finish(disk, name, &*file, bytes, log_id)?;
    Ok(file)
}

/// Writes the header and then renames the file: so one under its final name without a header has lost it.
fn finish(
    disk: &dyn Disk,
    name: &str,
    file: &dyn DiskFile,
    bytes: u32,
    log_id: u64,
) -> io::Result<()> {
    write_spare_header(file, bytes, log_id)?;
    rename_to_final(disk, name)
}

fn create(disk: &dyn Disk, name: &str, bytes: u32) -> io::Result<Arc<dyn DiskFile>> {
    if disk.free_space()? < u64::from(bytes) + u64::from(bytes / KEPT_FREE_SHARE) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    disk.create(&temporary_name(name))
}

/// Makes a file a spare one, whatever it was.
pub(crate) fn write_spare_header(file: &dyn DiskFile, bytes: u32, log_id: u64) -> io::Result<()> {
    let header = SegmentHeader {
        version: FORMAT_VERSION,
        segment: 0,
        log_id,
        commit: 0,
        next_seq: 0,
        next_queue: 0,
        bytes,
        salt: 0,
        is_renamed: true,
    };
    write_all_at(file, 0, vec![IoSlice::new(&header.encode())])?;
    file.sync_data()
}

//! The little that the log asks of a disk.

use std::io::{self, IoSlice};
use std::sync::Arc;

/// One directory. All calls block; jobs make them on the shell's threads.
pub trait Disk: Send + Sync {
    /// Creates a file; it must not exist. Its name is durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// What the operating system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// What the operating system says; `NotFound` if there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file; replaces one that has the name.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns the names of all files in the directory, in any order.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_dir(&self) -> io::Result<()>;

    /// Returns the bytes that are left; only reported, never relied on.
    ///
    /// # Errors
    /// What the operating system says.
    fn free_space(&self) -> io::Result<u64>;
}

/// An open file. Closed when the last reference goes.
pub trait DiskFile: Send + Sync {
    /// Reads at an offset; 0 at the end of the file. May read less than asked.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at an offset, extending the file if need be. May write less than asked.
    ///
    /// # Errors
    /// What the operating system says; `StorageFull` for a full disk or quota.
    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Makes the content durable: fdatasync.
    ///
    /// # Errors
    /// What the operating system says. The state of what was written is then unknown for good.
    fn sync_data(&self) -> io::Result<()>;

    /// A hint that these bytes will be read soon: POSIX_FADV_WILLNEED. Does not block.
    fn will_need(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// What the operating system says.
    fn len(&self) -> io::Result<u64>;

    /// Returns whether it has no bytes.
    ///
    /// # Errors
    /// What the operating system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// As many as one system call takes everywhere.
const SLICES_PER_CALL_MAX: usize = 512;

/// What a file's name ends with until the file is whole.
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Returns the name of a file until it is whole.
pub(crate) fn temporary_name(name: &str) -> String {
    format!("{name}{TEMPORARY_SUFFIX}")
}

/// Returns the final name of a file, if this is a temporary one.
pub(crate) fn final_name(name: &str) -> Option<&str> {
    name.strip_suffix(TEMPORARY_SUFFIX)
}

/// Renames a file that is whole and synced from its temporary name, durably.
pub(crate) fn rename_to_final(disk: &dyn Disk, name: &str) -> io::Result<()> {
    disk.rename(&temporary_name(name), name)?;
    disk.sync_dir()
}

/// Writes all slices, going on after short writes.
pub(crate) fn write_all_at(
    file: &dyn DiskFile,
    mut offset: u64,
    mut slices: Vec<IoSlice<'_>>,
) -> io::Result<()> {
    let mut rest = &mut slices[..];
    // Drops empty slices in front, which would look like a write of nothing.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let call = rest.len().min(SLICES_PER_CALL_MAX);
        match file.write_at(offset, &rest[..call]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends; returns the bytes read.
pub(crate) fn read_all_at(
    file: &dyn DiskFile,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(offset + done as u64, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Returns whether space may return: a full disk or an exhausted quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

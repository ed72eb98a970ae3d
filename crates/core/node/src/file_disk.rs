//! The real [`Disk`]: one directory of the file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quelea_store::{Disk, DiskFile};
use rustix::io::Errno;

/// Slices of one vectored write: the kernel takes no more (`IOV_MAX` of Linux).
const SLICES_MAX: usize = 1024;

/// A directory whose files the log owns.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    directory: File,
}

impl FileDisk {
    /// Opens a directory; makes it, durably, if it is missing. Its parent must exist.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        match fs::create_dir(path) {
            Ok(()) => {
                if let Some(parent) = path.parent() {
                    File::open(parent)?.sync_all()?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Ok(Self { path: path.to_owned(), directory: File::open(path)? })
    }

    fn file(&self, name: &str, options: &OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let file = options.open(self.path.join(name)).map_err(full)?;
        Ok(Arc::new(DataFile { file }))
    }
}

impl Disk for FileDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, OpenOptions::new().read(true).write(true))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to)).map_err(full)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // The log's own names are ASCII; what is not text is not the log's.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn free_space(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.directory)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

#[derive(Debug)]
struct DataFile {
    file: File,
}

impl DiskFile for DataFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        retry(|| self.file.read_at(buffer, offset))
    }

    fn write_at(&self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let slices = &slices[..slices.len().min(SLICES_MAX)];
        retry(|| Ok(rustix::io::pwritev(&self.file, slices, offset)?)).map_err(full)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Never repeated: after a failed fdatasync the kernel may have dropped the pages.
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

fn retry(mut operation: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Turns an error into what it is to the log: a used-up quota is a full disk.
fn full(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(Errno::DQUOT.raw_os_error()) {
        return io::Error::new(io::ErrorKind::StorageFull, error);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TempDir(PathBuf);

    impl TempDir {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("quelea-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn what_is_written_at_an_offset_is_read_there() {
        let dir = TempDir::new("disk-rw");
        let disk = FileDisk::open(&dir.0.join("log")).unwrap();
        let file = disk.create("a").unwrap();
        let written = file.write_at(4, &[IoSlice::new(b"hello "), IoSlice::new(b"world")]).unwrap();
        assert_eq!(written, 11);
        file.sync_data().unwrap();
        disk.sync_dir().unwrap();
        let mut buffer = [1; 32];
        assert_eq!(file.read_at(0, &mut buffer).unwrap(), 15);
        assert_eq!(&buffer[..15], b"\0\0\0\0hello world");
        assert_eq!(file.read_at(15, &mut buffer).unwrap(), 0);
        assert_eq!(file.len().unwrap(), 15);
    }

    #[test]
    fn more_slices_than_the_kernel_takes_are_written_in_part() {
        let dir = TempDir::new("disk-iov");
        let disk = FileDisk::open(&dir.0).unwrap();
        let file = disk.create("a").unwrap();
        let slices = vec![IoSlice::new(b"x"); SLICES_MAX + 1];
        assert_eq!(file.write_at(0, &slices).unwrap(), SLICES_MAX);
    }

    #[test]
    fn files_are_created_once_renamed_listed_and_removed() {
        let dir = TempDir::new("disk-names");
        let disk = FileDisk::open(&dir.0).unwrap();
        disk.create("a").unwrap();
        assert_eq!(disk.create("a").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        disk.rename("a", "b").unwrap();
        assert_eq!(disk.open("a").err().unwrap().kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.list().unwrap(), ["b"]);
        disk.remove("b").unwrap();
        assert!(disk.list().unwrap().is_empty());
        assert!(disk.free_space().unwrap() > 0);
    }
}

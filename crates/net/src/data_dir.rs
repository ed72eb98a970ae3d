//! The data directory: made when missing, and locked, so that two brokers never write one log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Name of the file that is locked; it holds the process id of the last who did.
pub const LOCK_FILE: &str = "LOCK";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error("data directory {} is in use by process {holder}", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The holder's process id as it wrote it down, or `unknown`.
        holder: String,
    },
    /// It cannot be made, opened or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A locked data directory. The lock goes with this value, or with the process, however it ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if needed and locks it.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] with the holder's process id; [`DataDirError::Io`] otherwise.
    pub fn lock(path: &Path) -> Result<Self, DataDirError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| DataDirError::Io { what, path, source }
        };
        fs::create_dir_all(path).map_err(failed("create the data directory", path))?;
        let path = path.canonicalize().map_err(failed("resolve the data directory", path))?;
        let lock_path = path.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed("open the lock file", &lock_path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DataDirError::InUse { path, holder: holder(&mut file) });
            }
            Err(error) => return Err(failed("lock", &lock_path)(error.into())),
        }
        write_holder(&mut file).map_err(failed("write the lock file", &lock_path))?;
        Ok(Self { path, _lock: file })
    }

    /// The directory, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_and_locked_against_a_second_holder_who_learns_whose_it_is() {
        let dir = std::env::temp_dir().join(format!("quelea-lock-{}", std::process::id()));
        let first = DataDir::lock(&dir.join("a/b")).unwrap();
        // A second open file is a second holder to flock, even within one process.
        let second = DataDir::lock(&dir.join("a/b")).unwrap_err();
        let holder = std::process::id().to_string();
        assert!(
            matches!(&second, DataDirError::InUse { holder: h, .. } if *h == holder),
            "{second}"
        );
        drop(first);
        DataDir::lock(&dir.join("a/b")).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }
}

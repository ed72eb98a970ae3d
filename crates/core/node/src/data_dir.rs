//! The data directory: made when missing, and locked, so that two brokers never write one log.
//! The lock file also shows the next holder whether this one stopped in good order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Name of the file that is locked; it holds the process id of the last who did, or [`CLEAN`].
pub const LOCK_FILE: &str = "LOCK";

/// What the lock file holds after a stop in good order.
const CLEAN: &str = "clean";

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
    lock: File,
    after_crash: bool,
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
        let before = content(&mut file);
        let after_crash = !before.is_empty() && before != CLEAN;
        let process = std::process::id().to_string();
        write(&mut file, &process).map_err(failed("write the lock file", &lock_path))?;
        Ok(Self { path, lock: file, after_crash })
    }

    /// Returns whether the last holder ended without [`DataDir::leave_clean`].
    #[must_use]
    pub const fn after_crash(&self) -> bool {
        self.after_crash
    }

    /// Gives the lock back and says that all is in good order.
    ///
    /// # Errors
    /// If the lock file cannot be written; the next holder then takes this for a crash.
    pub fn leave_clean(mut self) -> io::Result<()> {
        write(&mut self.lock, CLEAN)
    }

    /// Gives the lock back where nothing was opened: the next holder finds what this one found.
    pub fn leave_unused(self) {
        if !self.after_crash
            && let Err(error) = self.leave_clean()
        {
            tracing::warn!(%error, "the next start will take this one for a crash");
        }
    }

    /// Returns the directory, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes the lock file, synced: a power cut must not leave a `clean` of long ago.
fn write(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

fn holder(file: &mut File) -> String {
    match content(file) {
        text if text.is_empty() => "unknown".to_owned(),
        text => text,
    }
}

/// Returns the text of the lock file; what cannot be read is like a crash, not like a clean stop.
fn content(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) => text.trim().to_owned(),
        Err(_) => "unreadable".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_of_a_directory_learns_who_has_it() {
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

    #[test]
    fn the_next_holder_learns_whether_the_last_one_stopped_in_good_order() {
        let dir = std::env::temp_dir().join(format!("quelea-clean-{}", std::process::id()));
        let first = DataDir::lock(&dir).unwrap();
        assert!(!first.after_crash(), "nobody was here before");
        drop(first);
        let second = DataDir::lock(&dir).unwrap();
        assert!(second.after_crash());
        second.leave_clean().unwrap();
        assert!(!DataDir::lock(&dir).unwrap().after_crash());
        fs::remove_dir_all(dir).unwrap();
    }
}

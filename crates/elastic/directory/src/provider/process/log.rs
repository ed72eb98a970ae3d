//! What a relay writes to its standard output and error: a file, since a pipe would break when the
//! directory dies. Bounded, by keeping the end of it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A log that is larger is shortened to its last half.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// Logs of relays that have ended, which are kept for whoever looks for the cause.
const OLD_LOGS_MAX: usize = 32;
/// Of a relay's last line, for an event.
const LINE_BYTES_MAX: u64 = 400;

/// The log of one relay.
pub(super) struct RelayLog {
    path: PathBuf,
}

impl RelayLog {
    pub(super) fn of(dir: &Path, stem: &str) -> Self {
        Self { path: dir.join(format!("{stem}.log")) }
    }

    /// Opens the file for the process's two outputs; both append.
    pub(super) fn open(&self) -> std::io::Result<(File, File)> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        Ok((file.try_clone()?, file))
    }

    /// Keeps the last half of a log that has grown too large. What the relay writes in this moment may
    /// be lost.
    pub(super) fn keep_within_bounds(&self) {
        if let Err(error) = self.shorten() {
            tracing::debug!(path = %self.path.display(), %error, "cannot shorten a relay's log");
        }
    }

    fn shorten(&self) -> std::io::Result<()> {
        if std::fs::metadata(&self.path)?.len() <= LOG_BYTES_MAX {
            return Ok(());
        }
        let end = self.end(LOG_BYTES_MAX / 2)?;
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.set_len(0)?;
        file.write_all(&end)
    }

    /// Reads the last line that is not empty.
    pub(super) fn last_line(&self) -> Option<String> {
        let end = self.end(LINE_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&end);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }

    fn end(&self, bytes: u64) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        let from = file.metadata()?.len().saturating_sub(bytes);
        file.seek(SeekFrom::Start(from))?;
        let mut end = Vec::new();
        file.take(bytes).read_to_end(&mut end)?;
        Ok(end)
    }
}

/// Removes the oldest logs without a lease, beyond those that are kept.
pub(super) fn forget_old(dir: &Path) {
    let Ok(files) = std::fs::read_dir(dir) else { return };
    let mut old: Vec<(SystemTime, PathBuf)> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .filter(|path| !path.with_extension("lease").exists())
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    old.sort();
    let many = old.len().saturating_sub(OLD_LOGS_MAX);
    for (_, path) in old.into_iter().take(many) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("quelea-relay-log-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_log_keeps_its_end_and_its_last_line() {
        let dir = scratch("end");
        let log = RelayLog::of(&dir, "a");
        let (mut out, mut err) = log.open().unwrap();
        let line = vec![b'x'; 1_023];
        for _ in 0..=1_024 {
            out.write_all(&line).unwrap();
            out.write_all(b"\n").unwrap();
        }
        err.write_all(b"the last words\n\n").unwrap();
        log.keep_within_bounds();
        assert_eq!(std::fs::metadata(dir.join("a.log")).unwrap().len(), LOG_BYTES_MAX / 2);
        assert_eq!(log.last_line().as_deref(), Some("the last words"));
        err.write_all(b"and more").unwrap();
        assert_eq!(log.last_line().as_deref(), Some("and more"));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn only_so_many_logs_of_ended_relays_are_kept() {
        let dir = scratch("old");
        for number in 0..OLD_LOGS_MAX + 5 {
            std::fs::write(dir.join(format!("{number}.log")), "x").unwrap();
        }
        std::fs::write(dir.join("0.lease"), "alive").unwrap();
        forget_old(&dir);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), OLD_LOGS_MAX + 2);
        assert!(dir.join("0.log").exists());
        std::fs::remove_dir_all(dir).unwrap();
    }
}

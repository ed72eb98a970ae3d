//! Bytes written to the block device below a directory. The device's own counter is the only
//! honest one: the process' `write_bytes` counts whole large folios of a pre-zeroed file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Sectors in `/sys/…/stat` are 512 bytes whatever the device's own sector is.
const SECTOR_BYTES: u64 = 512;

/// Why a directory's device cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("no write counter for the device of {directory}: {reason}")]
pub struct DeviceError {
    /// The directory that was asked for.
    pub directory: PathBuf,
    /// The system's words, or what is odd about the place.
    pub reason: String,
}

/// The block device that holds a directory.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// As in `/sys/block`: `vda`, `nvme0n1p2`.
    pub name: String,
    statistics: PathBuf,
}

/// A device's counters since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeviceSample {
    /// Bytes written.
    pub written_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Flush requests completed (0 where the kernel does not count them).
    pub flushes: u64,
}

impl Device {
    /// Returns the device below `directory`. A file system without one (tmpfs, overlay) is an
    /// error.
    pub(crate) fn below(directory: &Path) -> Result<Self, DeviceError> {
        let error = |reason: String| DeviceError { directory: directory.to_owned(), reason };
        let id = fs::metadata(directory).map_err(|e| error(e.to_string()))?.dev();
        let (major, minor) = (rustix::fs::major(id), rustix::fs::minor(id));
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let target = fs::canonicalize(&link)
            .map_err(|_| error(format!("device {major}:{minor} is not a block device")))?;
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let device = Self { name, statistics: target.join("stat") };
        device.sample().ok_or_else(|| error("its statistics cannot be read".to_owned()))?;
        Ok(device)
    }

    pub(crate) fn sample(&self) -> Option<DeviceSample> {
        parse(&fs::read_to_string(&self.statistics).ok()?)
    }
}

impl DeviceSample {
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
        }
    }
}

/// Parses a device's statistics. Field 5: writes completed, 7: sectors written, 16: flushes
/// (kernel's Documentation/block/stat).
fn parse(text: &str) -> Option<DeviceSample> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|f| f.parse().ok()).collect();
    Some(DeviceSample {
        written_bytes: fields.get(6)? * SECTOR_BYTES,
        writes: *fields.get(4)?,
        flushes: fields.get(15).copied().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_are_found_at_their_places() {
        let text = " 69114 12834 6811058 32290 14515 23796 1638296 4772 0 8104 37508 6410 30 537072 399 1165 47\n";
        let found = parse(text).unwrap();
        assert_eq!(found.written_bytes, 1_638_296 * 512);
        assert_eq!((found.writes, found.flushes), (14_515, 1_165));
    }

    #[test]
    fn an_old_kernel_without_flush_counters_is_fine() {
        assert_eq!(parse("1 2 3 4 5 6 7 8 9 10 11").unwrap().flushes, 0);
        assert_eq!(parse("1 2 3"), None);
    }

    #[test]
    fn a_directory_without_a_device_says_why() {
        let error = Device::below(Path::new("/proc")).unwrap_err().to_string();
        assert!(error.contains("/proc") && error.contains("not a block device"), "{error}");
    }
}

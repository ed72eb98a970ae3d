//! What the system says of this process.

use std::path::Path;

/// Memory and files; `None` where the system does not say.
pub(crate) struct Process {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) files: Option<usize>,
    pub(crate) files_max: Option<u64>,
}

impl Process {
    pub(crate) fn read() -> Self {
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            resident_bytes: resident_bytes(Path::new("/proc/self/statm")),
            files: std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
            files_max: limits.current,
        }
    }
}

/// Returns the free space of the file system in which a directory is, for who is not root.
pub(crate) fn disk_free_bytes(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

fn resident_bytes(statm: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(statm).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_some_free_space_and_what_is_not_there_has_none() {
        assert!(disk_free_bytes(Path::new("/")).is_some());
        assert_eq!(disk_free_bytes(Path::new("/nothing/here")), None);
    }

    #[test]
    fn a_process_takes_memory_and_has_files_open() {
        let process = Process::read();
        assert!(process.resident_bytes.unwrap() > 100_000);
        let files = process.files.unwrap() as u64;
        assert!((3..=process.files_max.unwrap_or(u64::MAX)).contains(&files), "{files}");
    }
}

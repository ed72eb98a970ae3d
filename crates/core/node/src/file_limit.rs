//! How many files and sockets the process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files of the process that are not connections: the log's, the listeners', the runtime's.
const OTHER_FILES: u64 = 256;

/// Raises the soft limit of open files to the hard one, which needs no privilege; returns how many
/// connections fit.
pub fn raise_file_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, the old limit holds, which is what is read below.
    let _ = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    files.saturating_sub(OTHER_FILES)
}

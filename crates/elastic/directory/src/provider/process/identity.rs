//! Which process a number means: numbers are used again, so the start time and the boot go with them.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags};
use serde::{Deserialize, Serialize};

/// One process, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// Since the machine's start, as `/proc/PID/stat` has it.
    pub(super) start_ticks: u64,
    /// Names the machine's start.
    pub(super) boot: String,
}

impl Identity {
    /// Returns the identity of a process that is there now (also one that has ended and was not
    /// waited for).
    pub(super) fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid, start_ticks: start_ticks(&stat)?, boot: boot()? })
    }
}

/// Parses field 22 (proc(5)). The second field is the program's name in parentheses, with any bytes
/// in it.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Opens a descriptor of a process; `None` if there is none of this number.
pub(super) fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns this machine's name with that of the namespace of its process numbers: containers may
/// share the former.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    let namespace = std::fs::read_link("/proc/self/ns/pid")
        .map_or_else(|_| String::new(), |link| link.display().to_string());
    format!("{name} {namespace}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2 3";
        assert_eq!(start_ticks(stat), Some(4242));
        assert_eq!(start_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_found_and_one_that_never_was_is_not() {
        let this = Identity::of(std::process::id()).unwrap();
        assert_eq!(Identity::of(this.pid), Some(this));
        assert_eq!(Identity::of(u32::MAX), None);
        assert!(pidfd(u32::MAX).is_none() && pidfd(0).is_none());
    }
}

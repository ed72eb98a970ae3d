//! What `/proc` says of a process on this machine: who listens on a port, CPU time, memory.

use std::fs;
use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Why a process could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Nobody on this machine listens on the port.
    #[error("no process on this machine listens on port {port}")]
    NobodyListens {
        /// The TCP port.
        port: u16,
    },
    /// Somebody listens, but the process is not visible to this user.
    #[error(
        "port {port} is served by a process that this user may not look at; name it with --broker-pid"
    )]
    Hidden {
        /// The TCP port.
        port: u16,
    },
    /// The process is gone, or its entry has another form than expected.
    #[error("cannot read /proc/{pid}/{file}: {reason}")]
    Unreadable {
        /// The process.
        pid: u32,
        /// The file under `/proc/PID`.
        file: &'static str,
        /// The system's or the parser's words.
        reason: String,
    },
}

/// A look at a process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// User and system time of all its threads, also of those that ended, µs. The kernel's
    /// resolution is a clock tick (10 ms), so use it over seconds.
    pub cpu_us: u64,
    /// Resident memory now, bytes.
    pub resident_bytes: u64,
    /// Most resident memory since start or since [`reset_peak`], bytes.
    pub peak_bytes: u64,
}

/// Returns the process that listens on `port`, found through `/proc/net/tcp*` and the open files of
/// all processes.
pub(crate) fn listening_pid(port: u16) -> Result<u32, ProcessError> {
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // A kernel without IPv6 has no second table.
        inodes.extend(listening_inodes(&fs::read_to_string(table).unwrap_or_default(), port));
    }
    if inodes.is_empty() {
        return Err(ProcessError::NobodyListens { port });
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| holds_one_of(*pid, &wanted))
        .ok_or(ProcessError::Hidden { port })
}

/// Returns the inodes of the sockets that listen on `port` in a table of the form of
/// `/proc/net/tcp`: `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …`,
/// hexadecimal port after the colon, state `0A` for listening.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let local = fields.nth(1)?;
            let state = fields.nth(1)?;
            let inode = fields.nth(5)?;
            let found = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
            (found == port && state == "0A").then(|| inode.parse().ok())?
        })
        .collect()
}

fn holds_one_of(pid: u32, sockets: &[String]) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| sockets.iter().any(|socket| Path::new(socket) == target))
}

/// Reads CPU time and memory of `pid` now.
///
/// # Errors
/// [`ProcessError`] if it is gone.
pub fn sample(pid: u32) -> Result<ProcessSample, ProcessError> {
    let stat = read(pid, "stat")?;
    let status = read(pid, "status")?;
    let ticks = cpu_ticks(&stat).ok_or_else(|| unreadable(pid, "stat", "unexpected form"))?;
    Ok(ProcessSample {
        cpu_us: ticks * 1_000_000 / rustix::param::clock_ticks_per_second().max(1),
        resident_bytes: status_bytes(&status, "VmRSS:").unwrap_or(0),
        peak_bytes: status_bytes(&status, "VmHWM:").unwrap_or(0),
    })
}

/// Returns user and system time of this process so far, µs; finer than [`sample`]'s.
pub(crate) fn own_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1_000
}

/// Makes the kernel forget the process' peak of resident memory (`5` into `clear_refs`). Needs
/// the same user or root; a refusal only means that the peak counts from the process' start.
pub(crate) fn reset_peak(pid: u32) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok()
}

fn read(pid: u32, file: &'static str) -> Result<String, ProcessError> {
    fs::read_to_string(format!("/proc/{pid}/{file}"))
        .map_err(|error: io::Error| unreadable(pid, file, &error.to_string()))
}

fn unreadable(pid: u32, file: &'static str, reason: &str) -> ProcessError {
    ProcessError::Unreadable { pid, file, reason: reason.to_owned() }
}

/// Returns utime + stime, fields 14 and 15 of `stat`. The name in field 2 may hold blanks and
/// brackets, so counting starts after its last bracket, at field 3.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Returns the value of a `Name:   123 kB` line of `status`, in bytes.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0\n\
        1: 0100007F:1628 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0 20 4 30 10 -1\n\
        2: 0100007F:4369 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 17 1 0 100 0 0 10 0\n";

    #[test]
    fn only_the_listening_socket_of_the_port_is_found() {
        assert_eq!(listening_inodes(TABLE, 5672), [4242]);
        assert_eq!(listening_inodes(TABLE, 0x4369), [17]);
        assert!(listening_inodes(TABLE, 0x9C40).is_empty());
        assert!(listening_inodes("", 5672).is_empty());
    }

    #[test]
    fn the_process_behind_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening_pid(port).unwrap(), std::process::id());
        drop(listener);
        assert!(matches!(listening_pid(port), Err(ProcessError::NobodyListens { .. })));
    }

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 100 0 0";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("7 (short) S 1"), None);
    }

    #[test]
    fn memory_lines_are_read_as_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t     100 kB\n";
        assert_eq!(status_bytes(status, "VmHWM:"), Some(2 * 1024 * 1024));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_can_be_sampled() {
        let found = sample(std::process::id()).unwrap();
        assert!(found.resident_bytes > 0 && found.peak_bytes >= found.resident_bytes);
        assert!(matches!(sample(0), Err(ProcessError::Unreadable { .. })));
    }
}

//! What the relay's host has and uses, from `/proc` (EQS §IV-C: memory and bandwidth).

use std::fs::read_to_string;

use quelea_elastic_proto::frame::Host;

/// Reads it. Three small files of the kernel, read once a report.
#[derive(Debug)]
pub(crate) struct HostProbe {
    /// What the process may use, bytes; 0 if nobody knows.
    memory_bytes_max: u64,
}

impl HostProbe {
    /// Creates a probe. `memory_bytes_max`: as given when the relay was started; 0: the limit of
    /// its control group, else all that the machine has.
    pub(crate) fn new(memory_bytes_max: u64) -> Self {
        let found = || cgroup_memory_max().or_else(machine_memory).unwrap_or(0);
        let memory_bytes_max = if memory_bytes_max == 0 { found() } else { memory_bytes_max };
        Self { memory_bytes_max }
    }

    /// Reads the host's figures. What cannot be read is 0.
    pub(crate) fn read(&self) -> Host {
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let network = read_to_string("/proc/net/dev").unwrap_or_default();
        let (network_in_bytes, network_out_bytes) = network_bytes(&network, is_device);
        Host {
            memory_bytes: kib_line(&status, "VmRSS:").unwrap_or(0),
            memory_bytes_max: self.memory_bytes_max,
            network_in_bytes,
            network_out_bytes,
        }
    }
}

/// Returns the limit of the process's control groups (version 2), if one has any.
fn cgroup_memory_max() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    least_limit(path, |group| read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok())
}

/// Returns the least of a group's limit and those of all groups that it is within.
fn least_limit(group: &str, limit_of: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = std::iter::successors(Some(group), |group| Some(group.rsplit_once('/')?.0));
    let limits = groups.filter_map(|group| limit_of(group.trim_end_matches('/')));
    // A group without a limit says `max`.
    limits.filter_map(|limit| limit.trim().parse().ok()).min()
}

fn machine_memory() -> Option<u64> {
    kib_line(&read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Returns the bytes that a line such as `VmRSS:     1234 kB` says.
fn kib_line(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns whether an interface is a device, and none that the kernel makes over or beside others:
/// a bridge, a bond, a container's end. What those carry would count twice.
fn is_device(interface: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(interface).join("device").exists()
}

/// Returns the bytes in and out of all devices; where there is none, as in a container, of all
/// interfaces but loopback.
fn network_bytes(text: &str, is_device: impl Fn(&str) -> bool) -> (u64, u64) {
    let mut sum = (0_u64, 0_u64);
    // `eth0: BYTES PACKETS ERRORS …`, eight figures in, then eight out.
    let interfaces = || text.lines().filter_map(|line| line.split_once(':'));
    let has_devices = interfaces().any(|(name, _)| is_device(name.trim()));
    let counts = |name: &str| if has_devices { is_device(name) } else { name != "lo" };
    for (_, figures) in interfaces().filter(|(name, _)| counts(name.trim())) {
        let figures: Vec<u64> =
            figures.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
        if let (Some(bytes_in), Some(bytes_out)) = (figures.first(), figures.get(8)) {
            sum = (sum.0.saturating_add(*bytes_in), sum.1.saturating_add(*bytes_out));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let status = "Name:\tquelea\nVmPeak:\t    9999 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(kib_line(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(kib_line(status, "VmSwap:"), None);
        let network = "Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes packets errs\n    \
             lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0: 100 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0\n  \
             eth1: 10 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n";
        assert_eq!(network_bytes(network, |_| false), (110, 33));
        assert_eq!(network_bytes(network, |name| name == "eth1"), (10, 3));
        assert_eq!(network_bytes("nothing: of the kind", |_| false), (0, 0));
    }

    #[test]
    fn the_least_limit_of_all_groups_around_the_process_counts() {
        let limits = |group: &str| {
            let limit = match group {
                "" => return None,
                "/pods" => "8000",
                "/pods/one" => "3000",
                "/pods/one/relay" => "4000",
                _ => "max",
            };
            Some(format!("{limit}\n"))
        };
        assert_eq!(least_limit("/pods/one/relay", limits), Some(3_000));
        assert_eq!(least_limit("/pods/one/relay/deeper", limits), Some(3_000));
        assert_eq!(least_limit("/pods", limits), Some(8_000));
        assert_eq!(least_limit("/free", limits), None);
        assert_eq!(least_limit("/", limits), None);
    }

    #[test]
    fn this_process_uses_memory_within_its_limit() {
        let found = HostProbe::new(0).read();
        assert!(found.memory_bytes > 0 && found.memory_bytes < found.memory_bytes_max, "{found:?}");
        assert_eq!(HostProbe::new(7).read().memory_bytes_max, 7);
    }
}

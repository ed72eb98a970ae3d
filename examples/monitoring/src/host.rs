//! What Linux reports of a host in `/proc`: CPU, memory, network.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// A host's figures that only mean something against earlier ones.
#[derive(Debug, Clone, Copy)]
struct Counters {
    at: Instant,
    cpu_busy: u64,
    cpu_all: u64,
    network_bytes: u64,
}

/// Reads a host, again and again.
#[derive(Debug, Default)]
pub(crate) struct Host {
    last: Option<Counters>,
}

impl Host {
    /// Reads the counters below `proc`. Returns each metric with its value: CPU and network are
    /// known from the second time on.
    pub(crate) fn measure(&mut self, proc: &Path) -> io::Result<Vec<(&'static str, f64)>> {
        let read = |file: &str| {
            let path = proc.join(file);
            fs::read_to_string(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })
        };
        let wrong = |file: &str| {
            let words = format!("{} has another form than expected", proc.join(file).display());
            io::Error::new(io::ErrorKind::InvalidData, words)
        };
        let memory = memory_used(&read("meminfo")?).ok_or_else(|| wrong("meminfo"))?;
        let (cpu_busy, cpu_all) = cpu_ticks(&read("stat")?).ok_or_else(|| wrong("stat"))?;
        let network_bytes = network_bytes(&read("net/dev")?).ok_or_else(|| wrong("net/dev"))?;
        let now = Counters { at: Instant::now(), cpu_busy, cpu_all, network_bytes };
        let mut found = vec![("memory", memory)];
        if let Some(last) = self.last.replace(now) {
            let ticks = now.cpu_all.saturating_sub(last.cpu_all);
            let busy = now.cpu_busy.saturating_sub(last.cpu_busy);
            found.push(("cpu", busy as f64 / ticks.max(1) as f64));
            let bytes = now.network_bytes.saturating_sub(last.network_bytes);
            let seconds = now.at.duration_since(last.at).as_secs_f64();
            found.push(("network", bytes as f64 / seconds.max(1e-3)));
        }
        Ok(found)
    }
}

/// Returns the part of the memory that is not available to new programs (proc(5), MemAvailable).
fn memory_used(meminfo: &str) -> Option<f64> {
    let field = |name: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let (all, free) = (field("MemTotal")?, field("MemAvailable")?);
    (all > 0.0).then(|| (1.0 - free / all).clamp(0.0, 1.0))
}

/// Returns the ticks in which the processors were busy, and all: user, nice, system, idle, iowait,
/// irq, softirq, steal.
fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<u64>> =
        line.split_ascii_whitespace().take(8).map(|field| field.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() >= 4)?;
    let all: u64 = ticks.iter().sum();
    let idle = ticks[3] + ticks.get(4).copied().unwrap_or(0);
    Some((all - idle, all))
}

/// Returns the bytes that all interfaces but the loopback have received and sent.
fn network_bytes(dev: &str) -> Option<u64> {
    let mut sum = 0;
    for line in dev.lines().skip(2) {
        let (name, fields) = line.split_once(':')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let (received, sent): (u64, u64) =
            (fields.first()?.parse().ok()?, fields.get(8)?.parse().ok()?);
        if name.trim() != "lo" {
            sum += received + sent;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_is_not_available() {
        let meminfo = "MemTotal:        8000 kB\nMemFree:   10 kB\nMemAvailable:    2000 kB\n";
        assert_eq!(memory_used(meminfo), Some(0.75));
        assert_eq!(memory_used("MemTotal: 8000 kB\n"), None);
    }

    #[test]
    fn processors_are_busy_when_they_neither_idle_nor_wait() {
        let stat = "cpu  10 1 9 70 10 0 0 0 5 5\ncpu0 1 1 1 1\n";
        assert_eq!(cpu_ticks(stat), Some((20, 100)));
        assert_eq!(cpu_ticks("cpu  1 2\n"), None);
        assert_eq!(cpu_ticks("intr 1\n"), None);
    }

    #[test]
    fn the_network_is_all_interfaces_but_the_loopback() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n  eth0:1000 \
                   1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n";
        assert_eq!(network_bytes(dev), Some(1_200));
        assert_eq!(network_bytes("a\nb\neth0: x\n"), None);
    }

    #[test]
    fn this_host_can_be_measured() {
        let mut host = Host::default();
        let first = host.measure(Path::new("/proc")).expect("Linux has it");
        assert_eq!(first.len(), 1);
        let second = host.measure(Path::new("/proc")).expect("Linux has it");
        assert_eq!(second.iter().map(|it| it.0).collect::<Vec<_>>(), ["memory", "cpu", "network"]);
        let error = host.measure(Path::new("/nowhere")).expect_err("there is nothing");
        assert!(error.to_string().starts_with("/nowhere/meminfo: "), "{error}");
    }
}

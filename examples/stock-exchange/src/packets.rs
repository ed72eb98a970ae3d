//! Packets on an interface, as the kernel counts them: what Nagle's algorithm changes (§5.3).

use std::fs;
use std::time::Instant;

use serde::Serialize;

use crate::error::Error;

/// A reading of the counters. On loopback a packet is sent and received, and counted once.
#[derive(Clone, Copy, Debug)]
pub struct Packets {
    packets: u64,
    bytes: u64,
    at: Instant,
}

/// What has passed between two readings.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Passed {
    /// Packets, both ways.
    pub packets: u64,
    /// Bytes of one on average.
    pub mean_bytes: f64,
    /// Time from one to the next on average, in microseconds.
    pub mean_gap_us: f64,
}

impl Packets {
    /// Reads those of an interface.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn of(interface: &str) -> Result<Self, Error> {
        let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
        let found = text.lines().find_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            (name.trim() == interface).then_some(numbers)
        });
        let counters = found.and_then(|numbers| {
            let numbers: Vec<u64> = numbers.split_ascii_whitespace().flat_map(str::parse).collect();
            // Bytes and packets that were received, in the first of eight columns; then those that were sent.
            let &[bytes_in, packets_in, .., bytes_out, packets_out, _, _, _, _, _, _] = &*numbers
            else {
                return None;
            };
            Some(match interface {
                "lo" => (bytes_out, packets_out),
                _ => (bytes_in + bytes_out, packets_in + packets_out),
            })
        });
        let Some((bytes, packets)) = counters else {
            return Err(Error::System {
                what: format!("--interface {interface}"),
                source: std::io::Error::other("there is none of that name"),
            });
        };
        Ok(Self { packets, bytes, at: Instant::now() })
    }

    /// Returns what has passed since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Passed {
        let packets = self.packets - earlier.packets;
        let each = 1.0 / packets.max(1) as f64;
        Passed {
            packets,
            mean_bytes: (self.bytes - earlier.bytes) as f64 * each,
            mean_gap_us: (self.at - earlier.at).as_secs_f64() * 1e6 * each,
        }
    }
}

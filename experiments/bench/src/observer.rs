//! Looks at the broker's process, its disk and ourselves at the two ends of a measurement.

use serde::Serialize;

use crate::args::BrokerArgs;
use crate::client::Client;
use crate::device::{Device, DeviceSample};
use crate::error::BenchError;
use crate::process::{self, ProcessSample};

/// What can be seen from here.
#[derive(Debug)]
pub(crate) struct Observer {
    /// The broker's process, if it runs here and was found.
    pub broker_pid: Option<u32>,
    /// Why not.
    pub hidden_because: Option<String>,
    device: Option<Device>,
}

/// What was seen at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Snapshot {
    broker: Option<ProcessSample>,
    device: Option<DeviceSample>,
    own: ProcessSample,
}

/// The broker's process over a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BrokerCost {
    /// Its number.
    pub pid: u32,
    /// User and system time, µs.
    pub cpu_us: u64,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
    /// Most resident memory during the measurement, bytes (since the start of the process if the
    /// kernel would not forget the earlier peak).
    pub peak_bytes: u64,
}

/// The device below the broker's data directory over a measurement. Other writers on the same
/// device are counted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceCost {
    /// The block device.
    pub name: String,
    /// Bytes written.
    pub written_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Flush requests.
    pub flushes: u64,
}

impl Observer {
    /// Finds the broker's process by the port it listens on, unless it was named. Not finding it
    /// is only an error if it was named.
    pub(crate) fn new(args: &BrokerArgs, client: &Client) -> Result<Self, BenchError> {
        let device = args.data_dir.as_deref().map(Device::below).transpose()?;
        let (broker_pid, hidden_because) = match (args.broker_pid, client.broker_address()) {
            (Some(pid), _) => {
                process::sample(pid)?;
                (Some(pid), None)
            }
            (None, Some((port, true))) => match process::listening_pid(port) {
                Ok(pid) => (Some(pid), None),
                Err(error) => (None, Some(error.to_string())),
            },
            _ => (None, Some("the broker runs on another machine".to_owned())),
        };
        Ok(Self { broker_pid, hidden_because, device })
    }

    /// Looks, and makes the kernel forget the broker's peak of memory so far.
    pub(crate) fn begin(&self) -> Snapshot {
        self.broker_pid.map(process::reset_peak);
        self.snapshot()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            // A broker that has died shows on its connections; here it only has no costs.
            broker: self.broker_pid.and_then(|pid| process::sample(pid).ok()),
            device: self.device.as_ref().and_then(Device::sample),
            own: process::sample(std::process::id()).unwrap_or_default(),
        }
    }

    pub(crate) fn broker_cost(&self, from: &Snapshot, to: &Snapshot) -> Option<BrokerCost> {
        let (before, after) = (from.broker?, to.broker?);
        Some(BrokerCost {
            pid: self.broker_pid?,
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
            resident_bytes: after.resident_bytes,
            peak_bytes: after.peak_bytes,
        })
    }

    pub(crate) fn device_cost(&self, from: &Snapshot, to: &Snapshot) -> Option<DeviceCost> {
        let delta = to.device?.since(from.device?);
        Some(DeviceCost {
            name: self.device.as_ref()?.name.clone(),
            written_bytes: delta.written_bytes,
            writes: delta.writes,
            flushes: delta.flushes,
        })
    }

    /// Returns the generator's own CPU time between two snapshots, µs.
    pub(crate) const fn own_cpu_us(from: &Snapshot, to: &Snapshot) -> u64 {
        to.own.cpu_us.saturating_sub(from.own.cpu_us)
    }
}

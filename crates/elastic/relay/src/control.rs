//! The connection to the directory: registers, reports, takes commands. When it is lost the relay goes on
//! serving, and this goes on trying, where [`DirectorySearch`] says.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_core::relay::Command;
use quelea_elastic_proto::DirectorySearch;
use quelea_elastic_proto::frame::{ErrorCode, Frame, Hello, Role};
use quelea_elastic_proto::limits::{DIRECTORIES_MAX, VERSION};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::addresses::Addresses;
use crate::config::{Config, Directory};
use crate::frame_stream::{FrameReader, FrameWriter, StreamError, answered, connect};
use crate::host::HostProbe;
use crate::node::SharedNode;

/// Heartbeats without an answer after which the connection counts as lost.
const SILENT_REPORTS_MAX: u32 = 5;

/// Bytes of one read: commands are small and rare.
const READ_BYTES: usize = 4_096;

/// The relay's side of that connection.
pub(crate) struct Control {
    node: SharedNode,
    directory: Directory,
    search: DirectorySearch,
    key: Bytes,
    name: String,
    address: String,
    zmtp: (String, String),
    network_bytes_per_s_max: u64,
    host: HostProbe,
    /// Addresses of directories of an earlier version, which do not know HOST.
    without_host: BTreeSet<String>,
}

/// Why a connection to a directory ended.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("it has answered none of {SILENT_REPORTS_MAX} reports")]
    Silent,
    #[error("it leaves: {0}")]
    Bye(String),
    #[error("the queue is at {address}")]
    Redirected { address: String, retry_after_ms: u32 },
    #[error("it says STOP")]
    Stop,
}

impl Lost {
    /// Returns whether the directory met a frame of a kind that it does not know: of ours, HOST is
    /// the only later one.
    fn is_of_an_unknown_kind(&self) -> bool {
        let Self::Stream(StreamError::Refused(error)) = self else { return false };
        error.code == ErrorCode::Malformed && error.field == "kind"
    }
}

impl Control {
    pub(crate) fn new(
        node: SharedNode,
        directory: Directory,
        config: &Config,
        addresses: Addresses,
    ) -> Self {
        let name = format!("relay {} of {}", directory.relay.0, config.queue);
        let address = config.advertise.clone().unwrap_or_else(|| addresses.native.to_string());
        let text =
            |at: Option<SocketAddr>| at.map_or_else(String::new, |at| reachable(at, &address));
        let zmtp = (text(addresses.zmtp.producers), text(addresses.zmtp.listeners));
        let search = DirectorySearch::new(directory.addresses.iter().cloned(), directory.relay.0);
        Self {
            node,
            directory,
            search,
            key: config.key.clone(),
            name,
            address,
            zmtp,
            network_bytes_per_s_max: config.network_bytes_per_s_max,
            host: HostProbe::new(config.memory_bytes_max),
            without_host: BTreeSet::new(),
        }
    }

    /// Registers for as long as the relay runs.
    pub(crate) async fn run(mut self) {
        loop {
            let address = self.search.address().to_owned();
            let was_registered = self.node.with(|node| node.alone_since.is_none());
            let lost = self.serve(&address).await;
            let registered = self.node.with(|node| {
                let registered = node.alone_since.is_none();
                node.alone_since.get_or_insert_with(|| node.clock.now());
                node.want_turn();
                registered
            });
            debug_assert!(!was_registered, "it is alone when it connects");
            if registered {
                tracing::warn!(directory = address, %lost, "lost the directory; serving on");
            } else if matches!(&lost, Lost::Stream(StreamError::Refused(_))) {
                tracing::warn!(directory = address, %lost, "not registered");
            } else {
                tracing::debug!(directory = address, %lost, "not registered");
            }
            let redirection = match lost {
                Lost::Stop => return,
                Lost::Redirected { address, retry_after_ms } => {
                    Some((address, retry_after_ms.into()))
                }
                _ => None,
            };
            let pause_ms = self.search.lost(registered, redirection);
            sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    /// Serves one connection, until it ends. Returns how it was lost.
    async fn serve(&mut self, address: &str) -> Lost {
        let lost = match self.connected(address).await {
            Ok(never) => match never {},
            Err(lost) => lost,
        };
        if !lost.is_of_an_unknown_kind() {
            // Whoever listens there next may be of a later version.
            self.without_host.remove(address);
        } else if self.without_host.len() < DIRECTORIES_MAX {
            self.without_host.insert(address.to_owned());
        }
        lost
    }

    async fn connected(&mut self, address: &str) -> Result<std::convert::Infallible, Lost> {
        let hello = Hello {
            version: VERSION,
            role: Role::Relay,
            name: self.name.clone(),
            key: self.key.clone(),
        };
        let connected = connect(address, &[Frame::Hello(hello)], READ_BYTES).await;
        let (reader, writer) = connected?;
        let mut line = Line { reader, writer };
        let (relay, request) = (self.directory.relay, self.directory.request.clone());
        let mut register = self.node.with(|node| {
            node.relay.register(relay, &request, self.address.clone(), self.zmtp.clone())
        });
        if let Frame::Register(register) = &mut register {
            register.capacity.bytes_in_per_s = self.network_bytes_per_s_max;
            register.capacity.bytes_out_per_s = self.network_bytes_per_s_max;
        }
        line.send(&[register]).await?;
        let report_ms = loop {
            let frame = answered("REGISTER", line.reader.next()).await?;
            if let Some(report_ms) = self.command(&mut line, frame).await? {
                break report_ms;
            }
        };
        tracing::info!(directory = address, relay = relay.0, "registered");
        self.node.with(|node| node.alone_since = None);
        let with_host = !self.without_host.contains(address);
        self.report(line, report_ms, with_host).await
    }

    /// Reports, and executes commands.
    async fn report(
        &mut self,
        mut line: Line,
        mut report_ms: u32,
        with_host: bool,
    ) -> Result<std::convert::Infallible, Lost> {
        let mut silent = 0;
        'period: loop {
            let period = Duration::from_millis(u64::from(report_ms.max(1)));
            let mut ticks = interval_at(Instant::now(), period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => {
                        if silent >= SILENT_REPORTS_MAX {
                            return Err(Lost::Silent);
                        }
                        silent += 1;
                        line.send(&self.reports(with_host)).await?;
                    }
                    frame = line.reader.next() => {
                        silent = 0;
                        if let Some(other) = self.command(&mut line, frame?).await?
                            && other != report_ms
                        {
                            report_ms = other;
                            continue 'period;
                        }
                    }
                }
            }
        }
    }

    /// Returns the report's frames, HOST first; DRAINING, if a signal ends it, until it is over;
    /// and a PING: its answer shows that somebody reads them.
    fn reports(&self, with_host: bool) -> Vec<Frame> {
        let host = with_host.then(|| Frame::Host(self.host.read()));
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_us = cpu.tv_sec as u64 * 1_000_000 + cpu.tv_nsec as u64 / 1_000;
        self.node.with(|node| {
            node.read_clock();
            let reports = node.relay.report(cpu_us);
            let number = reports.last().map_or(0, |report| report.number);
            let until = node.relay.drains_until().filter(|_| node.is_stopping);
            let draining = until.map(|until| {
                let left_us = until.as_micros().saturating_sub(node.clock.now().as_micros());
                Frame::Draining { deadline_ms: u32::try_from(left_us / 1_000).unwrap_or(u32::MAX) }
            });
            let reports = reports.into_iter().map(Frame::Report);
            host.into_iter().chain(reports).chain(draining).chain([Frame::Ping(number)]).collect()
        })
    }

    /// Executes one frame's command; returns the time between reports if it sets that.
    async fn command(&mut self, line: &mut Line, frame: Frame) -> Result<Option<u32>, Lost> {
        let command = self.node.with(|node| {
            node.read_clock();
            node.want_turn();
            node.relay.command(frame)
        });
        match command {
            Command::Registered { report_ms } => return Ok(Some(report_ms)),
            Command::Directories(directories) => self.search.learn(&directories),
            Command::Redirected { address, retry_after_ms } => {
                return Err(Lost::Redirected { address, retry_after_ms });
            }
            Command::Stop => {
                self.node.with(|node| node.stop_ordered = true);
                return Err(Lost::Stop);
            }
            Command::Refused(error) if error.fatal => {
                return Err(StreamError::Refused(error).into());
            }
            Command::Refused(error) => tracing::warn!(error.text, "the directory refuses"),
            Command::Bye(reason) => return Err(Lost::Bye(reason)),
            Command::Answer(frame) => line.send(&[frame]).await?,
            Command::Done => {}
        }
        Ok(None)
    }
}

/// Returns where others reach what listens on all of this host's addresses: at the host that is
/// announced for the native protocol.
fn reachable(at: SocketAddr, native: &str) -> String {
    match native.rsplit_once(':') {
        Some((host, _)) if at.ip().is_unspecified() => format!("{host}:{}", at.port()),
        _ => at.to_string(),
    }
}

struct Line {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Line {
    /// Sends frames to the directory. One that takes nothing for so long is as good as gone.
    async fn send(&mut self, frames: &[Frame]) -> Result<(), StreamError> {
        answered("a report", self.writer.send(frames)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zmtp_addresses_name_the_advertised_host() {
        let anywhere = "0.0.0.0:7001".parse().unwrap();
        assert_eq!(reachable(anywhere, "relay-3.site:7000"), "relay-3.site:7001");
        assert_eq!(reachable("[::]:7001".parse().unwrap(), "[fd00::3]:7000"), "[fd00::3]:7001");
        assert_eq!(
            reachable("127.0.0.1:7001".parse().unwrap(), "relay-3.site:7000"),
            "127.0.0.1:7001"
        );
    }
}

//! The entries of `[[elastic.entry]]`, where ZeroMQ's sockets stay connected while relays come and go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quelea_elastic_relay::entry::{BoundEntry, Entry, EntryConfig, EntryCounters, EntryError};
use quelea_elastic_relay::{ZmtpConfig, ZmtpSecurity, zmtp_heartbeat};
use quelea_net::SignInFailures;

use super::super::connection_limits::ConnectionLimits;
use crate::config::ElasticEntry;

/// Why an entry cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("elastic.entry of {queue:?}: {error}")]
pub(crate) struct EntryFailure {
    queue: String,
    error: EntryError,
}

impl EntryFailure {
    /// Returns whether the next start fails too, until the configuration is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        matches!(self.error, EntryError::Config(_))
    }
}

/// Entries that have their addresses.
pub(crate) struct PreparedEntries(Vec<BoundEntry>);

/// Entries that serve.
pub(crate) struct Entries(Vec<Entry>);

/// What each entry counts, under its queue's name.
#[derive(Debug, Default)]
pub(crate) struct EntriesCounters(Vec<(String, Arc<EntryCounters>)>);

/// Reads what they need.
pub(crate) fn check(entries: &[ElasticEntry]) -> Result<Vec<EntryConfig>, EntryFailure> {
    let check = |entry: &ElasticEntry| {
        let checked = settings(entry).and_then(|config| config.check().map(|()| config));
        checked.map_err(|error| EntryFailure { queue: entry.queue.clone(), error })
    };
    entries.iter().map(check).collect()
}

/// Takes their addresses.
pub(crate) fn listen(entries: Vec<EntryConfig>) -> Result<PreparedEntries, EntryFailure> {
    let bind = |entry: EntryConfig| {
        let queue = entry.queue.clone();
        entry.bind().map_err(|error| EntryFailure { queue, error })
    };
    entries.into_iter().map(bind).collect::<Result<_, _>>().map(PreparedEntries)
}

fn settings(entry: &ElasticEntry) -> Result<EntryConfig, EntryError> {
    fn file(path: &str) -> Option<&Path> {
        Some(path).filter(|path| !path.is_empty()).map(Path::new)
    }
    let security = ZmtpSecurity::read(
        entry.zmtp_security,
        file(&entry.zmtp_users_file),
        file(&entry.zmtp_secret_key_file),
        file(&entry.zmtp_clients_file),
    )?;
    let zmtp = ZmtpConfig {
        security,
        heartbeat: zmtp_heartbeat(entry.zmtp_heartbeat_ms),
        ..ZmtpConfig::open(&entry.zmtp_in, &entry.zmtp_out)
    };
    let ElasticEntry { slow, ring_bytes_max, connections_max, .. } = *entry;
    Ok(EntryConfig { queue: entry.queue.clone(), zmtp, slow, ring_bytes_max, connections_max })
}

impl PreparedEntries {
    /// Serves them as clients of the directory at this address.
    pub(crate) fn start(
        self,
        directory: SocketAddr,
        key: &[u8],
        limits: ConnectionLimits,
        failures: &SignInFailures,
    ) -> Result<(Entries, EntriesCounters), EntryFailure> {
        let directory = reachable(directory).to_string();
        let (mut entries, mut counters) = (Vec::new(), EntriesCounters::default());
        for mut bound in self.0 {
            bound.limit_connections(|configured| limits.of_entry(configured));
            let queue = bound.queue().to_owned();
            let counted = Arc::<EntryCounters>::default();
            let directories = vec![directory.clone()];
            let (key, failures) = (key.to_vec().into(), failures.clone());
            let entry = bound.start(directories, key, failures, Arc::clone(&counted));
            let entry = entry.map_err(|error| EntryFailure { queue: queue.clone(), error })?;
            let address = |address: Option<SocketAddr>| {
                address.map_or_else(|| "-".to_owned(), |address| address.to_string())
            };
            let addresses = entry.addresses();
            let (zmtp_in, zmtp_out) = (address(addresses.producers), address(addresses.listeners));
            tracing::info!(queue, zmtp_in, zmtp_out, "a ZMTP entry is open");
            entries.push(entry);
            counters.0.push((queue, counted));
        }
        Ok((Entries(entries), counters))
    }
}

/// Returns where this process reaches an address that it listens on.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

impl Entries {
    /// Returns where they listen.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let of_one = |entry: &Entry| {
            let addresses = entry.addresses();
            [addresses.producers, addresses.listeners]
        };
        self.0.iter().flat_map(of_one).flatten()
    }

    /// Stops them, all at once. Waits; not within a runtime.
    pub(crate) fn stop(self) {
        self.0.iter().for_each(Entry::begin_stop);
        self.0.into_iter().for_each(Entry::stop);
    }
}

impl Collector for EntriesCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some((_, first)) = self.0.first() else { return Ok(()) };
        for (at, what) in first.all().iter().enumerate() {
            let kind = if what.grows { MetricType::Counter } else { MetricType::Gauge };
            let name = format!("elastic_entry_{}", what.name);
            let mut family = encoder.encode_descriptor(&name, what.help, None, kind)?;
            for (queue, counters) in &self.0 {
                let value = counters.all()[at].value;
                let label = [("queue", queue.as_str())];
                let encoder = family.encode_family(&label)?;
                if what.grows {
                    ConstCounter::new(value).encode(encoder)?;
                } else {
                    ConstGauge::new(value).encode(encoder)?;
                }
            }
        }
        Ok(())
    }
}

//! What a directory counts, as metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quelea_elastic_core::directory::QueueStatus;
use quelea_elastic_core::plan::RelayState;
use quelea_elastic_proto::frame::Role;

/// Shared by the directory's thread, which counts, and whoever shows it.
#[derive(Debug, Default)]
pub struct DirectoryCounters {
    clients: AtomicU64,
    relays: AtomicU64,
    relay_starts: AtomicU64,
    provider_failures: AtomicU64,
    saves: AtomicU64,
    events: Mutex<BTreeMap<&'static str, u64>>,
    totals: Mutex<Totals>,
}

/// What there is at present, looked at once a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    peers: u64,
    queues: u64,
    relays: [u64; STATES.len()],
    producers: u64,
    listeners: u64,
    moves_under_way: u64,
    moves_done: u64,
    moves_aborted: u64,
    dropped: u64,
    spilled: u64,
    left_behind: u64,
    below_throughput: u64,
    messages_in_per_s: f64,
    messages_out_per_s: f64,
    bytes_in_per_s: f64,
    bytes_out_per_s: f64,
}

const STATES: [(RelayState, &str); 4] = [
    (RelayState::Starting, "starting"),
    (RelayState::Up, "up"),
    (RelayState::Draining, "draining"),
    (RelayState::Dead, "dead"),
];

/// Returns the name under which a relay's state is shown.
pub(crate) fn state_name(state: RelayState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("unknown", |(_, name)| name)
}

impl Totals {
    pub(crate) fn of_peers(peers: usize) -> Self {
        Self { peers: peers as u64, ..Self::default() }
    }

    pub(crate) fn add(&mut self, status: &QueueStatus) {
        self.queues += 1;
        for relay in &status.relays {
            if let Some(at) = STATES.iter().position(|(state, _)| *state == relay.state) {
                self.relays[at] += 1;
            }
            self.dropped += relay.dropped;
            self.spilled += relay.spilled;
            self.left_behind += relay.left_behind;
        }
        self.producers += status.producers as u64;
        self.listeners += status.listeners as u64;
        self.moves_under_way += status.moves_under_way as u64;
        self.moves_done += status.moves_done;
        self.moves_aborted += status.moves_aborted;
        self.below_throughput += u64::from(status.kpi.is_some_and(|kpi| !kpi.kept));
        self.messages_in_per_s += status.load.messages_in;
        self.messages_out_per_s += status.load.messages_out;
        self.bytes_in_per_s += status.load.bytes_in;
        self.bytes_out_per_s += status.load.bytes_out;
    }
}

impl DirectoryCounters {
    pub(crate) fn connected(&self, role: Role) {
        match role {
            Role::Relay => self.relays.fetch_add(1, Ordering::Relaxed),
            _ => self.clients.fetch_add(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn relay_start(&self) {
        self.relay_starts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn provider_failed(&self) {
        self.provider_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn saved(&self) {
        self.saves.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn event(&self, kind: &'static str) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    pub(crate) fn totals(&self, totals: Totals) {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner) = totals;
    }
}

impl Collector for DirectoryCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, help, value) in [
            ("elastic_client_connections", "Clients that have connected", count(&self.clients)),
            ("elastic_relay_connections", "Relays that have connected", count(&self.relays)),
            ("elastic_relay_starts", "Relays asked of the provider", count(&self.relay_starts)),
            (
                "elastic_provider_failures",
                "What the provider could not do",
                count(&self.provider_failures),
            ),
            ("elastic_saves", "Records given to the metadata store", count(&self.saves)),
        ] {
            encode(&mut encoder, name, help, &ConstCounter::new(value))?;
        }
        let help = "Decisions and observations, by kind";
        let mut family =
            encoder.encode_descriptor("elastic_events", help, None, MetricType::Counter)?;
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (kind, value) in events {
            ConstCounter::new(value).encode(family.encode_family(&[("kind", kind)])?)?;
        }
        let totals = *self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        gauges(&totals, &mut encoder)
    }
}

fn gauges(totals: &Totals, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
    for (name, help, value) in [
        ("elastic_peers", "Open connections", totals.peers),
        ("elastic_queues", "Queues that this directory owns", totals.queues),
        ("elastic_producers", "Producers of these", totals.producers),
        ("elastic_listeners", "Listeners of these", totals.listeners),
        ("elastic_moves_under_way", "Producers that are being moved", totals.moves_under_way),
        ("elastic_moves_done", "Moves done, of the queues that are owned now", totals.moves_done),
        ("elastic_moves_aborted", "Moves given up, of these", totals.moves_aborted),
        ("elastic_dropped", "Deliveries dropped, by the relays that there are now", totals.dropped),
        ("elastic_spilled", "Deliveries that had to wait in a relay's file", totals.spilled),
        (
            "elastic_left_behind",
            "Times that producers stopped waiting for a listener that took nothing",
            totals.left_behind,
        ),
        (
            "elastic_queues_below_throughput",
            "Queues whose relays cannot carry the throughput that they promise",
            totals.below_throughput,
        ),
    ] {
        encode(encoder, name, help, &ConstGauge::new(value))?;
    }
    for (name, help, value) in [
        (
            "elastic_messages_received_per_second",
            "Messages in of all relays",
            totals.messages_in_per_s,
        ),
        (
            "elastic_messages_delivered_per_second",
            "Deliveries of all relays",
            totals.messages_out_per_s,
        ),
        ("elastic_received_bytes_per_second", "Bytes in of all relays", totals.bytes_in_per_s),
        ("elastic_sent_bytes_per_second", "Bytes out of all relays", totals.bytes_out_per_s),
    ] {
        encode(encoder, name, help, &ConstGauge::new(value))?;
    }
    let help = "Relays of the queues that are owned, by state";
    let mut family = encoder.encode_descriptor("elastic_relays", help, None, MetricType::Gauge)?;
    for ((_, state), value) in STATES.iter().zip(totals.relays) {
        ConstGauge::new(value).encode(family.encode_family(&[("state", *state)])?)?;
    }
    Ok(())
}

fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> Result<(), std::fmt::Error> {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

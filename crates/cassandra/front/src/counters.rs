//! What a front-end counts of Cassandra and of the other front-ends.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quelea_cassandra_store::{CassandraQueues, PeerStats, RequestCounts, SweepStats};

/// The counts of a front-end, for `/metrics`.
pub(crate) struct ClusterCounters(pub(crate) CassandraQueues);

impl fmt::Debug for ClusterCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCounters").finish_non_exhaustive()
    }
}

impl Collector for ClusterCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let RequestCounts { messages, upkeep, peers, sweep, leases } = self.0.requests();
        let mut requests = encoder.encode_descriptor(
            "cassandra_requests",
            "Requests to Cassandra, by what they were for",
            None,
            ConstCounter::new(0_u64).metric_type(),
        )?;
        for (purpose, count) in [
            ("messages", messages),
            ("upkeep", upkeep),
            ("peers", peers),
            ("sweep", sweep),
            ("leases", leases),
        ] {
            let labels = [("for", purpose)];
            ConstCounter::new(count).encode(requests.encode_family(&labels)?)?;
        }
        let stats = self.0.peer_stats();
        for (name, help, count) in counters(&stats) {
            single(&mut encoder, name, help, &ConstCounter::new(count))?;
        }
        let help = "Messages that the sweep has found, to which nothing led";
        let restored = ConstCounter::new(self.0.restored());
        single(&mut encoder, "replicated_messages_restored", help, &restored)?;
        encode_sweeps(&mut encoder, &self.0.sweep_stats())?;
        let help = "1 while Cassandra answers this front-end's heartbeats";
        let is_answered = ConstGauge::new(u64::from(self.0.is_answered()));
        single(&mut encoder, "cassandra_answers", help, &is_answered)?;
        let help = "Changes of which Cassandra did not say whether they were made";
        let unknown = ConstCounter::new(self.0.unknown_outcomes());
        single(&mut encoder, "cassandra_unknown_outcomes", help, &unknown)?;
        let help = "Rows that cannot be read and were left out";
        let unreadable = ConstCounter::new(self.0.unreadable_rows());
        single(&mut encoder, "replicated_rows_unreadable", help, &unreadable)?;
        let help = "Front-ends that are alive, as this one knows it";
        single(&mut encoder, "front_ends", help, &ConstGauge::new(stats.front_ends))?;
        let help = "1 while this front-end hears all others, so that it need not ask Cassandra what they change";
        let hears_all = ConstGauge::new(u64::from(stats.hears_all));
        single(&mut encoder, "front_ends_heard", help, &hears_all)
    }
}

fn encode_sweeps(encoder: &mut DescriptorEncoder<'_>, sweeps: &SweepStats) -> fmt::Result {
    let help = "Queues that this front-end has swept to their end";
    single(encoder, "replicated_queues_swept", help, &ConstCounter::new(sweeps.swept))?;
    let help = "Sweeps of queues, or of their list, that were broken off";
    single(encoder, "replicated_sweeps_broken_off", help, &ConstCounter::new(sweeps.broken_off))?;
    let help =
        "When all queues of this front-end had been swept the last time, in seconds since 1970";
    let ended_at_s = ConstGauge::new(sweeps.ended_at_ms / 1_000);
    single(encoder, "replicated_sweep_ended_timestamp_seconds", help, &ended_at_s)
}

/// Encodes a metric without labels.
fn single(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn counters(stats: &PeerStats) -> [(&'static str, &'static str, u64); 8] {
    [
        ("peer_datagrams_sent", "Datagrams to other front-ends", stats.datagrams_sent),
        ("peer_datagrams_received", "Datagrams from other front-ends", stats.datagrams_heard),
        (
            "peer_datagrams_unreadable",
            "Datagrams from other front-ends that this version cannot read",
            stats.datagrams_unreadable,
        ),
        (
            "peer_nudges_sent",
            "Nudges about new messages to front-ends that poll",
            stats.nudges_sent,
        ),
        ("peer_nudges_received", "Nudges about queues that are polled here", stats.nudges_heard),
        (
            "replicated_entries_claimed",
            "Entries of replicated queues that this front-end has chosen",
            stats.entries_claimed,
        ),
        (
            "replicated_entries_yielded",
            "Entries that were left to a front-end that had chosen them at the same time",
            stats.entries_yielded,
        ),
        (
            "replicated_duplicates_seen",
            "Messages that were delivered here and at another front-end, as far as noticed",
            stats.duplicates_seen,
        ),
    ]
}

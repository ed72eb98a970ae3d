//! What the bridge counts.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// What the bridge counts, for `/metrics`.
#[derive(Debug, Default)]
pub struct BridgeCounters {
    /// Relays that have messages kept now.
    pub(crate) keeping: AtomicU64,
    /// Messages stored for elastic queues.
    pub(crate) kept: AtomicU64,
    /// Messages that came again and were stored already.
    pub(crate) repeated: AtomicU64,
    /// Messages from exchanges into elastic queues.
    pub(crate) fed: AtomicU64,
    /// Messages of exchanges that no elastic queue can carry.
    pub(crate) not_fed: AtomicU64,
    /// Messages from elastic queues to exchanges.
    pub(crate) delivered: AtomicU64,
    /// Messages of elastic queues that no queue took.
    pub(crate) not_delivered: AtomicU64,
    /// Messages that deliveries missed: gaps that the elastic queue announced.
    pub(crate) gaps: AtomicU64,
}

impl Collector for BridgeCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, counter) in [
            ("kept_messages", "Messages stored for elastic queues", &self.kept),
            (
                "kept_messages_repeated",
                "Messages for the keeper that it had stored already",
                &self.repeated,
            ),
            ("fed_messages", "Messages from exchanges into elastic queues", &self.fed),
            (
                "fed_messages_dropped",
                "Messages of exchanges that no elastic queue can carry",
                &self.not_fed,
            ),
            ("delivered_messages", "Messages from elastic queues to exchanges", &self.delivered),
            (
                "delivered_messages_dropped",
                "Messages of elastic queues that no queue took",
                &self.not_delivered,
            ),
            (
                "delivered_messages_missed",
                "Messages that a gap announced to deliveries",
                &self.gaps,
            ),
        ] {
            let metric = ConstCounter::new(counter.load(Relaxed));
            let name = format!("elastic_{name}");
            let described = encoder.encode_descriptor(&name, help, None, metric.metric_type())?;
            metric.encode(described)?;
        }
        let keeping = ConstGauge::new(self.keeping.load(Relaxed));
        let help = "Relays that have messages kept";
        let described = encoder.encode_descriptor(
            "elastic_keeping_relays",
            help,
            None,
            keeping.metric_type(),
        )?;
        keeping.encode(described)
    }
}

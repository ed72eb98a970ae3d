//! What the front counts, for `/metrics`.

use std::fmt::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quelea_cmq::Endpoint;

/// Why a message from a peer reached no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The exchange has no queue for it.
    Unroutable,
    /// There is no such exchange.
    NoExchange,
    /// There is no such virtual host.
    NoVhost,
    /// The user may not publish there.
    Refused,
    /// The broker takes no bodies of that size.
    TooLarge,
    /// A full queue refused it.
    QueueFull,
    /// The user may come from this machine only, and the datagram did not.
    NotLoopback,
    /// The broker refused it for another reason.
    Invalid,
}

impl Cause {
    /// All of them in the order of their numbers, each with its label.
    const LABELS: [(Self, &'static str); 8] = [
        (Self::Unroutable, "unroutable"),
        (Self::NoExchange, "no_exchange"),
        (Self::NoVhost, "no_vhost"),
        (Self::Refused, "refused"),
        (Self::TooLarge, "too_large"),
        (Self::QueueFull, "queue_full"),
        (Self::NotLoopback, "not_loopback"),
        (Self::Invalid, "invalid"),
    ];

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::LABELS.into_iter().map(|(cause, _)| cause)
    }

    /// Its label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::LABELS[self as usize].1
    }
}

/// Counters since the start, shared by the front's tasks and whoever reads them.
#[derive(Debug, Default)]
pub struct DatagramCounters {
    pub(crate) received: AtomicU64,
    pub(crate) published: AtomicU64,
    dropped: [AtomicU64; Cause::LABELS.len()],
    pub(crate) forwarded: AtomicU64,
    pub(crate) requeued: AtomicU64,
    pub(crate) not_forwarded: AtomicU64,
    /// Forwards whose queue is consumed from now.
    pub(crate) forwarding: AtomicU64,
    pub(crate) listener: OnceLock<Endpoint>,
}

impl DatagramCounters {
    pub(crate) fn drop_messages(&self, cause: Cause, messages: u64) {
        self.dropped[cause as usize].fetch_add(messages, Relaxed);
    }

    /// Messages that reached no queue for that cause.
    #[must_use]
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize].load(Relaxed)
    }
}

impl Collector for DatagramCounters {
    /// All of them, those that are zero too: a rate needs the zero before the first.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, value) in [
            ("cmq_messages_received", "Messages taken from CMQ peers", &self.received),
            ("cmq_messages_published", "Those that were published", &self.published),
            ("cmq_messages_forwarded", "Messages of queues that CMQ peers have", &self.forwarded),
            (
                "cmq_messages_requeued",
                "Messages that went back to their queues, since a CMQ peer was silent or the \
                 front stopped",
                &self.requeued,
            ),
            (
                "cmq_messages_not_forwarded",
                "Messages that are too large for CMQ, and were discarded or dead-lettered",
                &self.not_forwarded,
            ),
        ] {
            encode(&mut encoder, name, help, &ConstCounter::new(value.load(Relaxed)))?;
        }
        let help = "Messages from CMQ peers that reached no queue, by cause";
        let dropped = Cause::LABELS.map(|(cause, label)| (label, self.dropped(cause)));
        encode_by(&mut encoder, "cmq_messages_dropped", help, "cause", dropped)?;
        let gauge = ConstGauge::new(self.forwarding.load(Relaxed));
        let help = "Forwards that consume from their queues now";
        encode(&mut encoder, "cmq_forwards_active", help, &gauge)?;
        // What the library counted at the listener's socket.
        let Some(listener) = self.listener.get() else { return Ok(()) };
        let help = "What CMQ's listening socket counted, by the library's names";
        encode_by(&mut encoder, "cmq_listener", help, "counter", listener.stats().counters())
    }
}

fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> Result<(), Error> {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn encode_by(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: impl IntoIterator<Item = (&'static str, u64)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labelled, value) in values {
        ConstCounter::new(value).encode(family.encode_family(&[(label, labelled)])?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_counted_in_its_own_place() {
        let counters = DatagramCounters::default();
        for (place, (cause, label)) in Cause::LABELS.into_iter().enumerate() {
            assert_eq!(cause.name(), label);
            counters.drop_messages(cause, place as u64 + 1);
        }
        for (place, (cause, label)) in Cause::LABELS.into_iter().enumerate() {
            assert_eq!(counters.dropped(cause), place as u64 + 1, "{label}");
        }
    }
}

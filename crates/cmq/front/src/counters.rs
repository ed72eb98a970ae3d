//! What the front counts, for `/metrics`.

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quelea_cmq::Endpoint;

use crate::forward_state::ForwardState;

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

    /// Returns all causes.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::LABELS.into_iter().map(|(cause, _)| cause)
    }

    /// Returns the cause's label.
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
    /// Set at the start.
    forwards: OnceLock<Vec<Arc<ForwardState>>>,
    pub(crate) listener: OnceLock<Endpoint>,
}

/// What all forwards counted.
#[derive(Debug, Default)]
pub(crate) struct ForwardTotals {
    pub(crate) forwarded: u64,
    pub(crate) requeued: u64,
    pub(crate) not_forwarded: u64,
    pub(crate) active: u64,
}

impl DatagramCounters {
    pub(crate) fn drop_messages(&self, cause: Cause, messages: u64) {
        self.dropped[cause as usize].fetch_add(messages, Relaxed);
    }

    /// A second front would count into the first one's place; there is none.
    pub(crate) fn set_forwards(&self, forwards: Vec<Arc<ForwardState>>) {
        let _ = self.forwards.set(forwards);
    }

    pub(crate) fn forwards(&self) -> &[Arc<ForwardState>] {
        self.forwards.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn forward_totals(&self) -> ForwardTotals {
        let mut totals = ForwardTotals::default();
        for forward in self.forwards() {
            totals.forwarded += forward.forwarded.load(Relaxed);
            totals.requeued += forward.requeued.load(Relaxed);
            totals.not_forwarded += forward.not_forwarded.load(Relaxed);
            totals.active += u64::from(forward.is_active());
        }
        totals
    }

    /// Returns the number of messages that reached no queue for that cause.
    #[must_use]
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize].load(Relaxed)
    }
}

impl Collector for DatagramCounters {
    /// Encodes all counters, those that are zero too: a rate needs the zero before the first.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (received, published) = (self.received.load(Relaxed), self.published.load(Relaxed));
        let forwards = self.forward_totals();
        for (name, help, value) in [
            ("cmq_messages_received", "Messages taken from CMQ peers", received),
            ("cmq_messages_published", "Those that were published", published),
            (
                "cmq_messages_forwarded",
                "Messages of queues that CMQ peers have",
                forwards.forwarded,
            ),
            (
                "cmq_messages_requeued",
                "Messages that went back to their queues, since a CMQ peer was silent or the \
                 front stopped",
                forwards.requeued,
            ),
            (
                "cmq_messages_not_forwarded",
                "Messages that are too large for CMQ, and were discarded or dead-lettered",
                forwards.not_forwarded,
            ),
        ] {
            encode(&mut encoder, name, help, &ConstCounter::new(value))?;
        }
        let help = "Messages from CMQ peers that reached no queue, by cause";
        let dropped = Cause::LABELS.map(|(cause, label)| (label, self.dropped(cause)));
        encode_by(&mut encoder, "cmq_messages_dropped", help, "cause", dropped)?;
        let gauge = ConstGauge::new(forwards.active);
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

//! Figures of each queue, exchange, connection and channel, by the names and in the families of RabbitMQ's plugin (its document
//! metrics-detailed.md lists them), for who signs in and may see them.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::net::SocketAddr;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use quelea_broker::report::{ExchangeReport, QueueReport};

use crate::api::channels::ListedChannel;
use crate::api::connections::ListedConnection;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::listed::{InPages, Listed};
use crate::paging::fetch;
use crate::state::ApiState;

/// Which of them are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectFilter {
    /// Families, or all.
    pub(super) families: Option<Vec<String>>,
    /// Virtual hosts, or all.
    pub(super) vhosts: Option<Vec<String>>,
}

impl ObjectFilter {
    fn has_one_of(&self, families: &[&str]) -> bool {
        let Some(wanted) = &self.families else { return true };
        wanted.iter().any(|family| families.contains(&family.as_str()))
    }

    fn has_vhost(&self, vhost: &str) -> bool {
        self.vhosts.as_ref().is_none_or(|all| all.iter().any(|one| one == vhost))
    }
}

/// Returns all figures that are wanted, of what the user may see. Objects of which no figure is
/// wanted are not asked for.
pub(super) async fn of_all(
    api: &ApiState,
    user: &ApiUser,
    prefix: &str,
    wanted: &ObjectFilter,
) -> Result<Registry, ApiError> {
    let mut registry = Registry::with_prefix(prefix);
    add::<QueueReport>(&mut registry, api, user, wanted).await?;
    add::<ExchangeReport>(&mut registry, api, user, wanted).await?;
    add::<ListedConnection>(&mut registry, api, user, wanted).await?;
    add::<ListedChannel>(&mut registry, api, user, wanted).await?;
    Ok(registry)
}

async fn add<T: Measured>(
    registry: &mut Registry,
    api: &ApiState,
    user: &ApiUser,
    wanted: &ObjectFilter,
) -> Result<(), ApiError> {
    let figures = T::FIGURES.iter().filter(|figure| wanted.has_one_of(figure.families));
    let figures: Vec<_> = figures.collect();
    if figures.is_empty() {
        return Ok(());
    }
    let mut objects = fetch::<T>(api, None).await?;
    let is_shown = |object: &T| {
        object.is_named() && user.sees(object.vhost()) && wanted.has_vhost(object.vhost())
    };
    objects.retain(is_shown);
    registry.register_collector(Box::new(Figures { figures, objects }));
    Ok(())
}

/// A kind of object that has figures.
trait Measured: InPages + Listed + Debug + Sync {
    /// All figures of such an object.
    const FIGURES: &'static [Figure<Self>];

    /// Returns whether no other object has its label. Connections inside the broker, by which this
    /// API gets messages, may share theirs.
    fn is_named(&self) -> bool {
        true
    }

    /// Returns the label that tells an object from others of its virtual host, and its value.
    fn label(&self) -> (&'static str, Cow<'_, str>);

    /// Returns all labels of an object.
    fn labels(&self) -> [(&'static str, Cow<'_, str>); 2] {
        [("vhost", self.vhost().into()), self.label()]
    }
}

/// Returns whether `peer` is the peer of a socket: inside the broker it is a name.
fn has_socket(peer: &str) -> bool {
    peer.parse::<SocketAddr>().is_ok()
}

/// A figure of each object of a kind.
#[derive(Debug)]
struct Figure<T: 'static> {
    name: &'static str,
    help: &'static str,
    /// Its families of `/metrics/detailed`.
    families: &'static [&'static str],
    kind: MetricType,
    value: fn(&T) -> u64,
}

const fn counter<T>(
    name: &'static str,
    help: &'static str,
    families: &'static [&'static str],
    value: fn(&T) -> u64,
) -> Figure<T> {
    Figure { name, help, families, kind: MetricType::Counter, value }
}

const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    families: &'static [&'static str],
    value: fn(&T) -> u64,
) -> Figure<T> {
    Figure { name, help, families, kind: MetricType::Gauge, value }
}

#[derive(Debug)]
struct Figures<T: 'static> {
    figures: Vec<&'static Figure<T>>,
    objects: Vec<T>,
}

impl<T: Measured> Collector for Figures<T> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let labels: Vec<_> = self.objects.iter().map(T::labels).collect();
        for figure in &self.figures {
            let mut family =
                encoder.encode_descriptor(figure.name, figure.help, None, figure.kind)?;
            for (object, labels) in self.objects.iter().zip(&labels) {
                let (of_object, value) = (family.encode_family(labels)?, (figure.value)(object));
                match figure.kind {
                    MetricType::Counter => ConstCounter::new(value).encode(of_object)?,
                    _ => ConstGauge::new(value).encode(of_object)?,
                }
            }
        }
        Ok(())
    }
}

const COARSE: &[&str] = &["queue_coarse_metrics"];
const OF_QUEUE: &[&str] = &["queue_metrics"];
const DELIVERIES: &[&str] = &["queue_delivery_metrics"];

impl Measured for QueueReport {
    const FIGURES: &'static [Figure<Self>] = &[
        gauge("queue_messages_ready", "Ready messages", COARSE, |q| q.messages_ready),
        gauge(
            "queue_messages_unacked",
            "Messages delivered and not acknowledged",
            COARSE,
            Self::unsettled,
        ),
        gauge("queue_messages", "Ready and unacknowledged messages", COARSE, |q| {
            q.messages_ready + q.unsettled()
        }),
        gauge("queue_consumers", "Consumers", &["queue_consumer_count", "queue_metrics"], |q| {
            u64::from(q.consumers)
        }),
        gauge("queue_messages_ready_bytes", "Bytes of ready messages", OF_QUEUE, |q| {
            q.message_bytes_ready
        }),
        gauge("queue_process_memory_bytes", "Memory of the queue", OF_QUEUE, |q| {
            q.memory_bytes as u64
        }),
        counter(
            "queue_messages_published",
            "Messages put into the queue",
            &["queue_delivery_metrics", "queue_exchange_metrics", "channel_queue_exchange_metrics"],
            |q| q.counters.publish,
        ),
        counter(
            "queue_messages_delivered_ack",
            "Deliveries that await an acknowledgement",
            DELIVERIES,
            |q| q.counters.deliver,
        ),
        counter("queue_messages_delivered", "Deliveries that await none", DELIVERIES, |q| {
            q.counters.deliver_no_ack
        }),
        counter("queue_get_ack", "Messages got, to acknowledge", DELIVERIES, |q| q.counters.get),
        counter("queue_get", "Messages got for good", DELIVERIES, |q| q.counters.get_no_ack),
        counter("queue_get_empty", "Gets that found it empty", DELIVERIES, |q| {
            q.counters.get_empty
        }),
        counter(
            "queue_messages_redelivered",
            "Deliveries of messages delivered before",
            DELIVERIES,
            |q| q.counters.redeliver,
        ),
        counter("queue_messages_acked", "Acknowledgements", DELIVERIES, |q| q.counters.ack),
    ];

    fn label(&self) -> (&'static str, Cow<'_, str>) {
        ("queue", self.name.as_str().into())
    }
}

const OF_EXCHANGE: &[&str] = &["exchange_metrics"];

impl Measured for ExchangeReport {
    const FIGURES: &'static [Figure<Self>] = &[
        counter(
            "exchange_messages_published",
            "Messages that clients published to the exchange",
            OF_EXCHANGE,
            |e| e.counters.publish_in,
        ),
        counter(
            "exchange_messages_routed",
            "The same, each once for each queue that it was put into",
            OF_EXCHANGE,
            |e| e.counters.publish_out,
        ),
    ];

    fn label(&self) -> (&'static str, Cow<'_, str>) {
        ("exchange", self.name.as_str().into())
    }
}

const TRAFFIC: &[&str] = &["connection_coarse_metrics"];

impl Measured for ListedConnection {
    const FIGURES: &'static [Figure<Self>] = &[
        counter("connection_incoming_bytes", "Bytes that the client sent", TRAFFIC, |c| {
            c.traffic.bytes_received
        }),
        counter("connection_outgoing_bytes", "Bytes that the client was sent", TRAFFIC, |c| {
            c.traffic.bytes_sent
        }),
        gauge("connection_channels", "Open channels", &["connection_metrics"], |c| {
            u64::from(c.report.channels)
        }),
    ];

    fn is_named(&self) -> bool {
        has_socket(&self.report.peer)
    }

    fn label(&self) -> (&'static str, Cow<'_, str>) {
        ("connection", self.report.name.as_str().into())
    }
}

const OF_CHANNEL: &[&str] = &["channel_metrics"];
const PUBLISHES: &[&str] = &["channel_exchange_metrics"];
const TAKEN: &[&str] = &["channel_queue_metrics"];

impl Measured for ListedChannel {
    const FIGURES: &'static [Figure<Self>] = &[
        gauge("channel_consumers", "Consumers", OF_CHANNEL, |c| u64::from(c.report.consumers)),
        gauge(
            "channel_messages_unacked",
            "Messages delivered and not acknowledged",
            OF_CHANNEL,
            |c| u64::from(c.report.messages_unacknowledged),
        ),
        gauge("channel_messages_unconfirmed", "Publishes not confirmed yet", OF_CHANNEL, |c| {
            c.publisher.unconfirmed
        }),
        gauge("consumer_prefetch", "Prefetch for consumers to come", OF_CHANNEL, |c| {
            u64::from(c.report.prefetch_count)
        }),
        gauge("channel_prefetch", "Prefetch over all consumers", OF_CHANNEL, |c| {
            u64::from(c.report.global_prefetch_count)
        }),
        counter(
            "channel_messages_published",
            "Messages taken from the publisher",
            PUBLISHES,
            |c| c.counters.messages.publish,
        ),
        counter("channel_messages_confirmed", "Publishes acknowledged to it", PUBLISHES, |c| {
            c.counters.confirmed
        }),
        counter(
            "channel_messages_unroutable_returned",
            "Messages without a queue, that were returned",
            PUBLISHES,
            |c| c.counters.messages.return_unroutable,
        ),
        counter(
            "channel_messages_unroutable_dropped",
            "Messages without a queue, that were dropped",
            PUBLISHES,
            |c| c.counters.messages.drop_unroutable,
        ),
        counter(
            "channel_messages_delivered_ack",
            "Deliveries that await an acknowledgement",
            TAKEN,
            |c| c.counters.messages.deliver,
        ),
        counter("channel_messages_delivered", "Deliveries that await none", TAKEN, |c| {
            c.counters.messages.deliver_no_ack
        }),
        counter("channel_get_ack", "Messages got, to acknowledge", TAKEN, |c| {
            c.counters.messages.get
        }),
        counter("channel_get", "Messages got for good", TAKEN, |c| c.counters.messages.get_no_ack),
        counter("channel_get_empty", "Gets of an empty queue", TAKEN, |c| {
            c.counters.messages.get_empty
        }),
        counter(
            "channel_messages_redelivered",
            "Deliveries of messages delivered before",
            TAKEN,
            |c| c.counters.messages.redeliver,
        ),
        counter("channel_messages_acked", "Acknowledgements", TAKEN, |c| c.counters.messages.ack),
    ];

    fn is_named(&self) -> bool {
        has_socket(&self.report.peer)
    }

    fn label(&self) -> (&'static str, Cow<'_, str>) {
        ("channel", self.shown_name().into())
    }
}

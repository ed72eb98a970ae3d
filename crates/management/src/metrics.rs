//! `/metrics`: the broker's counters, made anew for each request from one report.

mod format;
mod objects;
mod rabbitmq;
mod sqs;

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use quelea_broker::report::Overview;
use quelea_model::LatencyHistogram;
use quelea_net::Front;
use quelea_node::{Authenticator, NetCounters};
use quelea_sqs_server::SqsCounters;

use crate::call::Call;
use crate::counters::ApiCounters;
use crate::error::ApiError;
use crate::state::ApiState;

pub(crate) use self::format::Format;
use self::objects::ObjectFilter;

/// `GET /metrics`.
pub(crate) async fn text(
    State(api): State<ApiState>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let overview = crate::api::overview::fetch(&api).await?;
    let sockets = api.on_core(|core| core.counters()).await?;
    let by_rabbitmqs_names = rabbitmq::totals(&overview, &sockets, &api.node, &api.data_dir);
    let mut registry = Registry::with_prefix("quelea");
    registry.register_collector(Box::new(Snapshot { overview, sockets }));
    let fronts = Fronts {
        authenticator: &api.authenticator,
        counters: &api.counters,
        sqs: api.sqs.as_ref(),
        collectors: &api.collectors,
    };
    page(registry, &[by_rabbitmqs_names], fronts, Format::wanted(&headers))
}

/// `GET /metrics/per-object`: queues, exchanges, connections and channels by their names, for who may see them.
pub(crate) async fn per_object(call: Call) -> Result<Response, ApiError> {
    let format = Format::wanted(call.headers());
    let (api, user, []) = call.parts();
    let _turn = api.object_pages.acquire().await.map_err(|_| ApiError::Stopping)?;
    text_of(&[objects::of_all(&api, &user, "rabbitmq", &ObjectFilter::default()).await?], format)
}

/// `GET /metrics/detailed`, with `family` and `vhost`, each as often as needed.
pub(crate) async fn detailed(call: Call) -> Result<Response, ApiError> {
    let query: Vec<(String, String)> = call.query()?;
    let format = Format::wanted(call.headers());
    let (api, user, []) = call.parts();
    let all = |wanted: &str| {
        let values = query.iter().filter(|(name, _)| name == wanted);
        values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let (families, vhosts) = (Some(all("family")), all("vhost"));
    let wanted = ObjectFilter { families, vhosts: (!vhosts.is_empty()).then_some(vhosts) };
    let _turn = api.object_pages.acquire().await.map_err(|_| ApiError::Stopping)?;
    text_of(&[objects::of_all(&api, &user, "rabbitmq_detailed", &wanted).await?], format)
}

/// What is counted beside a broker.
pub(crate) struct Fronts<'a> {
    pub(crate) authenticator: &'a Authenticator,
    /// What the API's own sockets did.
    pub(crate) counters: &'a ApiCounters,
    /// What the SQS front counts, if there is one.
    pub(crate) sqs: Option<&'a Arc<SqsCounters>>,
    /// What others count.
    pub(crate) collectors: &'a [Arc<dyn Collector>],
}

/// Returns the page of what a registry has, of the fronts, and of others.
pub(crate) fn page(
    mut registry: Registry,
    others: &[Registry],
    fronts: Fronts<'_>,
    format: Format,
) -> Result<Response, ApiError> {
    registry.register_collector(Box::new(Refusals::of(&fronts)));
    if let Some(counters) = fronts.sqs {
        registry.register_collector(Box::new(sqs::SqsSnapshot(Arc::clone(counters))));
    }
    for collector in fronts.collectors {
        registry.register_collector(Box::new(Shared(Arc::clone(collector))));
    }
    let mut body = String::new();
    text::encode_registry(&mut body, &registry).map_err(ApiError::bad)?;
    finished(body, others, format)
}

fn text_of(registries: &[Registry], format: Format) -> Result<Response, ApiError> {
    finished(String::new(), registries, format)
}

fn finished(
    mut body: String,
    registries: &[Registry],
    format: Format,
) -> Result<Response, ApiError> {
    for registry in registries {
        text::encode_registry(&mut body, registry).map_err(ApiError::bad)?;
    }
    text::encode_eof(&mut body).map_err(ApiError::bad)?;
    Ok(([(CONTENT_TYPE, format.content_type())], format.of(body)).into_response())
}

/// What another front counts.
#[derive(Debug)]
struct Shared(Arc<dyn Collector>);

impl Collector for Shared {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

/// Whom the doors kept out.
#[derive(Debug)]
struct Refusals {
    sign_ins: [(&'static str, u64); Front::ALL.len()],
    verifications: u64,
    management: [(&'static str, u64); 5],
    management_requests: LatencyHistogram,
}

impl Refusals {
    fn of(fronts: &Fronts<'_>) -> Self {
        let authenticator = fronts.authenticator;
        Self {
            sign_ins: Front::ALL.map(|front| (front.name(), authenticator.failures().count(front))),
            verifications: authenticator.verifications(),
            management: fronts.counters.refused(),
            management_requests: fronts.counters.requests(),
        }
    }
}

impl Collector for Refusals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Passwords that were hashed to verify them";
        counter(&mut encoder, "sign_in_verifications", help, self.verifications)?;
        let help = "Sign-ins with a wrong password, key or token, of an unknown user, or from where the user may not";
        labelled(&mut encoder, "sign_ins_failed", help, "front", &self.sign_ins)?;
        let help = "Connections and requests that the management API refused";
        labelled(&mut encoder, "management_refused", help, "cause", &self.management)?;
        let help = "How long requests of the management API took, from their head to the answer's";
        latencies(&mut encoder, "management_request", help, &self.management_requests)
    }
}

#[derive(Debug)]
struct Snapshot {
    overview: Overview,
    sockets: NetCounters,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.objects(&mut encoder)?;
        self.messages(&mut encoder)?;
        self.dropped(&mut encoder)?;
        self.sockets(&mut encoder)?;
        self.log(&mut encoder)
    }
}

impl Snapshot {
    fn objects(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let overview = &self.overview;
        gauge(encoder, "connections", "Open connections", overview.connections as u64)?;
        gauge(encoder, "channels", "Open channels", overview.channels as u64)?;
        gauge(encoder, "consumers", "Consumers", overview.consumers as u64)?;
        gauge(encoder, "queues", "Queues", overview.queues as u64)?;
        gauge(encoder, "exchanges", "Exchanges", overview.exchanges as u64)?;
        gauge(encoder, "messages_ready", "Ready messages", overview.messages_ready)?;
        gauge(
            encoder,
            "messages_unacknowledged",
            "Messages delivered and not acknowledged",
            overview.messages_unacknowledged,
        )?;
        gauge(
            encoder,
            "messages_unreadable",
            "Messages set aside since the log does not give them back",
            overview.messages_unreadable,
        )?;
        bytes(encoder, "resident", "Bodies in memory", overview.resident_bytes as u64)?;
        bytes(encoder, "index", "Index entries in memory", overview.index_bytes as u64)?;
        let blocked = u64::from(overview.publishers_blocked.is_some());
        gauge(encoder, "publishers_blocked", "1 while publishers are blocked", blocked)?;
        let failed = u64::from(overview.log_failed.is_some());
        gauge(encoder, "log_failed", "1 once the log has failed: only a restart helps", failed)
    }

    fn messages(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let passed = &self.overview.counters;
        for (name, help, value) in [
            ("messages_published", "Messages taken from publishers", passed.publish),
            ("messages_delivered", "Deliveries that await an acknowledgement", passed.deliver),
            ("messages_delivered_no_ack", "Deliveries that await none", passed.deliver_no_ack),
            ("messages_got", "Messages got that await an acknowledgement", passed.get),
            ("messages_got_no_ack", "Messages got that await none", passed.get_no_ack),
            ("messages_redelivered", "Deliveries of messages delivered before", passed.redeliver),
            ("messages_acknowledged", "Acknowledgements", passed.ack),
            ("messages_dead_lettered", "Messages dead-lettered to a queue", passed.dead_lettered),
            ("messages_returned", "Mandatory messages without a queue", passed.return_unroutable),
            ("messages_rejected", "Publishes that a full queue refused", passed.rejected),
            ("publishers_slowed", "Waits of connections for consumers to follow", passed.slowed),
        ] {
            counter(encoder, name, help, value)?;
        }
        Ok(())
    }

    /// Encodes the messages that ended without reaching anybody, by cause; those with a dead letter
    /// exchange also count as dead-lettered.
    fn dropped(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let passed = &self.overview.counters;
        let help = "Messages that ended without a consumer, by cause";
        let causes = [
            ("unroutable", passed.drop_unroutable),
            ("expired", passed.expired),
            ("overflow", passed.overflowed),
            ("discarded", passed.discarded),
            ("delivery_limit", passed.over_delivery_limit),
            ("dead_letter_unroutable", passed.dead_letters_dropped),
            ("reply_channel_gone", passed.replies_dropped),
        ];
        labelled(encoder, "messages_dropped", help, "cause", &causes)
    }

    fn sockets(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let sockets = &self.sockets;
        for (name, help, value) in [
            ("amqp_connections_accepted", "AMQP connections that were accepted", sockets.accepted),
            ("amqp_connections_refused", "AMQP connections that were too many", sockets.refused),
            ("amqp_received_bytes", "Bytes that AMQP clients sent", sockets.bytes_received),
            ("amqp_sent_bytes", "Bytes that AMQP clients were sent", sockets.bytes_sent),
            ("input_pauses", "Pauses of the broker between turns", sockets.input_pauses),
        ] {
            counter(encoder, name, help, value)?;
        }
        let help = "How long publishers waited for their confirms";
        latencies(encoder, "confirm", help, &sockets.confirm_latencies)?;
        let help = "How long turns of the broker took, in which it serves nobody else";
        latencies(encoder, "turn", help, &sockets.turn_times)
    }

    fn log(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let log = &self.overview.store;
        for (name, help, value) in [
            ("log_appended_bytes", "Bytes of records encoded", log.appended_bytes),
            ("log_written_bytes", "Bytes of the log handed to the system", log.written_bytes),
            ("log_batches", "Batches written", log.batches),
            ("log_syncs", "Calls of fdatasync", log.syncs),
            ("log_segments_recycled", "Segments freed", log.segments_recycled),
            ("log_copied_bytes", "Bytes copied forward", log.copied_bytes),
            ("log_checkpoints", "Checkpoints finished", log.checkpoints),
            ("log_checkpoints_failed", "Checkpoints that the disk refused", log.checkpoints_failed),
            ("log_read_bytes", "Bytes read for consumers", log.read_bytes),
            ("log_reads_retried", "Reads that the disk refused, tried again", log.reads_retried),
            ("messages_lost", "Messages that the log did not give back", self.overview.unreadable),
        ] {
            counter(encoder, name, help, value)?;
        }
        let help = "How long batches took to be written and synced";
        latencies(encoder, "log_sync", help, &log.sync_times)?;
        bytes(encoder, "log_size", "All segments of the log", log.log_bytes)?;
        bytes(encoder, "log_pending", "Appended and not yet written", log.pending_bytes)?;
        bytes(encoder, "log_replay", "What a recovery would replay", log.replay_bytes)?;
        gauge(encoder, "log_segments", "Segments of the log", log.segments)?;
        gauge(encoder, "log_segments_spare", "Segments ready for use", log.segments_spare)
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    metric(encoder, name, help, None, &ConstGauge::new(value))
}

fn bytes(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    metric(encoder, name, help, Some(&Unit::Bytes), &ConstGauge::new(value))
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    metric(encoder, name, help, None, &ConstCounter::new(value))
}

/// Encodes a histogram in seconds, which its name then ends in.
fn latencies(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    histogram: &LatencyHistogram,
) -> fmt::Result {
    let kind = MetricType::Histogram;
    encode_latencies(encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?, histogram)
}

fn encode_latencies(mut encoder: MetricEncoder<'_>, histogram: &LatencyHistogram) -> fmt::Result {
    let seconds = |us: u64| us as f64 / 1e6;
    let buckets = histogram.buckets();
    let buckets: Vec<_> =
        buckets.map(|(bound, count)| (bound.map_or(f64::INFINITY, seconds), count)).collect();
    let (sum, count) = (seconds(histogram.sum_us()), histogram.count());
    encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

/// Encodes a counter for each value of a label.
fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in values {
        let labels = [(label, *value)];
        ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn metric(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
}

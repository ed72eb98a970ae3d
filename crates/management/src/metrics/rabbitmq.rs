//! The same totals by the names of RabbitMQ's plugin for Prometheus, where they mean the same, so that its dashboards show
//! them (its document metrics.md lists the names).

use std::fmt;
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use quelea_broker::report::Overview;
use quelea_node::NetCounters;

use super::{bytes, counter, gauge, metric};
use crate::api::overview::RABBITMQ_LEVEL;
use crate::process::{Process, disk_free_bytes};

/// Returns a registry of the totals.
pub(super) fn totals(
    overview: &Overview,
    sockets: &NetCounters,
    node: &str,
    data_dir: &Path,
) -> Registry {
    let mut registry = Registry::with_prefix("rabbitmq");
    let (overview, node) = (overview.clone(), node.to_owned());
    let disk_free_bytes = disk_free_bytes(data_dir);
    let sockets = *sockets;
    registry.register_collector(Box::new(Totals { overview, sockets, node, disk_free_bytes }));
    registry
}

#[derive(Debug)]
struct Totals {
    overview: Overview,
    /// Of AMQP.
    sockets: NetCounters,
    node: String,
    disk_free_bytes: Option<u64>,
}

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.node(&mut encoder)?;
        self.objects(&mut encoder)?;
        self.churn(&mut encoder)?;
        self.messages(&mut encoder)
    }
}

impl Totals {
    fn node(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let of = |name: &'static str, value: &str| (name, value.to_owned());
        let identity = [of("rabbitmq_node", &self.node), of("rabbitmq_cluster", &self.node)];
        let help = "Which node and cluster this is";
        metric(encoder, "identity", help, None, &Info::new(identity.to_vec()))?;
        let build = [
            of("rabbitmq_version", RABBITMQ_LEVEL),
            of("product_name", "Quelea"),
            of("product_version", env!("CARGO_PKG_VERSION")),
        ];
        let help = "What it is, and the level of RabbitMQ's API";
        metric(encoder, "build", help, None, &Info::new(build.to_vec()))?;
        let process = Process::read();
        if let Some(resident) = process.resident_bytes {
            bytes(encoder, "process_resident_memory", "Memory of the process", resident)?;
        }
        if let Some(free) = self.disk_free_bytes {
            let help = "Free space of the file system that the log is in";
            bytes(encoder, "disk_space_available", help, free)?;
        }
        let (open, open_max) = (self.sockets.connections, self.sockets.connections_max);
        gauge(encoder, "process_open_tcp_sockets", "Open sockets of AMQP", open)?;
        gauge(encoder, "process_max_tcp_sockets", "The limit of them", open_max)?;
        if let Some(files) = process.files {
            gauge(encoder, "process_open_fds", "Open file descriptors", files as u64)?;
        }
        if let Some(files_max) = process.files_max {
            gauge(encoder, "process_max_fds", "The limit of them", files_max)?;
        }
        Ok(())
    }

    fn objects(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let overview = &self.overview;
        let (ready, waiting) = (overview.messages_ready, overview.messages_unacknowledged);
        for (name, help, value) in [
            ("connections", "Open connections", overview.connections as u64),
            ("channels", "Open channels", overview.channels as u64),
            ("consumers", "Consumers", overview.consumers as u64),
            ("global_consumers", "Consumers", overview.consumers as u64),
            ("channel_consumers", "Consumers", overview.consumers as u64),
            ("queue_consumers", "Consumers", overview.consumers as u64),
            ("queues", "Queues", overview.queues as u64),
            ("queue_messages", "Ready and unacknowledged messages", ready + waiting),
            ("queue_messages_ready", "Ready messages", ready),
            ("queue_messages_unacked", "Messages delivered and not acknowledged", waiting),
        ] {
            gauge(encoder, name, help, value)?;
        }
        Ok(())
    }

    fn churn(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let churn = &self.overview.churn;
        for (name, help, value) in [
            ("connections_opened", "Connections opened", churn.connections_opened),
            ("connections_closed", "Connections closed", churn.connections_closed),
            ("channels_opened", "Channels opened", churn.channels_opened),
            ("channels_closed", "Channels closed", churn.channels_closed),
            ("queues_declared", "Declarations of queues", churn.queues_declared),
            ("queues_created", "Queues made", churn.queues_created),
            ("queues_deleted", "Queues deleted", churn.queues_deleted),
        ] {
            counter(encoder, name, help, value)?;
        }
        Ok(())
    }

    /// Encodes counts of messages, both as they were counted by channel, summed, and as later
    /// versions of RabbitMQ count them over all.
    fn messages(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let c = &self.overview.counters;
        let delivered = c.all_delivered();
        for (name, by_channel, help, value) in [
            ("received", "published", "Messages taken from publishers", c.publish),
            ("confirmed", "confirmed", "Publishes acknowledged", self.sockets.confirmed),
            ("acknowledged", "acked", "Acknowledgements", c.ack),
            ("redelivered", "redelivered", "Deliveries of messages delivered before", c.redeliver),
            (
                "unroutable_dropped",
                "unroutable_dropped",
                "Messages without a queue, that were dropped",
                c.drop_unroutable,
            ),
            (
                "unroutable_returned",
                "unroutable_returned",
                "Messages without a queue, that were returned",
                c.return_unroutable,
            ),
        ] {
            counter(encoder, &format!("global_messages_{name}"), help, value)?;
            counter(encoder, &format!("channel_messages_{by_channel}"), help, value)?;
        }
        for (name, help, value) in [
            ("queue_messages_published", "Messages put into queues", c.enqueued),
            ("global_messages_routed", "Messages put into queues", c.enqueued),
            ("global_messages_delivered", "Messages delivered or got", delivered),
            (
                "global_messages_delivered_consume_manual_ack",
                "Deliveries that await an acknowledgement",
                c.deliver,
            ),
            ("channel_messages_delivered_ack", "Deliveries that await one", c.deliver),
            (
                "global_messages_delivered_consume_auto_ack",
                "Deliveries that await none",
                c.deliver_no_ack,
            ),
            ("channel_messages_delivered", "Deliveries that await none", c.deliver_no_ack),
            ("global_messages_delivered_get_manual_ack", "Messages got, to acknowledge", c.get),
            ("channel_get_ack", "Messages got, to acknowledge", c.get),
            ("global_messages_delivered_get_auto_ack", "Messages got for good", c.get_no_ack),
            ("channel_get", "Messages got for good", c.get_no_ack),
            ("global_messages_get_empty", "Gets of an empty queue", c.get_empty),
            ("channel_get_empty", "Gets of an empty queue", c.get_empty),
        ] {
            counter(encoder, name, help, value)?;
        }
        Ok(())
    }
}

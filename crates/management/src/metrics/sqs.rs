//! The SQS front's counters.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use quelea_sqs_protocol::Action;

use super::{counter, encode_latencies, gauge, latencies};
use quelea_sqs_server::{Outcome, SqsCounters};

/// What was counted so far.
#[derive(Debug)]
pub(super) struct SqsSnapshot(pub(super) Arc<SqsCounters>);

impl Collector for SqsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(counters) = self;
        self.requests(&mut encoder)?;
        self.request_times(&mut encoder)?;
        let help = "How long SQS requests took that wait for no messages, all operations together";
        latencies(&mut encoder, "sqs_response", help, &counters.response_times())?;
        gauge(&mut encoder, "sqs_connections", "Open SQS connections", counters.connections())?;
        for (name, help, value) in [
            (
                "sqs_connections_refused",
                "SQS connections closed at once, since there were too many",
                counters.connections_refused(),
            ),
            (
                "sqs_signatures_refused",
                "SQS requests whose signature was missing or wrong",
                counters.signatures_refused(),
            ),
            (
                "sqs_slow_clients_closed",
                "SQS connections closed because the client took too long",
                counters.slow_clients_closed(),
            ),
        ] {
            counter(&mut encoder, name, help, value)?;
        }
        Ok(())
    }
}

impl SqsSnapshot {
    /// Encodes the requests of all operations, also of those that nobody asked for: a rate needs
    /// the zero before the first.
    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "SQS requests, by operation and by how they ended";
        let mut family =
            encoder.encode_descriptor("sqs_requests", help, None, MetricType::Counter)?;
        let actions = Action::ALL.iter().copied().map(Some).chain([None]);
        for action in actions {
            for outcome in Outcome::ALL {
                let name = action.map_or("unknown", Action::name);
                let labels = [("action", name), ("outcome", outcome.name())];
                let value = self.0.requests(action, outcome);
                ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Encodes the times of the operations that were asked for: each is nineteen lines.
    fn request_times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How long SQS requests took from the end of their body to their answer, long polls included";
        let (unit, kind) = (Some(&Unit::Seconds), MetricType::Histogram);
        let mut family = encoder.encode_descriptor("sqs_request", help, unit, kind)?;
        for action in Action::ALL {
            let times = self.0.request_times(*action);
            if times.count() > 0 {
                let labels = [("action", action.name())];
                encode_latencies(family.encode_family(&labels)?, &times)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn every_counter_is_shown_also_while_it_is_zero() {
        let mut registry = Registry::with_prefix("quelea");
        registry.register_collector(Box::new(SqsSnapshot(Arc::default())));
        let mut shown = String::new();
        text::encode(&mut shown, &registry).unwrap();
        for line in [
            "quelea_sqs_requests_total{action=\"SendMessage\",outcome=\"done\"} 0",
            "quelea_sqs_requests_total{action=\"unknown\",outcome=\"refused\"} 0",
            "quelea_sqs_response_seconds_count 0",
            "quelea_sqs_connections 0",
            "quelea_sqs_connections_refused_total 0",
            "quelea_sqs_signatures_refused_total 0",
            "quelea_sqs_slow_clients_closed_total 0",
        ] {
            assert!(shown.lines().any(|other| other == line), "{line}: {shown}");
        }
        let requests = shown.lines().filter(|line| line.starts_with("quelea_sqs_requests_total"));
        assert_eq!(requests.count(), (Action::ALL.len() + 1) * Outcome::ALL.len());
    }
}

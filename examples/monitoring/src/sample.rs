//! What goes through the queues: samples and alerts, as JSON, and the topics that they go by.

use serde::{Deserialize, Serialize};

/// One measurement of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) metric: String,
    /// Hosts of one group are looked at together.
    pub(crate) group: String,
    pub(crate) host: String,
    /// CPU and memory: the part that is used, 0 to 1. Network: bytes a second.
    pub(crate) value: f64,
    /// The host's time of day.
    pub(crate) unix_ms: u64,
}

/// A threshold that enough hosts of a group crossed within a short time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alert {
    pub(crate) metric: String,
    pub(crate) group: String,
    pub(crate) threshold: f64,
    /// The samples with which they crossed it, oldest first.
    pub(crate) crossings: Vec<Sample>,
}

impl Sample {
    /// Returns the topic `METRIC.GROUP.HOST`: an aggregator of a metric, or of a group's metric,
    /// takes a prefix of it. So all that one rule has to see comes to the same aggregator.
    pub(crate) fn topic(&self) -> String {
        format!("{}.{}.{}", self.metric, self.group, self.host)
    }
}

impl Alert {
    pub(crate) fn topic(&self) -> String {
        format!("{}.{}", self.metric, self.group)
    }

    /// Returns a key that is the same for one event, whichever aggregator found it.
    pub(crate) fn key(&self) -> String {
        let crossings = self.crossings.iter().map(|it| format!("{}@{}", it.host, it.unix_ms));
        format!("{}:{}", self.topic(), crossings.collect::<Vec<_>>().join(","))
    }
}

/// Returns the time now, as samples have it.
pub(crate) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

//! What front-ends count of their requests to Cassandra, read from their management API.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::Agent;

use crate::bdqs::error::BdqsError;
use crate::bdqs::site::FrontEnd;

const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// The administrator that the first front-end of a keyspace makes.
const USER: &str = "guest:guest";
/// A counter for each purpose.
const REQUESTS: &str = "quelea_cassandra_requests_total";

/// Requests to Cassandra so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Requests {
    /// Those that carry messages.
    pub messages: f64,
    /// Those that find out where messages are: buckets, marks, counts, clocks.
    pub upkeep: f64,
    /// Heartbeats, sweeps, and what else there may be.
    pub apart: f64,
}

impl Requests {
    /// Reads the counts of all these front-ends, and returns their sum.
    pub(crate) fn of(front_ends: &[FrontEnd]) -> Result<Self, BdqsError> {
        front_ends.iter().try_fold(Self::default(), |sum, front_end| {
            let address = front_end.http();
            let unreadable =
                |reason: String| BdqsError::Metrics { address: address.to_owned(), reason };
            let text = page(address).map_err(|error| unreadable(error.to_string()))?;
            let one =
                Self::parse(&text).ok_or_else(|| unreadable(format!("there is no {REQUESTS}")))?;
            Ok(Self {
                messages: sum.messages + one.messages,
                upkeep: sum.upkeep + one.upkeep,
                apart: sum.apart + one.apart,
            })
        })
    }

    /// Parses OpenMetrics text. Returns `None` if it has no such counter.
    fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(REQUESTS));
        let mut found = None;
        for line in lines {
            let (labels, value) = line.rsplit_once(' ')?;
            let value: f64 = value.parse().ok()?;
            let sum: &mut Self = found.get_or_insert_default();
            match labels {
                r#"{for="messages"}"# => sum.messages += value,
                r#"{for="upkeep"}"# => sum.upkeep += value,
                _ => sum.apart += value,
            }
        }
        found
    }

    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            upkeep: self.upkeep - before.upkeep,
            apart: self.apart - before.apart,
        }
    }
}

fn page(address: &str) -> Result<String, ureq::Error> {
    let config = Agent::config_builder().timeout_global(Some(PATIENCE)).proxy(None).build();
    let request = Agent::new_with_config(config)
        .get(format!("http://{address}/metrics"))
        .header("authorization", format!("Basic {}", STANDARD.encode(USER)));
    request.call()?.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_by_their_purpose() {
        let text = "# HELP quelea_cassandra_requests Requests\n\
            quelea_cassandra_requests_total{for=\"messages\"} 12\n\
            quelea_cassandra_requests_total{for=\"upkeep\"} 3\n\
            quelea_cassandra_requests_total{for=\"peers\"} 4\n\
            quelea_cassandra_requests_total{for=\"sweep\"} 5\n\
            quelea_sqs_connections 1\n";
        let found = Requests::parse(text).unwrap();
        assert_eq!(found, Requests { messages: 12.0, upkeep: 3.0, apart: 9.0 });
        let since = found.since(Requests { messages: 2.0, upkeep: 1.0, apart: 9.0 });
        assert_eq!(since, Requests { messages: 10.0, upkeep: 2.0, apart: 0.0 });
        assert_eq!(Requests::parse("quelea_sqs_connections 1\n"), None);
    }
}

//! Whether the service is there at all. Each call is tried for ten seconds, and there may be a million of them: without this a run against a
//! service that has died would take days.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use quelea_sqs_client::Endpoint;

use crate::error::BenchError;

/// How long nobody listens until the service is gone: longer than those take to start again that are killed on purpose.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// How often that is looked at.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Looks whether somebody listens at an endpoint.
pub(crate) struct Lifeline {
    endpoints: Vec<Endpoint>,
    gone_after: Duration,
    probe_interval: Duration,
    alive_at: Instant,
    probed_at: Instant,
}

impl Lifeline {
    /// Returns the lifeline of a service that is there now.
    pub(crate) fn new(endpoints: Vec<Endpoint>) -> Self {
        let now = Instant::now();
        Self {
            endpoints,
            gone_after: GONE_AFTER,
            probe_interval: PROBE_INTERVAL,
            alive_at: now,
            probed_at: now,
        }
    }

    /// Looks once in a while.
    ///
    /// # Errors
    /// [`BenchError::Gone`] if nobody has listened at any endpoint for a minute.
    pub(crate) fn check(&mut self) -> Result<(), BenchError> {
        if self.probed_at.elapsed() < self.probe_interval {
            return Ok(());
        }
        self.probed_at = Instant::now();
        if self.endpoints.iter().any(is_there) {
            self.alive_at = self.probed_at;
            return Ok(());
        }
        if self.alive_at.elapsed() < self.gone_after {
            return Ok(());
        }
        let endpoints: Vec<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        Err(BenchError::Gone {
            endpoints: endpoints.join(", "),
            seconds: self.gone_after.as_secs(),
        })
    }
}

/// Returns whether a service is there. One that is too busy to answer is there.
fn is_there(endpoint: &Endpoint) -> bool {
    let Ok(mut addresses) = (endpoint.host.as_str(), endpoint.port).to_socket_addrs() else {
        return true;
    };
    addresses.any(|address| match TcpStream::connect_timeout(&address, PROBE_INTERVAL) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::ConnectionRefused,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_service_is_gone_when_nobody_listens_for_so_long() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let at_once = |gone_after| Lifeline {
            gone_after,
            probe_interval: Duration::ZERO,
            ..Lifeline::new(vec![endpoint.parse().unwrap()])
        };
        assert!(at_once(Duration::ZERO).check().is_ok());
        drop(listener);
        assert!(at_once(GONE_AFTER).check().is_ok(), "it may come back");
        let gone = at_once(Duration::ZERO).check().unwrap_err().to_string();
        assert_eq!(gone, format!("nobody has listened at {endpoint} for 0 s"));
    }
}

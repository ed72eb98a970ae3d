//! What the SQS front counts, for `/metrics`. Its threads share the counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quelea_model::{LatencyHistogram, SharedLatencyHistogram};
use quelea_sqs_protocol::{Action, ErrorKind, Request};

/// Counters of a front; they start at nothing and are never reset.
#[derive(Debug, Default)]
pub struct SqsCounters {
    /// By operation, in the order of [`Action::ALL`], and by outcome.
    requests: [[AtomicU64; OUTCOMES]; Action::ALL.len()],
    /// Requests that were refused before it was known what they ask for.
    unread: [AtomicU64; OUTCOMES],
    /// In the order of [`Action::ALL`].
    request_times: [SharedLatencyHistogram; Action::ALL.len()],
    response_times: SharedLatencyHistogram,
    connections: AtomicU64,
    connections_refused: AtomicU64,
    signatures_refused: AtomicU64,
    slow_clients_closed: AtomicU64,
}

const OUTCOMES: usize = 3;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedRequest {
    pub(crate) action: Action,
    /// Its time says how long there was nothing to answer, and not how busy the server is.
    pub(crate) may_wait: bool,
}

impl From<&Request> for CountedRequest {
    fn from(request: &Request) -> Self {
        Self { action: request.action(), may_wait: request.may_wait() }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done. A batch is, even if some of its entries failed.
    Done,
    /// The client's fault.
    Refused,
    /// The service's fault.
    Failed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; OUTCOMES] = [Self::Done, Self::Refused, Self::Failed];

    /// Returns the name that metrics use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl From<Option<ErrorKind>> for Outcome {
    fn from(error: Option<ErrorKind>) -> Self {
        match error {
            None => Self::Done,
            Some(kind) if kind.status() < 500 => Self::Refused,
            Some(_) => Self::Failed,
        }
    }
}

impl SqsCounters {
    /// Returns how many requests for an operation (`None`: it was not known which) ended so.
    #[must_use]
    pub fn requests(&self, action: Option<Action>, outcome: Outcome) -> u64 {
        self.of(action)[outcome as usize].load(Ordering::Relaxed)
    }

    /// Returns how long the requests for an operation took, from when their body was read until
    /// their answer was there.
    #[must_use]
    pub fn request_times(&self, action: Action) -> LatencyHistogram {
        self.request_times[action as usize].snapshot()
    }

    /// Returns how long requests for all operations together took, without receives that may wait
    /// for messages.
    #[must_use]
    pub fn response_times(&self) -> LatencyHistogram {
        self.response_times.snapshot()
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of connections closed at once, since there were too many.
    #[must_use]
    pub fn connections_refused(&self) -> u64 {
        self.connections_refused.load(Ordering::Relaxed)
    }

    /// Returns the number of requests whose signature was missing or wrong.
    #[must_use]
    pub fn signatures_refused(&self) -> u64 {
        self.signatures_refused.load(Ordering::Relaxed)
    }

    /// Returns the number of connections closed because the client took too long.
    #[must_use]
    pub fn slow_clients_closed(&self) -> u64 {
        self.slow_clients_closed.load(Ordering::Relaxed)
    }

    fn of(&self, action: Option<Action>) -> &[AtomicU64; OUTCOMES] {
        action.map_or(&self.unread, |action| &self.requests[action as usize])
    }

    pub(crate) fn count_request(
        &self,
        asked: Option<CountedRequest>,
        error: Option<ErrorKind>,
        time: Duration,
    ) {
        add(&self.of(asked.map(|asked| asked.action))[Outcome::from(error) as usize]);
        if let Some(CountedRequest { action, may_wait }) = asked {
            let time_us = time.as_micros() as u64;
            self.request_times[action as usize].record(time_us);
            if !may_wait {
                self.response_times.record(time_us);
            }
        }
    }

    /// Takes a place for a connection, unless `max` are taken.
    pub(crate) fn open_connection(&self, max: usize) -> bool {
        if self.connections.fetch_add(1, Ordering::Relaxed) < max as u64 {
            return true;
        }
        self.close_connection();
        add(&self.connections_refused);
        false
    }

    pub(crate) fn close_connection(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused_signature(&self) {
        add(&self.signatures_refused);
    }

    pub(crate) fn count_slow_client(&self) {
        add(&self.slow_clients_closed);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_counters_of_its_own() {
        const TIME: Duration = Duration::from_micros(300);
        let counters = SqsCounters::default();
        let asked = |action| Some(CountedRequest { action, may_wait: false });
        for (times, action) in Action::ALL.iter().enumerate() {
            (0..=times).for_each(|_| counters.count_request(asked(*action), None, TIME));
        }
        counters.count_request(None, Some(ErrorKind::InvalidAction), TIME);
        counters.count_request(
            asked(Action::SendMessage),
            Some(ErrorKind::ServiceUnavailable),
            TIME,
        );
        for (times, action) in Action::ALL.iter().enumerate() {
            assert_eq!(counters.requests(Some(*action), Outcome::Done), times as u64 + 1);
            assert_eq!(counters.requests(Some(*action), Outcome::Refused), 0);
        }
        assert_eq!(counters.requests(None, Outcome::Refused), 1);
        assert_eq!(counters.requests(Some(Action::SendMessage), Outcome::Failed), 1);
    }

    #[test]
    fn no_more_connections_open_than_may_be() {
        let counters = SqsCounters::default();
        let taken: Vec<_> = (0..4).map(|_| counters.open_connection(2)).collect();
        assert_eq!(taken, [true, true, false, false]);
        counters.close_connection();
        assert_eq!((counters.connections(), counters.connections_refused()), (1, 2));
        assert!(counters.open_connection(2));
    }
}

//! Notices for the operators' log about listeners that do not keep up: that messages were dropped for one, and that one was
//! disconnected, each at most once a minute for each listener, however often it connects again.

use std::collections::{BTreeSet, VecDeque};

use quelea_elastic_proto::{ClientId, Named as _, Time};

use crate::relay::Relay;
use crate::relay::limits::{SLOW_NOTICE_MS, SLOW_NOTICES_MAX};

/// A listener did not keep up, and lost something by its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowNotice {
    /// Who.
    pub listener: ClientId,
    /// As it called itself; empty if it did not.
    pub name: String,
    /// What became of it, with figures.
    pub text: String,
}

/// What became of a listener that did not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Dropped,
    Disconnected,
}

/// What was reported in the last minute. It is no part of a connection: a slow listener loses that, and comes back.
#[derive(Debug, Default)]
struct Reported {
    of: BTreeSet<(ClientId, Outcome)>,
    in_order: VecDeque<(Time, ClientId, Outcome)>,
}

/// Notices for the log, and those of which the log knows.
#[derive(Debug, Default)]
pub(crate) struct SlowNotices {
    reported: Reported,
    waiting: VecDeque<SlowNotice>,
}

impl Relay {
    /// Returns the next listener that operators should know of. The driver logs it.
    pub fn poll_slow_notice(&mut self) -> Option<SlowNotice> {
        self.slow_notices.waiting.pop_front()
    }

    /// Messages were dropped for a listener.
    pub(crate) fn notice_drop(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let Some(listener) = &client.listener else { return };
        if !self.slow_notices.reported.is_due(listener.id, Outcome::Dropped, self.now) {
            return;
        }
        let text = format!(
            "{} messages were dropped for it since it came (policy {}): {} bytes wait, {} is the limit",
            listener.dropped,
            listener.slow.as_str(),
            client.ring.bytes(),
            self.ring_bytes_max
        );
        let (listener, name) = (listener.id, client.name.to_string());
        self.slow_notices.waiting.push_back(SlowNotice { listener, name, text });
    }

    /// A listener was disconnected.
    pub(crate) fn notice_disconnection(&mut self, index: u32, text: &str) {
        let client = &self.clients[index as usize];
        let Some(listener) = client.listener.as_ref().map(|listener| listener.id) else { return };
        if !self.slow_notices.reported.is_due(listener, Outcome::Disconnected, self.now) {
            return;
        }
        let (name, text) = (client.name.to_string(), format!("disconnected: {text}"));
        self.slow_notices.waiting.push_back(SlowNotice { listener, name, text });
    }
}

impl Reported {
    /// Returns whether this is to be reported; it counts as reported then.
    fn is_due(&mut self, listener: ClientId, outcome: Outcome, now: Time) -> bool {
        while let Some((at, ..)) = self.in_order.front()
            && now.since_ms(*at) >= SLOW_NOTICE_MS
        {
            self.forget_oldest();
        }
        if !self.of.insert((listener, outcome)) {
            return false;
        }
        if self.in_order.len() >= SLOW_NOTICES_MAX {
            self.forget_oldest();
        }
        self.in_order.push_back((now, listener, outcome));
        true
    }

    fn forget_oldest(&mut self) {
        if let Some((_, listener, outcome)) = self.in_order.pop_front() {
            self.of.remove(&(listener, outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_report_is_forgotten_beyond_the_limit() {
        let (mut reported, now) = (Reported::default(), Time::from_micros(0));
        let mut is_due = |id: usize| reported.is_due(ClientId(id as u128), Outcome::Dropped, now);
        assert!((0..SLOW_NOTICES_MAX).all(&mut is_due));
        assert!(!is_due(0));
        assert!(is_due(SLOW_NOTICES_MAX), "there is room for one that is new");
        assert!(is_due(0), "it was the oldest");
        assert!(!is_due(2), "it was not");
        assert_eq!(reported.of.len(), SLOW_NOTICES_MAX);
    }
}

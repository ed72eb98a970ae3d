//! The last two samples of what there may be very many of and nobody draws: rates alone come of them. What passed through
//! queues and virtual hosts goes back further, in [`History`](crate::history::History).

use std::collections::HashMap;
use std::hash::Hash;

use quelea_broker::report::{ChurnCounters, ExchangeCounters, MessageCounters};
use quelea_broker::{ChannelId, ConnectionId, ExchangeId};
use quelea_node::Traffic;

/// A counter's name and where it stands.
pub(crate) type Field<C> = (&'static str, fn(&C) -> u64);

/// RabbitMQ's names for what passed through an exchange.
pub(crate) const EXCHANGE_STATS: [Field<ExchangeCounters>; 2] =
    [("publish_in", |c| c.publish_in), ("publish_out", |c| c.publish_out)];

/// RabbitMQ's names for what came and went.
pub(crate) const CHURN_RATES: [Field<ChurnCounters>; 7] = [
    ("connection_created", |c| c.connections_opened),
    ("connection_closed", |c| c.connections_closed),
    ("channel_created", |c| c.channels_opened),
    ("channel_closed", |c| c.channels_closed),
    ("queue_declared", |c| c.queues_declared),
    ("queue_created", |c| c.queues_created),
    ("queue_deleted", |c| c.queues_deleted),
];

/// RabbitMQ's name for the publishes that clients know to be accepted.
pub(crate) const CONFIRM_STATS: [Field<u64>; 1] = [("confirm", |confirmed| *confirmed)];

/// RabbitMQ's names for the bytes that went through a connection's socket.
pub(crate) const TRAFFIC_STATS: [Field<Traffic>; 2] =
    [("recv_oct", |t| t.bytes_received), ("send_oct", |t| t.bytes_sent)];

/// What passed through a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelCounters {
    pub(crate) messages: MessageCounters,
    /// Publishes that its client knows to be accepted.
    pub(crate) confirmed: u64,
}

/// RabbitMQ's names for it.
pub(crate) const CHANNEL_STATS: [Field<ChannelCounters>; 12] = [
    ("publish", |c| c.messages.publish),
    ("confirm", |c| c.confirmed),
    ("drop_unroutable", |c| c.messages.drop_unroutable),
    ("return_unroutable", |c| c.messages.return_unroutable),
    ("deliver", |c| c.messages.deliver),
    ("deliver_no_ack", |c| c.messages.deliver_no_ack),
    ("get", |c| c.messages.get),
    ("get_no_ack", |c| c.messages.get_no_ack),
    ("get_empty", |c| c.messages.get_empty),
    ("deliver_get", |c| c.messages.all_delivered()),
    ("redeliver", |c| c.messages.redeliver),
    ("ack", |c| c.messages.ack),
];

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    pub(crate) churn: LastTwo<(), { CHURN_RATES.len() }>,
    pub(crate) confirms: LastTwo<(), { CONFIRM_STATS.len() }>,
    pub(crate) exchanges: LastTwo<ExchangeId, { EXCHANGE_STATS.len() }>,
    pub(crate) connections: LastTwo<ConnectionId, { TRAFFIC_STATS.len() }>,
    pub(crate) channels: LastTwo<ChannelId, { CHANNEL_STATS.len() }>,
}

/// The last two samples of the counters of objects of one kind. All counters of an object begin at 0.
#[derive(Debug)]
pub(crate) struct LastTwo<K, const N: usize> {
    /// When they were taken, in ms since 1970; 0 is never.
    times_ms: (u64, u64),
    objects: HashMap<K, Sampled<N>>,
    /// Whether the last sample had all that were not at 0.
    had_all: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sampled<const N: usize> {
    before: [u64; N],
    last: [u64; N],
    at_ms: u64,
}

impl<K, const N: usize> Default for LastTwo<K, N> {
    fn default() -> Self {
        Self { times_ms: (0, 0), objects: HashMap::new(), had_all: true }
    }
}

impl<K: Eq + Hash, const N: usize> LastTwo<K, N> {
    /// Takes the samples of a moment. `are_all`: whether an object that is not among them is gone, or has counted nothing.
    pub(crate) fn record(
        &mut self,
        at_ms: u64,
        are_all: bool,
        samples: impl Iterator<Item = (K, [u64; N])>,
    ) {
        self.times_ms = (self.times_ms.1, at_ms);
        for (key, last) in samples {
            // One that was left out has counted before, nobody knows how much.
            let unknown = if self.had_all { [0; N] } else { last };
            let sampled = self.objects.entry(key).or_insert(Sampled {
                before: unknown,
                last: unknown,
                at_ms,
            });
            *sampled = Sampled { before: sampled.last, last, at_ms };
        }
        self.objects.retain(|_, sampled| sampled.at_ms == at_ms);
        self.had_all = are_all;
    }

    /// Returns by how much each counter of an object grew a second between the last two samples.
    /// `None`: it was left out, as one too many.
    pub(crate) fn rates(&self, key: &K) -> Option<[f64; N]> {
        let Some(sampled) = self.objects.get(key) else {
            return self.had_all.then_some([0.0; N]);
        };
        let (before_ms, last_ms) = self.times_ms;
        let passed_ms = last_ms.saturating_sub(before_ms);
        if before_ms == 0 || passed_ms == 0 {
            return Some([0.0; N]);
        }
        let grown = |place: usize| sampled.last[place].saturating_sub(sampled.before[place]);
        Some(std::array::from_fn(|place| grown(place) as f64 * 1_000.0 / passed_ms as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it was taken, whether it had all, and what was counted.
    type Sample<'a> = (u64, bool, &'a [(&'static str, u64)]);

    fn recorded(samples: &[Sample<'_>]) -> LastTwo<&'static str, 1> {
        let mut kept = LastTwo::default();
        for (at_ms, are_all, counted) in samples {
            kept.record(*at_ms, *are_all, counted.iter().map(|(key, count)| (*key, [*count])));
        }
        kept
    }

    #[test]
    fn a_rate_is_the_growth_between_the_last_two_samples() {
        let kept = recorded(&[(5_000, true, &[("a", 10)])]);
        assert_eq!(kept.rates(&"a"), Some([0.0]));
        let kept = recorded(&[(5_000, true, &[("a", 10)]), (10_000, true, &[("a", 35)])]);
        assert_eq!(kept.rates(&"a"), Some([5.0]));
        let kept = recorded(&[
            (5_000, true, &[("a", 10)]),
            (10_000, true, &[("a", 35)]),
            (15_000, true, &[("a", 35)]),
        ]);
        assert_eq!(kept.rates(&"a"), Some([0.0]));
    }

    #[test]
    fn what_was_not_there_before_has_counted_from_0() {
        let kept = recorded(&[(5_000, true, &[]), (10_000, true, &[("a", 35)])]);
        assert_eq!((kept.rates(&"a"), kept.rates(&"other")), (Some([7.0]), Some([0.0])));
    }

    #[test]
    fn what_is_left_out_has_no_rate_and_no_peak_later() {
        let full = recorded(&[(5_000, false, &[("a", 10)]), (10_000, false, &[("a", 10)])]);
        assert_eq!((full.rates(&"a"), full.rates(&"left out")), (Some([0.0]), None));
        let later = recorded(&[(5_000, false, &[]), (10_000, true, &[("a", 1_000)])]);
        assert_eq!(later.rates(&"a"), Some([0.0]));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let kept = recorded(&[(5_000, true, &[("a", 10)]), (10_000, true, &[])]);
        assert!(kept.objects.is_empty());
    }
}

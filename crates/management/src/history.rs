//! What was counted in the last hour, in memory, for rates and for charts: a sample of each counter every few seconds, as
//! RabbitMQ takes them. A sample that is like the last is not kept.

use std::collections::{HashMap, VecDeque};

use quelea_broker::report::MessageCounters;

/// How far back the totals go: an hour, with a sample every five seconds.
const TOTALS_SAMPLES_MAX: usize = 721;

/// How far back a queue or a virtual host goes at most: ten minutes.
const OBJECT_SAMPLES_MAX: usize = 121;

/// Samples of all queues and virtual hosts together, some 30 MB: with more than 1,600 of them they go back less far.
const OBJECTS_SAMPLES_MAX: usize = 200_000;

/// A counter's name and where it stands.
type Field = (&'static str, fn(&MessageCounters) -> u64);

/// RabbitMQ's names for what passed.
pub(crate) const MESSAGE_STATS: [Field; 13] = [
    ("publish", |c| c.publish),
    ("drop_unroutable", |c| c.drop_unroutable),
    ("return_unroutable", |c| c.return_unroutable),
    ("deliver", |c| c.deliver),
    ("deliver_no_ack", |c| c.deliver_no_ack),
    ("get", |c| c.get),
    ("get_no_ack", |c| c.get_no_ack),
    ("get_empty", |c| c.get_empty),
    ("deliver_get", |c| c.deliver + c.deliver_no_ack + c.get + c.get_no_ack),
    ("redeliver", |c| c.redeliver),
    ("ack", |c| c.ack),
    ("expired", |c| c.expired),
    ("dead_lettered", |c| c.dead_lettered),
];

/// And for what waits.
pub(crate) const LENGTHS: [&str; 3] = ["messages", "messages_ready", "messages_unacknowledged"];

/// Whose samples they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Vhost(String),
    Queue(String, String),
}

/// What was seen of a subject at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// In the order of [`LENGTHS`].
    pub(crate) lengths: [u64; LENGTHS.len()],
    /// In the order of [`MESSAGE_STATS`].
    pub(crate) stats: [u64; MESSAGE_STATS.len()],
}

impl Counts {
    pub(crate) fn new(ready: u64, waiting: u64, counters: &MessageCounters) -> Self {
        Self {
            lengths: [ready + waiting, ready, waiting],
            stats: MESSAGE_STATS.map(|(_, of)| of(counters)),
        }
    }
}

/// The samples of one subject, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    samples: VecDeque<(u64, Counts)>,
}

impl Series {
    fn push(&mut self, at_ms: u64, counts: Counts, samples_max: usize) {
        if self.samples.back().is_some_and(|(_, last)| *last == counts) {
            return;
        }
        self.samples.push_back((at_ms, counts));
        while self.samples.len() > samples_max {
            self.samples.pop_front();
        }
    }

    /// What it was at a time; `None` before its first sample.
    pub(crate) fn at(&self, at_ms: u64) -> Option<&Counts> {
        let later = self.samples.partition_point(|(sampled_ms, _)| *sampled_ms <= at_ms);
        self.samples.get(later.checked_sub(1)?).map(|(_, counts)| counts)
    }
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// When the last two samples were taken, in ms since 1970; 0 is never.
    times_ms: (u64, u64),
    totals: Series,
    objects: HashMap<Subject, Series>,
}

impl History {
    /// Takes the samples of a moment. What is not among the objects is gone, and forgotten.
    pub(crate) fn record(
        &mut self,
        at_ms: u64,
        totals: Counts,
        objects: impl ExactSizeIterator<Item = (Subject, Counts)>,
    ) {
        self.times_ms = (self.times_ms.1, at_ms);
        self.totals.push(at_ms, totals, TOTALS_SAMPLES_MAX);
        let samples_max = (OBJECTS_SAMPLES_MAX / objects.len().max(1)).clamp(2, OBJECT_SAMPLES_MAX);
        let mut before = std::mem::take(&mut self.objects);
        self.objects = objects
            .map(|(subject, counts)| {
                let mut series = before.remove(&subject).unwrap_or_default();
                series.push(at_ms, counts, samples_max);
                (subject, series)
            })
            .collect();
    }

    /// When the last sample was taken and the one before it.
    pub(crate) const fn last_two_ms(&self) -> Option<(u64, u64)> {
        match self.times_ms {
            (0, _) | (_, 0) => None,
            (before, last) => Some((before, last)),
        }
    }

    pub(crate) const fn totals(&self) -> &Series {
        &self.totals
    }

    pub(crate) fn of(&self, subject: &Subject) -> Option<&Series> {
        self.objects.get(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(publish: u64) -> Counts {
        Counts::new(publish, 0, &MessageCounters { publish, ..MessageCounters::default() })
    }

    fn queue(name: &str) -> Subject {
        Subject::Queue("/".to_owned(), name.to_owned())
    }

    #[test]
    fn a_sample_holds_until_the_next_and_likes_are_not_kept() {
        let mut history = History::default();
        for (at_ms, publish) in [(5_000, 1), (10_000, 1), (15_000, 4)] {
            history.record(at_ms, counts(publish), [(queue("q"), counts(publish))].into_iter());
        }
        let series = history.of(&queue("q")).unwrap();
        assert_eq!(series.samples.len(), 2);
        assert_eq!(series.at(4_999), None);
        for (at_ms, publish) in [(5_000, 1), (14_999, 1), (15_000, 4), (99_000, 4)] {
            assert_eq!(series.at(at_ms), Some(&counts(publish)), "{at_ms}");
        }
        assert_eq!(history.last_two_ms(), Some((10_000, 15_000)));
    }

    #[test]
    fn what_is_gone_is_forgotten_and_one_of_the_same_name_begins_anew() {
        let mut history = History::default();
        history.record(5_000, counts(9), [(queue("q"), counts(9))].into_iter());
        history.record(10_000, counts(9), std::iter::empty());
        assert!(history.of(&queue("q")).is_none());
        history.record(15_000, counts(9), [(queue("q"), counts(0))].into_iter());
        assert_eq!(history.of(&queue("q")).unwrap().at(10_000), None);
    }

    #[test]
    fn memory_is_bounded_however_many_there_are_and_however_long_they_run() {
        let mut history = History::default();
        for tick in 1..2_000 {
            let objects: Vec<_> = (0..3).map(|q| (queue(&q.to_string()), counts(tick))).collect();
            history.record(tick * 5_000, counts(tick), objects.into_iter());
        }
        assert_eq!(history.totals.samples.len(), TOTALS_SAMPLES_MAX);
        assert_eq!(history.of(&queue("0")).unwrap().samples.len(), OBJECT_SAMPLES_MAX);
        for tick in 2_000..2_010 {
            let objects: Vec<_> =
                (0..20_000).map(|q| (queue(&q.to_string()), counts(tick))).collect();
            history.record(tick * 5_000, counts(tick), objects.into_iter());
        }
        let samples: usize = history.objects.values().map(|series| series.samples.len()).sum();
        assert!(samples <= OBJECTS_SAMPLES_MAX, "{samples}");
    }
}

//! What was counted in the last hour, in memory, for rates and for charts: a sample of each counter every few seconds, as
//! RabbitMQ takes them. A sample that is like the last is not kept, and of what is older than the latest ones, one a minute.

use std::collections::{HashMap, VecDeque};

use quelea_broker::VhostId;
use quelea_broker::report::MessageCounters;
use quelea_model::QueueId;

/// How far back the totals go: an hour, with a sample every five seconds.
const TOTALS_SAMPLES_MAX: usize = 721;

/// The latest samples of a queue or a virtual host: ten minutes of them at most.
const LATEST_SAMPLES_MAX: usize = 121;

/// How far apart older samples of a queue or a virtual host are.
const OLDER_EVERY_MS: u64 = 60_000;

/// What is older, for an hour in all.
const OLDER_SAMPLES_MAX: usize = 51;

/// Samples of all queues and virtual hosts together, some 30 MB: with more than 1,160 of them they go back less far.
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
    ("deliver_get", MessageCounters::all_delivered),
    ("redeliver", |c| c.redeliver),
    ("ack", |c| c.ack),
    ("expired", |c| c.expired),
    ("dead_lettered", |c| c.dead_lettered),
];

/// And for what waits.
pub(crate) const LENGTHS: [&str; 3] = ["messages", "messages_ready", "messages_unacknowledged"];

/// Whose samples they are. One that is made anew under an old name is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Vhost(VhostId),
    Queue(QueueId),
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

    /// Returns the sums of both.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.lengths.iter_mut().zip(other.lengths).for_each(|(sum, other)| *sum += other);
        sum.stats.iter_mut().zip(other.stats).for_each(|(sum, other)| *sum += other);
        sum
    }

    /// Returns the counts that lie `part` of `whole` of the way to others.
    fn towards(&self, others: &Self, part: u64, whole: u64) -> Self {
        let between = |from: u64, to: u64| {
            let step = u128::from(from.abs_diff(to)) * u128::from(part) / u128::from(whole);
            let step = u64::try_from(step).unwrap_or(u64::MAX);
            if to < from { from - step } else { from + step }
        };
        let all = |from: &[u64], to: &[u64], into: &mut [u64]| {
            for ((from, to), into) in from.iter().zip(to).zip(into) {
                *into = between(*from, *to);
            }
        };
        let mut result = Self::default();
        all(&self.lengths, &others.lengths, &mut result.lengths);
        all(&self.stats, &others.stats, &mut result.stats);
        result
    }
}

/// How many samples of a subject are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    latest: usize,
    older: usize,
}

impl Room {
    /// Of the totals: all of an hour as they were taken.
    const TOTALS: Self = Self { latest: TOTALS_SAMPLES_MAX, older: 0 };

    /// Returns the room of each of so many objects. Rates need two samples at least.
    fn of_each(objects: usize) -> Self {
        let share = OBJECTS_SAMPLES_MAX / objects.max(1);
        let latest = (share * 7 / 10).clamp(2, LATEST_SAMPLES_MAX);
        Self { latest, older: share.saturating_sub(latest).min(OLDER_SAMPLES_MAX) }
    }
}

/// The samples of one subject, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// At least [`OLDER_EVERY_MS`] apart.
    older: VecDeque<(u64, Counts)>,
    latest: VecDeque<(u64, Counts)>,
}

impl Series {
    fn push(&mut self, at_ms: u64, counts: Counts, room: Room) {
        if self.latest.back().is_some_and(|(_, last)| *last == counts) {
            return;
        }
        self.latest.push_back((at_ms, counts));
        while self.latest.len() > room.latest
            && let Some(sample) = self.latest.pop_front()
        {
            let due = |(last_ms, _): &(u64, Counts)| sample.0 >= last_ms + OLDER_EVERY_MS;
            if self.older.back().is_none_or(due) {
                self.older.push_back(sample);
            }
        }
        while self.older.len() > room.older {
            self.older.pop_front();
        }
    }

    /// Returns the counts at a time; `None` before the first sample. Between samples of which some
    /// were left out it is what lies between them, so that a steady rate is one.
    pub(crate) fn at(&self, at_ms: u64) -> Option<Counts> {
        let next = |samples: &VecDeque<(u64, Counts)>| {
            samples.partition_point(|(sampled_ms, _)| *sampled_ms <= at_ms)
        };
        if let Some(last) = next(&self.latest).checked_sub(1) {
            return Some(self.latest[last].1);
        }
        let later = next(&self.older);
        let (before_ms, before) = self.older.get(later.checked_sub(1)?)?;
        let (after_ms, after) = self.older.get(later).or_else(|| self.latest.front())?;
        // What was left out is no longer than this: before that it stood still.
        let moved_ms = (after_ms - before_ms).min(OLDER_EVERY_MS);
        let left_ms = (after_ms - at_ms).min(moved_ms);
        Some(before.towards(after, moved_ms - left_ms, moved_ms))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.older.len() + self.latest.len()
    }
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// When the last two samples were taken, in ms since 1970; 0 is never.
    times_ms: (u64, u64),
    totals: Series,
    objects: HashMap<Subject, Kept>,
}

/// A series of an object, and when it was sampled last.
#[derive(Debug, Default)]
struct Kept {
    series: Series,
    at_ms: u64,
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
        self.totals.push(at_ms, totals, Room::TOTALS);
        let (room, count) = (Room::of_each(objects.len()), objects.len());
        for (subject, counts) in objects {
            let kept = self.objects.entry(subject).or_default();
            kept.at_ms = at_ms;
            kept.series.push(at_ms, counts, room);
        }
        if self.objects.len() > count {
            self.objects.retain(|_, kept| kept.at_ms == at_ms);
        }
    }

    /// Returns when the last two samples were taken, the earlier first.
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
        self.objects.get(subject).map(|kept| &kept.series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(publish: u64) -> Counts {
        Counts::new(publish, 0, &MessageCounters { publish, ..MessageCounters::default() })
    }

    fn queue(name: &str) -> Subject {
        Subject::Queue(QueueId(name.bytes().map(u32::from).sum()))
    }

    #[test]
    fn a_sample_holds_until_the_next_and_likes_are_not_kept() {
        let mut history = History::default();
        for (at_ms, publish) in [(5_000, 1), (10_000, 1), (15_000, 4)] {
            history.record(at_ms, counts(publish), [(queue("q"), counts(publish))].into_iter());
        }
        let series = history.of(&queue("q")).unwrap();
        assert_eq!(series.len(), 2);
        assert_eq!(series.at(4_999), None);
        for (at_ms, publish) in [(5_000, 1), (14_999, 1), (15_000, 4), (99_000, 4)] {
            assert_eq!(series.at(at_ms), Some(counts(publish)), "{at_ms}");
        }
        assert_eq!(history.last_two_ms(), Some((10_000, 15_000)));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut history = History::default();
        history.record(5_000, counts(9), [(queue("q"), counts(9))].into_iter());
        history.record(10_000, counts(9), std::iter::empty());
        assert!(history.of(&queue("q")).is_none());
        history.record(15_000, counts(9), [(queue("q"), counts(0))].into_iter());
        assert_eq!(history.of(&queue("q")).unwrap().at(10_000), None);
    }

    #[test]
    fn an_object_goes_back_an_hour_at_a_steady_rate() {
        let mut history = History::default();
        for tick in 1..1_000 {
            let objects = [(queue("q"), counts(tick * 10))].into_iter();
            history.record(tick * 5_000, counts(tick), objects);
        }
        let series = history.of(&queue("q")).unwrap();
        let end_ms = 999 * 5_000;
        for ago_s in [0, 60, 605, 1_000, 1_800, 3_600] {
            let at_ms = end_ms - ago_s * 1_000;
            assert_eq!(series.at(at_ms), Some(counts(at_ms / 500)), "{ago_s} s ago");
        }
    }

    #[test]
    fn what_stood_still_before_it_moved_is_not_drawn_as_a_slope() {
        let mut history = History::default();
        let mut tick = |tick: u64, publish| {
            history.record(tick * 5_000, counts(0), [(queue("q"), counts(publish))].into_iter());
        };
        (1..200).for_each(|at| tick(at, 7));
        (200..400).for_each(|at| tick(at, at));
        let series = history.of(&queue("q")).unwrap();
        assert_eq!(series.at(500_000), Some(counts(7)));
    }

    #[test]
    fn memory_is_bounded_however_many_there_are_and_however_long_they_run() {
        let mut history = History::default();
        for tick in 1..2_000 {
            let objects: Vec<_> = (0..3).map(|q| (queue(&q.to_string()), counts(tick))).collect();
            history.record(tick * 5_000, counts(tick), objects.into_iter());
        }
        assert_eq!(history.totals.len(), TOTALS_SAMPLES_MAX);
        assert_eq!(history.of(&queue("0")).unwrap().len(), LATEST_SAMPLES_MAX + OLDER_SAMPLES_MAX);
        for tick in 2_000..2_010 {
            let objects: Vec<_> =
                (0..20_000).map(|q| (queue(&q.to_string()), counts(tick))).collect();
            history.record(tick * 5_000, counts(tick), objects.into_iter());
        }
        let samples: usize = history.objects.values().map(|kept| kept.series.len()).sum();
        assert!(samples <= OBJECTS_SAMPLES_MAX, "{samples}");
    }
}

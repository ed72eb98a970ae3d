//! Entries of a queue's head whose messages cannot be had now, since they are not there yet, or Cassandra does not answer, or others take
//! them. Reads go on behind them until one comes to something, or to the end; then they leave them alone for as long as that took, so that
//! however many they are, others are received half of the time at least.

use rustc_hash::FxHashSet;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;
use crate::standard::start::Start;

/// Messages that are tried before reads begin with them again, sixteen bytes each.
const TRIED_MAX: usize = 10_000;

/// Those of one queue.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    /// When the first of them became visible; `None`: there are none.
    first_us: Option<i64>,
    /// From when on a read begins with them again; `None`: it is not known yet.
    again_at_us: Option<i64>,
    /// Whether reads still go on behind them.
    goes_on: bool,
    /// Since when they do.
    began_us: i64,
    /// Messages that were chosen meanwhile, and not delivered.
    tried: FxHashSet<Uuid>,
    /// Partitions of messages that did not answer meanwhile.
    unanswered: Vec<Bucket>,
}

impl LeftBehind {
    /// Some reads begin.
    pub(crate) fn begin(&mut self, now_us: i64) {
        if !self.goes_on {
            self.began_us = now_us;
        }
    }

    /// Reads go on behind an entry, if there is one.
    pub(crate) fn pass(&mut self, entry: Option<&Entry>) {
        let at_us = entry.map(|entry| entry.visible_at_us);
        self.first_us = self.first_us.into_iter().chain(at_us).min();
        self.goes_on |= at_us.is_some();
    }

    /// These messages were chosen in vain, and these partitions did not answer. Returns whether they are too many to go on.
    pub(crate) fn note_tried(
        &mut self,
        messages: impl IntoIterator<Item = Uuid>,
        unanswered: Vec<Bucket>,
    ) -> bool {
        self.tried.extend(messages);
        self.unanswered.extend(unanswered);
        self.tried.len() >= TRIED_MAX
    }

    /// The reads have come to something, or to the end.
    pub(crate) fn end(&mut self, now_us: i64) {
        if self.goes_on && !self.is_empty() {
            let took_us = (now_us - self.began_us).max(0);
            // Not later than was said of those that were passed before.
            self.again_at_us.get_or_insert_with(|| now_us.saturating_add(took_us));
        }
        *self = Self { first_us: self.first_us, again_at_us: self.again_at_us, ..Self::default() };
    }

    /// A read was made that began there.
    pub(crate) fn on_read(&mut self, start: Start) {
        if !self.are_before(start) {
            (self.first_us, self.again_at_us) = (None, None);
        }
    }

    /// Nothing lives before that time any more: those of them that were before it are gone.
    pub(crate) fn on_mark(&mut self, low_us: i64) {
        self.first_us = self.first_us.map(|first_us| first_us.max(low_us));
    }

    /// Returns where the next read has to begin to find them, if it is time for that.
    pub(crate) fn due_us(&self, now_us: i64) -> Option<i64> {
        let is_due = self.again_at_us.is_some_and(|again_at_us| again_at_us <= now_us);
        self.first_us.filter(|_| is_due)
    }

    /// Returns whether reads still go on behind them.
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_us.is_none()
    }

    /// Returns whether a read that begins there does not find them.
    pub(crate) fn are_before(&self, start: Start) -> bool {
        self.first_us.is_some_and(|first_us| first_us < start.from_us)
    }

    /// Returns whether an entry's message is not to be had, as far as is known since reads go on.
    pub(crate) fn has(&self, entry: &Entry) -> bool {
        self.tried.contains(&entry.message) || self.unanswered.contains(&entry.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_for_tests;
    use crate::standard::start::Reach;

    fn start(from_us: i64) -> Start {
        Start { from_us, now_us: 0, reach: Reach::Near }
    }

    fn passed(at_us: i64, from_us: i64, to_us: i64) -> LeftBehind {
        let mut left = LeftBehind::default();
        left.begin(from_us);
        left.pass(Some(&entry_for_tests(at_us, 1)));
        left.end(to_us);
        left
    }

    #[test]
    fn they_are_read_again_after_as_long_as_passing_took() {
        let mut left = passed(50, 100, 130);
        assert_eq!([159, 160].map(|now_us| left.due_us(now_us)), [None, Some(50)]);
        left.on_read(start(51));
        assert!(!left.is_empty() && left.are_before(start(51)));
        left.on_read(start(50));
        assert!(left.is_empty() && left.due_us(200).is_none());
    }

    #[test]
    fn what_is_passed_later_delays_nothing_that_was_passed_before() {
        let mut left = passed(50, 100, 130);
        left.begin(140);
        left.pass(Some(&entry_for_tests(80, 2)));
        left.end(159);
        assert_eq!(left.due_us(160), Some(50));
    }

    #[test]
    fn what_was_tried_is_known_until_reads_have_come_to_something() {
        let mut left = LeftBehind::default();
        let [tried, beside, other] =
            [1, 2, 3].map(|number| entry_for_tests(number, number as u128));
        let [beside, other] = [(beside, 1), (other, 2)]
            .map(|(entry, second)| Entry { body: Bucket::holding(second * 1_000_000, 0), ..entry });
        left.begin(10);
        left.pass(Some(&tried));
        assert!(!left.note_tried([tried.message], vec![beside.body]));
        left.begin(20);
        assert_eq!([tried, beside, other].map(|entry| left.has(&entry)), [true, true, false]);
        left.end(30);
        assert_eq!([tried, beside].map(|entry| left.has(&entry)), [false; 2]);
        assert_eq!(left.due_us(50), Some(1), "it began at 10");
    }
}

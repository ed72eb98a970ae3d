//! Whether all changes of queues that the other front-ends announce arrive here. Each says twice a second how many it has announced
//! so far. Whoever hears that of all the others, and has heard of as many changes, knows of no change that it has missed, and goes
//! on with what it has read of a queue for longer. As soon as one of them is silent, it reads again every two seconds, as a
//! front-end does that hears nobody.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{DEAD_AFTER_MS, FACTS_AGE_HEARD_MS_MAX, FACTS_AGE_MS_MAX};

/// After so long without a word of another front-end it may have announced what did not arrive.
const SILENT_MAX: Duration = Duration::from_millis(FACTS_AGE_MS_MAX);

/// For how long the front-ends that were read of Cassandra are taken to be all.
const OBSERVED_MAX: Duration = Duration::from_millis(DEAD_AFTER_MS);

const UNHEARD: Duration = Duration::from_millis(FACTS_AGE_MS_MAX);
const HEARD: Duration = Duration::from_millis(FACTS_AGE_HEARD_MS_MAX);

/// What was heard of the others' changes.
#[derive(Debug)]
pub(crate) struct Hearing(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Whether this front-end hears anything.
    has_socket: bool,
    /// All others that are known; `None`: one that has not spoken yet.
    others: BTreeMap<Uuid, Option<Heard>>,
    observed_at: Option<Instant>,
    /// A change of before may have been missed.
    whole_since: Instant,
    /// Until then nothing is missed, if all others go on to be heard; `None`: somebody is silent.
    whole_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    changes: u64,
    at: Instant,
}

impl Default for Hearing {
    fn default() -> Self {
        Self(Mutex::new(State {
            has_socket: false,
            others: BTreeMap::new(),
            observed_at: None,
            whole_since: Instant::now(),
            whole_until: None,
        }))
    }
}

impl Hearing {
    /// From now on the others are heard.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.has_socket = true;
        state.judge();
    }

    /// These front-ends are there at `now`, besides this one.
    pub(crate) fn observe(&self, others: impl Iterator<Item = Uuid>, now: Instant) {
        let mut state = self.lock();
        let mut before = std::mem::take(&mut state.others);
        state.others = others.map(|id| (id, before.remove(&id).flatten())).collect();
        let was_observed =
            state.observed_at.is_some_and(|at| now.saturating_duration_since(at) < OBSERVED_MAX);
        // What one that is gone has announced last may not have arrived.
        if !was_observed || !before.is_empty() {
            state.whole_since = now;
        }
        state.observed_at = Some(now);
        state.judge();
    }

    /// Another front-end has announced a change, its `number`-th.
    pub(crate) fn on_change(&self, from: Uuid, number: u64, now: Instant) {
        let mut state = self.lock();
        let Some(Some(heard)) = state.others.get_mut(&from) else { return };
        let missed = number.saturating_sub(heard.changes) > 1;
        heard.changes = heard.changes.max(number);
        if missed {
            state.whole_since = now;
        }
    }

    /// Another front-end has announced so many changes so far.
    pub(crate) fn on_count(&self, from: Uuid, changes: u64, now: Instant) {
        let mut state = self.lock();
        let Some(before) = state.others.get_mut(&from) else { return };
        let is_whole = before.is_some_and(|heard| {
            heard.changes == changes && now.saturating_duration_since(heard.at) < SILENT_MAX
        });
        *before = Some(Heard { changes, at: now });
        if !is_whole {
            state.whole_since = now;
        }
        state.judge();
    }

    /// Whether nothing that was announced from then on was missed.
    pub(crate) fn is_whole_since(&self, then: Instant, now: Instant) -> bool {
        self.lock().is_whole_since(then, now)
    }

    /// How old what was begun to be read of a queue at `read_at` may be at `now`.
    pub(crate) fn age_max(&self, read_at: Instant, now: Instant) -> Duration {
        if self.lock().is_whole_since(read_at, now) { HEARD } else { UNHEARD }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_whole_since(&self, then: Instant, now: Instant) -> bool {
        self.whole_until.is_some_and(|until| now < until) && then >= self.whole_since
    }

    fn judge(&mut self) {
        let observed = self.observed_at.filter(|_| self.has_socket);
        let heard = self.others.values().map(|heard| heard.map(|heard| heard.at + SILENT_MAX));
        let mut untils = heard.chain([observed.map(|at| at + OBSERVED_MAX)]);
        self.whole_until = untils
            .try_fold(None, |first: Option<Instant>, until| {
                until.map(|until| Some(first.map_or(until, |first| first.min(until))))
            })
            .flatten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Uuid = Uuid::from_u128(2);
    const THIRD: Uuid = Uuid::from_u128(3);
    const MS: Duration = Duration::from_millis(1);

    /// One that hears two others, each of which has announced five changes.
    fn hearing(now: Instant) -> Hearing {
        let hearing = Hearing::default();
        hearing.begin();
        hearing.observe([OTHER, THIRD].into_iter(), now);
        hearing.on_count(OTHER, 5, now);
        hearing.on_count(THIRD, 5, now);
        hearing
    }

    #[test]
    fn what_was_read_is_good_for_longer_while_all_others_are_heard() {
        let start = Instant::now();
        let hearing = hearing(start);
        assert_eq!(hearing.age_max(start, start + 1_999 * MS), HEARD);
        assert_eq!(hearing.age_max(start - MS, start), UNHEARD, "it was read before");
        for from in [OTHER, THIRD] {
            hearing.on_count(from, 5, start + 1_000 * MS);
        }
        assert_eq!(hearing.age_max(start, start + 2_999 * MS), HEARD);
        hearing.on_count(OTHER, 5, start + 2_000 * MS);
        assert_eq!(hearing.age_max(start, start + 3_000 * MS), UNHEARD, "one is silent");
        // What it has announced in that time may be lost.
        hearing.on_count(THIRD, 5, start + 3_000 * MS);
        assert_eq!(hearing.age_max(start, start + 3_000 * MS), UNHEARD);
        assert_eq!(hearing.age_max(start + 3_000 * MS, start + 3_000 * MS), HEARD);
    }

    #[test]
    fn a_change_that_was_heard_of_leaves_the_rest_as_it_is() {
        let start = Instant::now();
        let hearing = hearing(start);
        hearing.on_change(OTHER, 6, start + MS);
        hearing.on_change(OTHER, 6, start + 2 * MS);
        hearing.on_count(OTHER, 6, start + 3 * MS);
        assert_eq!(hearing.age_max(start, start + 4 * MS), HEARD);
    }

    #[test]
    fn a_change_that_was_missed_is_noticed_by_the_next_and_by_the_count() {
        let start = Instant::now();
        let [by_next, by_count] = [hearing(start), hearing(start)];
        by_next.on_change(OTHER, 7, start + MS);
        by_count.on_count(OTHER, 6, start + MS);
        for hearing in [by_next, by_count] {
            assert_eq!(hearing.age_max(start, start + MS), UNHEARD);
            assert_eq!(hearing.age_max(start + MS, start + MS), HEARD);
        }
    }

    #[test]
    fn who_comes_has_to_speak_first_and_who_goes_may_have_spoken_last() {
        let start = Instant::now();
        let hearing = Hearing::default();
        hearing.observe([].into_iter(), start);
        assert_eq!(hearing.age_max(start, start), UNHEARD, "nobody can be heard");
        hearing.begin();
        assert_eq!(hearing.age_max(start, start), HEARD, "there is nobody else");
        hearing.on_count(OTHER, 0, start);
        hearing.observe([OTHER].into_iter(), start + MS);
        assert_eq!(hearing.age_max(start, start + MS), UNHEARD);
        hearing.on_count(OTHER, 0, start + 2 * MS);
        assert_eq!(hearing.age_max(start, start + 2 * MS), UNHEARD);
        assert_eq!(hearing.age_max(start + 2 * MS, start + 2 * MS), HEARD);
        hearing.observe([].into_iter(), start + 3 * MS);
        assert_eq!(hearing.age_max(start + 2 * MS, start + 3 * MS), UNHEARD);
        assert_eq!(hearing.age_max(start + 3 * MS, start + 3 * MS), HEARD);
    }

    #[test]
    fn who_does_not_know_who_is_there_does_not_know_whom_to_hear() {
        let start = Instant::now();
        let hearing = Hearing::default();
        hearing.begin();
        assert_eq!(hearing.age_max(start, start), UNHEARD);
        hearing.observe([].into_iter(), start);
        let later = start + OBSERVED_MAX;
        assert_eq!(hearing.age_max(start, later - MS), HEARD);
        assert_eq!(hearing.age_max(start, later), UNHEARD);
        hearing.observe([].into_iter(), later);
        assert_eq!(hearing.age_max(start, later), UNHEARD);
        assert_eq!(hearing.age_max(later, later), HEARD);
    }
}

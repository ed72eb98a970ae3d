//! Whether all changes of queues that the other front-ends make are heard of here. Each notifies all others of every change that it has
//! made, and sends them twice a second how many that were, unless one is under way. Whoever hears the same number of all
//! others has missed none, and what it has read of queues is as it was read; what may have changed since it last heard that is
//! as old as that. The moment at which something may have been missed begins a new period: what was read in an earlier one ages again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{
    DEAD_AFTER_MS, FACTS_AGE_HEARD_MS_MAX, FACTS_AGE_MS_MAX, FRONT_ENDS_MAX, OBSERVED_MS_MAX,
};

/// After so long without a word of another front-end it may have made a change that was not heard of.
const SILENT_MAX: Duration = Duration::from_millis(FACTS_AGE_MS_MAX);

/// For how long the rows that were read are taken to be those of all.
const OBSERVED_MAX: Duration = Duration::from_millis(OBSERVED_MS_MAX);

/// What was heard of the others' changes.
#[derive(Debug)]
pub(crate) struct PeerChanges(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Whether this front-end hears anything.
    has_socket: bool,
    /// All others that have a row, also those that may be dead; `None`: one that has not spoken yet.
    others: BTreeMap<Uuid, Option<Heard>>,
    /// When the rows were asked for that say who the others are; `None`: somebody is missing among them.
    observed_at: Option<Instant>,
    /// Since when nothing was missed: the present period.
    complete_since: Instant,
    /// The period before: what was read in it was as it was read until its end.
    before: Option<Period>,
}

/// A time in which nothing was missed.
#[derive(Clone, Copy, Debug)]
struct Period {
    since: Instant,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    changes: u64,
    at: Instant,
}

impl Default for PeerChanges {
    fn default() -> Self {
        Self(Mutex::new(State {
            has_socket: false,
            others: BTreeMap::new(),
            observed_at: None,
            complete_since: Instant::now(),
            before: None,
        }))
    }
}

impl PeerChanges {
    /// From now on the others are heard.
    pub(crate) fn begin(&self) {
        self.lock().has_socket = true;
    }

    /// These front-ends have rows, besides this one, which were asked for at `asked_at`.
    pub(crate) fn observe(
        &self,
        others: impl Iterator<Item = Uuid>,
        asked_at: Instant,
        now: Instant,
    ) {
        let mut state = self.lock();
        let others: BTreeMap<_, _> =
            others.map(|id| (id, state.others.get(&id).copied().flatten())).collect();
        let is_anybody_new = others.keys().any(|id| !state.others.contains_key(id));
        let was_observed =
            state.observed_at.is_some_and(|at| now.saturating_duration_since(at) < OBSERVED_MAX);
        if state.others.keys().any(|id| !others.contains_key(id)) {
            // What one that is gone has done last may not be seen yet.
            state.miss_since_observed(now + Duration::from_millis(DEAD_AFTER_MS));
        } else if is_anybody_new || !was_observed {
            state.miss_since_observed(now);
        }
        state.observed_at = (others.len() + 1 < FRONT_ENDS_MAX).then_some(asked_at);
        state.others = others;
    }

    /// One has spoken that has no row, as far as is known here.
    pub(crate) fn on_stranger(&self, now: Instant) {
        let mut state = self.lock();
        state.miss_since_observed(now);
        state.observed_at = None;
    }

    /// Another front-end notifies of a change, its `number`-th.
    pub(crate) fn on_change(&self, from: Uuid, number: u64, now: Instant) {
        let mut state = self.lock();
        let Some(Some(heard)) = state.others.get_mut(&from) else { return };
        let is_one_missing = number.saturating_sub(heard.changes) > 1;
        heard.changes = heard.changes.max(number);
        if is_one_missing {
            state.miss(now, now);
        }
    }

    /// Another front-end has notified of so many changes so far, as it says, and has made no other.
    pub(crate) fn on_count(&self, from: Uuid, changes: u64, now: Instant) {
        let mut state = self.lock();
        let Some(heard) = state.others.get(&from).copied() else { return };
        let is_none_missing = heard.is_some_and(|heard| {
            heard.changes == changes && now.saturating_duration_since(heard.at) < SILENT_MAX
        });
        if !is_none_missing {
            state.miss(now, now);
        }
        // One that was on its way for long says nothing of the present.
        if heard.is_none_or(|heard| heard.changes <= changes) {
            state.others.insert(from, Some(Heard { changes, at: now }));
        }
    }

    /// Returns whether no change can be missed now.
    pub(crate) fn is_complete(&self, now: Instant) -> bool {
        self.is_complete_since(now, now)
    }

    /// Returns whether no change since then can have been missed.
    pub(crate) fn is_complete_since(&self, then: Instant, now: Instant) -> bool {
        let state = self.lock();
        let is_complete = state
            .complete_until()
            .is_some_and(|until| now.saturating_duration_since(until) < SILENT_MAX);
        is_complete && then >= state.complete_since
    }

    /// Returns the latest time, up to now, at which what was begun to be read of a queue at
    /// `read_at` was still so, as far as is known. It is good for [`FACTS_AGE_MS_MAX`] from then
    /// on. However well all are heard, it is read again after [`FACTS_AGE_HEARD_MS_MAX`].
    pub(crate) fn valid_at(&self, read_at: Instant, now: Instant) -> Instant {
        let state = self.lock();
        let until = match state.before {
            _ if read_at >= state.complete_since => state.complete_until(),
            Some(Period { since, until }) if read_at >= since => Some(until),
            _ => None,
        };
        let longest = Duration::from_millis(FACTS_AGE_HEARD_MS_MAX - FACTS_AGE_MS_MAX);
        until.map_or(read_at, |until| until.min(now).clamp(read_at, read_at + longest))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns when all others were last heard; `None`: one has never been, or it is not known who
    /// they are.
    fn complete_until(&self) -> Option<Instant> {
        let observed_at = self.observed_at.filter(|_| self.has_socket)?;
        let observed = observed_at + OBSERVED_MAX;
        self.others.values().try_fold(observed, |first, heard| Some(first.min((*heard)?.at)))
    }

    /// What was done from `from` on may have been missed. The present period ends there, or where all were last heard, and another one
    /// begins at `next`, which may be later than now.
    fn miss(&mut self, from: Instant, next: Instant) {
        if let Some(before) = &mut self.before {
            before.until = before.until.min(from);
        }
        let complete_until = self.complete_until().map(|until| until.min(from));
        if let Some(until) = complete_until.filter(|until| *until > self.complete_since) {
            self.before = Some(Period { since: self.complete_since, until });
        }
        self.complete_since = self.complete_since.max(next);
    }

    /// The same of what was done since the rows were read: somebody came or went.
    fn miss_since_observed(&mut self, next: Instant) {
        let from = self.observed_at.unwrap_or(self.complete_since);
        self.miss(from, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Uuid = Uuid::from_u128(2);
    const THIRD: Uuid = Uuid::from_u128(3);
    const MS: Duration = Duration::from_millis(1);

    /// Returns a [`PeerChanges`] that has begun at that time.
    fn fresh(now: Instant) -> PeerChanges {
        let peer_changes = PeerChanges::default();
        peer_changes.lock().complete_since = now;
        peer_changes
    }

    /// Returns a [`PeerChanges`] that hears two others, each of which has notified of five changes.
    fn peer_changes(now: Instant) -> PeerChanges {
        let peer_changes = fresh(now);
        peer_changes.begin();
        peer_changes.observe([OTHER, THIRD].into_iter(), now, now);
        peer_changes.on_count(OTHER, 5, now);
        peer_changes.on_count(THIRD, 5, now);
        peer_changes
    }

    #[test]
    fn what_was_read_stays_valid_while_all_others_are_heard() {
        let start = Instant::now();
        let peer_changes = peer_changes(start);
        for times in 1..=3 {
            let now = start + 500 * MS * times;
            peer_changes.on_count(OTHER, 5, now);
            assert_eq!(peer_changes.valid_at(start, now), now - 500 * MS, "one was heard before");
            peer_changes.on_count(THIRD, 5, now);
            assert_eq!(peer_changes.valid_at(start, now + MS), now);
        }
        assert_eq!(peer_changes.valid_at(start - MS, start), start - MS, "it was read before");
        // One is silent: what it has done since may not have been heard.
        let later = start + 3_500 * MS;
        peer_changes.on_count(OTHER, 5, start + 2_500 * MS);
        peer_changes.on_count(OTHER, 5, later);
        assert_eq!(peer_changes.valid_at(start, later), start + 1_500 * MS);
        assert!(!peer_changes.is_complete_since(start, later));
        peer_changes.on_count(THIRD, 5, later);
        assert_eq!(peer_changes.valid_at(start, later + MS), start + 1_500 * MS);
        assert_eq!(peer_changes.valid_at(later, later + MS), later);
        assert!(peer_changes.is_complete_since(later, later + MS));
    }

    #[test]
    fn a_change_that_was_heard_of_leaves_the_rest_as_it_is() {
        let start = Instant::now();
        let peer_changes = peer_changes(start);
        peer_changes.on_change(OTHER, 6, start + MS);
        peer_changes.on_change(OTHER, 6, start + 2 * MS);
        peer_changes.on_count(OTHER, 6, start + 3 * MS);
        peer_changes.on_count(THIRD, 5, start + 3 * MS);
        assert_eq!(peer_changes.valid_at(start, start + 4 * MS), start + 3 * MS);
    }

    #[test]
    fn a_change_that_was_missed_is_noticed_by_the_next_and_by_the_count() {
        let start = Instant::now();
        let [by_next, by_count] = [peer_changes(start), peer_changes(start)];
        let now = start + 100 * MS;
        by_next.on_change(OTHER, 7, now);
        by_count.on_count(OTHER, 6, now);
        for peer_changes in [by_next, by_count] {
            peer_changes.on_count(OTHER, peer_changes.heard(OTHER), now);
            peer_changes.on_count(THIRD, 5, now);
            assert_eq!(
                peer_changes.valid_at(start, now + MS),
                start,
                "it may be the one that was changed"
            );
            assert_eq!(peer_changes.valid_at(now, now + MS), now);
        }
    }

    #[test]
    fn a_count_that_comes_late_says_nothing_of_the_present() {
        let start = Instant::now();
        let peer_changes = peer_changes(start);
        peer_changes.on_change(OTHER, 6, start + MS);
        for from in [THIRD, OTHER] {
            peer_changes.on_count(from, 5, start + 2 * MS);
        }
        assert_eq!(peer_changes.heard(OTHER), 6);
        assert_eq!(peer_changes.valid_at(start, start + 3 * MS), start);
    }

    #[test]
    fn what_is_found_out_later_reaches_further_back() {
        let start = Instant::now();
        let peer_changes = peer_changes(start);
        let now = start + 1_000 * MS;
        peer_changes.on_count(OTHER, 5, now);
        peer_changes.on_count(THIRD, 5, now);
        peer_changes.on_count(OTHER, 7, now + MS);
        assert_eq!(peer_changes.valid_at(start, now + MS), now);
        // Somebody has come since the rows were read, at the start.
        peer_changes.on_stranger(now + 2 * MS);
        assert_eq!(peer_changes.valid_at(start, now + 2 * MS), start);
    }

    #[test]
    fn who_comes_has_to_speak_first_and_who_goes_may_have_done_something_last() {
        let start = Instant::now();
        let peer_changes = fresh(start);
        peer_changes.observe([].into_iter(), start, start);
        assert_eq!(peer_changes.valid_at(start, start + MS), start, "nobody can be heard");
        peer_changes.begin();
        assert_eq!(peer_changes.valid_at(start, start + MS), start + MS, "there is nobody else");
        peer_changes.on_stranger(start + 10 * MS);
        assert_eq!(peer_changes.valid_at(start, start + 20 * MS), start);
        peer_changes.observe([OTHER].into_iter(), start + 30 * MS, start + 30 * MS);
        assert_eq!(peer_changes.valid_at(start + 30 * MS, start + 40 * MS), start + 30 * MS);
        peer_changes.on_count(OTHER, 0, start + 50 * MS);
        assert_eq!(peer_changes.valid_at(start + 30 * MS, start + 60 * MS), start + 30 * MS);
        assert_eq!(peer_changes.valid_at(start + 50 * MS, start + 60 * MS), start + 50 * MS);
        let gone = start + 70 * MS;
        peer_changes.observe([].into_iter(), gone, gone);
        assert_eq!(peer_changes.valid_at(gone, gone + 9_999 * MS), gone);
        let later = gone + Duration::from_millis(DEAD_AFTER_MS);
        peer_changes.observe([].into_iter(), later, later);
        assert_eq!(peer_changes.valid_at(later, later + MS), later + MS);
    }

    #[test]
    fn who_does_not_know_who_is_there_does_not_know_whom_to_hear() {
        let start = Instant::now();
        let peer_changes = fresh(start);
        peer_changes.begin();
        assert_eq!(peer_changes.valid_at(start, start + MS), start);
        peer_changes.observe([].into_iter(), start, start);
        let end = start + Duration::from_millis(OBSERVED_MS_MAX);
        assert_eq!(peer_changes.valid_at(start, end + MS), end);
        peer_changes.observe([].into_iter(), end + MS, end + MS);
        assert_eq!(
            peer_changes.valid_at(start, end + 2 * MS),
            start,
            "somebody may have come and gone"
        );
        assert_eq!(peer_changes.valid_at(end + MS, end + 2 * MS), end + 2 * MS);
        let many = (1..FRONT_ENDS_MAX as u128).map(Uuid::from_u128);
        peer_changes.observe(many.clone(), end, end);
        many.for_each(|id| peer_changes.on_count(id, 0, end));
        assert!(!peer_changes.is_complete_since(end, end), "there may be more than were read");
    }

    #[test]
    fn however_well_all_are_heard_it_is_read_again() {
        let start = Instant::now();
        let peer_changes = fresh(start);
        peer_changes.begin();
        let mut now = start;
        while now < start + Duration::from_millis(FACTS_AGE_HEARD_MS_MAX) {
            peer_changes.observe([].into_iter(), now, now);
            now += 2_000 * MS;
        }
        let aged = now - peer_changes.valid_at(start, now);
        assert!(aged >= SILENT_MAX, "{aged:?}");
    }

    impl PeerChanges {
        fn heard(&self, id: Uuid) -> u64 {
            self.lock().others[&id].map_or(0, |heard| heard.changes)
        }
    }
}

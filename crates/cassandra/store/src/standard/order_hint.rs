//! `OrderHint=auto`: how many of the oldest entries a front-end chooses among, for one queue.
//!
//! Two front-ends deliver the same message if both choose it before either has moved it. Of those choices that a front-end cannot
//! know of (others announce theirs by claims, and it leaves those entries alone) a share of 1/K falls on the same entry, so
//! that the duplicates per message are u · w · s² / K: `u` entries a second are taken by others, a share `s` of them without a
//! word, and `w` seconds pass from reading the head to the entry's deletion. All are observed: an entry that stood in the
//! last read and is gone from this one was taken by another. The square, because a claim that is lost is followed by
//! another, of whoever hears that somebody takes what is taken. K is the smallest that keeps this below the target, and larger
//! if duplicates are seen all the same. Where claims arrive, `s` is next to nothing, and K is 1.

use std::time::Duration;

use crate::peers::datagram::EntryName;

#[cfg(test)]
mod simulation;

/// Entries of a read of the head that the next one is compared with.
const SEEN_MAX: usize = 64;

/// Reads of the head that an estimate needs, and that it remembers.
const READS_MIN: u32 = 6;
const READS_REMEMBERED: f64 = 256.0;

/// K before there is an estimate, where others cannot be heard.
const FIRST_K: usize = 16;

/// The largest K.
pub(crate) const K_MAX: usize = 500;

/// Which part of the duplicates that may be is aimed at: where few entries are left, fewer than K are chosen among.
const AIM: f64 = 0.85;

/// By how much an estimate has to be past a border for K to change: the estimate is not that exact.
const SLACK: f64 = 0.05;

/// K for one queue at one front-end.
#[derive(Debug)]
pub(crate) struct AutoHint {
    k: usize,
    /// What stood in the last read of the head, and when that was.
    seen: Vec<VisibleEntry>,
    seen_at_us: i64,
    reads: u32,
    /// Over the reads that are remembered: entries that others took, those of them without a word, and in how many seconds.
    gone: f64,
    unannounced: f64,
    passed_s: f64,
    /// From a read to the deletion of what it chose, on average.
    window_s: f64,
    /// Messages that were delivered here, those of them that others delivered too, and the sum of the K they had.
    delivered: f64,
    duplicates: f64,
    k_of_delivered: f64,
}

/// What `OrderHint=auto` has made of a queue at one front-end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HintView {
    /// The K of the last read.
    pub k: usize,
    /// Of the messages that were lately delivered here, the part that another front-end is known to have delivered too;
    /// `None`: there were none.
    pub duplicates_per_message: Option<f64>,
}

/// An entry that was visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleEntry {
    pub(crate) entry: EntryName,
    pub(crate) visible_at_us: i64,
}

/// Who else takes from the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// Nobody.
    None,
    /// All that are alive announce what they take.
    Announcing,
    /// Some are alive that cannot be heard.
    Silent,
}

impl Default for AutoHint {
    fn default() -> Self {
        Self {
            k: 1,
            seen: Vec::new(),
            seen_at_us: 0,
            reads: 0,
            gone: 0.0,
            unannounced: 0.0,
            passed_s: 0.0,
            window_s: 0.0,
            delivered: 0.0,
            duplicates: 0.0,
            k_of_delivered: 0.0,
        }
    }
}

impl AutoHint {
    /// Returns how many of the oldest are chosen among, for at most so many duplicates a message.
    pub(crate) fn k(&mut self, others: Others, duplicates_max: f64) -> usize {
        self.k = match others {
            Others::None => 1,
            Others::Announcing if self.reads < READS_MIN => 1,
            Others::Silent if self.reads < READS_MIN => FIRST_K,
            Others::Announcing | Others::Silent => self.settled(duplicates_max.max(1e-6)),
        };
        self.k
    }

    /// Returns what there is to be shown of it.
    pub(crate) fn view(&self) -> HintView {
        HintView { k: self.k, duplicates_per_message: self.duplicate_share() }
    }

    fn duplicate_share(&self) -> Option<f64> {
        (self.delivered >= 1.0).then(|| self.duplicates / self.delivered)
    }

    /// Returns the K of the estimate, or the one before if the estimate is next to it.
    fn settled(&self, duplicates_max: f64) -> usize {
        let wanted = self.expected(duplicates_max).max(self.observed(duplicates_max));
        let bounded = |k: f64| k.ceil().clamp(1.0, K_MAX as f64) as usize;
        let (below, above) = (bounded(wanted * (1.0 - SLACK)), bounded(wanted * (1.0 + SLACK)));
        if (below..=above).contains(&self.k) { self.k } else { bounded(wanted) }
    }

    /// Returns the K at which as many duplicates are expected as may be.
    fn expected(&self, duplicates_max: f64) -> f64 {
        if self.passed_s <= 0.0 || self.gone <= 0.0 {
            return 0.0;
        }
        // Who is not heard does not hear either, with the same chance, and only then both deliver.
        let silence = self.unannounced / self.gone;
        let per_s = self.gone / self.passed_s * silence * silence;
        per_s * self.window_s / (duplicates_max * AIM)
    }

    /// Returns the K at which as many duplicates are expected as may be, by those that were seen.
    fn observed(&self, duplicates_max: f64) -> f64 {
        let Some(share) = self.duplicate_share() else { return 0.0 };
        self.k_of_delivered / self.delivered * share / duplicates_max
    }

    /// Notes that these entries are visible at `now_us`, the oldest first; `is_whole`: there are no
    /// others. `is_announced` says of an entry whether another front-end said that it takes it.
    pub(crate) fn on_head_read(
        &mut self,
        now_us: i64,
        visible: &[VisibleEntry],
        is_whole: bool,
        is_announced: impl Fn(EntryName) -> bool,
    ) {
        let last_us = visible.last().map_or(i64::MIN, |last| last.visible_at_us);
        let border_us = if is_whole { i64::MAX } else { last_us };
        let passed_us = now_us.saturating_sub(self.seen_at_us);
        if self.seen_at_us > 0 && (1..RECENT_US).contains(&passed_us) {
            let is_gone = |seen: &&VisibleEntry| {
                seen.visible_at_us <= border_us
                    && !visible.iter().any(|there| there.entry == seen.entry)
            };
            let (mut gone, mut unannounced) = (0.0, 0.0);
            for seen in self.seen.iter().filter(is_gone) {
                gone += 1.0;
                unannounced += if is_announced(seen.entry) { 0.0 } else { 1.0 };
            }
            // Of those that others choose among, only the first are seen.
            let all = (self.k as f64 / SEEN_MAX as f64).max(1.0);
            fade(&mut self.gone, gone * all);
            fade(&mut self.unannounced, unannounced * all);
            fade(&mut self.passed_s, passed_us as f64 / 1e6);
            self.reads = self.reads.saturating_add(1);
        }
        self.seen.clear();
        self.seen.extend(visible.iter().take(SEEN_MAX).copied());
        self.seen_at_us = now_us;
    }

    /// These were chosen here: that they are gone from the next read says nothing.
    pub(crate) fn chose(&mut self, entries: impl Iterator<Item = EntryName>) {
        for entry in entries {
            if let Some(place) = self.seen.iter().position(|seen| seen.entry == entry) {
                self.seen.swap_remove(place);
            }
        }
    }

    /// So many were delivered, and so long after the read their entries were gone.
    pub(crate) fn delivered(&mut self, count: usize, window: Duration) {
        if count == 0 {
            return;
        }
        let window_s = window.as_secs_f64();
        // The first ones weigh more, so that one of them is not believed for long.
        let weight = (1.0 / (1.0 + self.delivered)).max(4.0 / READS_REMEMBERED);
        self.window_s += (window_s - self.window_s) * weight;
        fade(&mut self.duplicates, 0.0);
        fade(&mut self.k_of_delivered, (count * self.k) as f64);
        fade(&mut self.delivered, count as f64);
    }

    /// One of those that were delivered here was delivered by another front-end, too.
    pub(crate) fn duplicated(&mut self) {
        self.duplicates += 1.0;
    }
}

/// Reads that are further apart say nothing: claims in between may be forgotten.
const RECENT_US: i64 = 4_000_000;

/// Adds to a sum what is new, while what is old fades away.
fn fade(sum: &mut f64, more: f64) {
    *sum = *sum * (1.0 - 1.0 / READS_REMEMBERED) + more;
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const TARGET: f64 = 0.005;

    fn seen(number: i64) -> VisibleEntry {
        let entry = EntryName { message: Uuid::from_u128(number as u128), written_at_us: number };
        VisibleEntry { entry, visible_at_us: number }
    }

    /// A read each 100 ms, between which others take so many of the oldest, and this one takes one.
    fn observed(auto: &mut AutoHint, reads: i64, others_take: i64, is_announced: bool) {
        for read in 1..=reads {
            let first = read * (others_take + 1);
            let visible: Vec<VisibleEntry> = (first..first + 40).map(seen).collect();
            auto.on_head_read(read * 100_000, &visible, false, |_| is_announced);
            auto.chose([visible[0].entry].into_iter());
            auto.delivered(1, Duration::from_millis(10));
        }
    }

    #[test]
    fn alone_or_among_those_who_announce_what_they_take_it_is_one() {
        let mut auto = AutoHint::default();
        assert_eq!(auto.k(Others::Silent, TARGET), FIRST_K);
        assert_eq!(auto.k(Others::None, TARGET), 1);
        observed(&mut auto, 100, 3, true);
        assert_eq!(auto.k(Others::Announcing, TARGET), 1);
    }

    #[test]
    fn it_grows_with_what_others_take_without_a_word_and_falls_when_they_end() {
        let mut auto = AutoHint::default();
        // 30 a second, 10 ms each: 0.3 of them at the same time, and 0.85 of 0.005 may be.
        observed(&mut auto, 300, 3, false);
        let k = auto.k(Others::Silent, TARGET);
        assert!((70..=72).contains(&k), "{k}");
        assert_eq!(auto.k(Others::None, TARGET), 1, "when they have died");
        observed(&mut auto, 3_000, 0, false);
        assert_eq!(auto.k(Others::Silent, TARGET), 1);
    }

    #[test]
    fn duplicates_that_are_seen_make_it_larger_whatever_is_expected() {
        let mut auto = AutoHint::default();
        observed(&mut auto, 300, 0, false);
        assert_eq!(auto.k(Others::Announcing, TARGET), 1);
        for _ in 0..20 {
            auto.duplicated();
            observed(&mut auto, 10, 0, false);
        }
        let k = auto.k(Others::Announcing, TARGET);
        assert!((10..=22).contains(&k), "10 of 100 are duplicates, twenty times what may be: {k}");
    }

    #[test]
    fn it_is_bounded_whatever_happens() {
        let mut auto = AutoHint::default();
        for read in 1..1_000 {
            let visible: Vec<VisibleEntry> = (read * 100..read * 100 + 100).map(seen).collect();
            auto.on_head_read(read, &visible, true, |_| false);
            auto.delivered(1, Duration::from_secs(3_600));
            auto.duplicated();
            assert!((1..=K_MAX).contains(&auto.k(Others::Silent, 0.0)));
            assert!(auto.seen.len() <= SEEN_MAX);
        }
    }

    #[test]
    fn reads_that_are_far_apart_say_nothing() {
        let mut auto = AutoHint::default();
        for read in 1..100 {
            auto.on_head_read(read * RECENT_US, &[seen(read)], true, |_| false);
            auto.delivered(1, Duration::from_millis(10));
        }
        assert_eq!(auto.unannounced, 0.0);
    }
}

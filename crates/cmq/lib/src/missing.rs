//! What is missing of one sender's numbered messages. A number far ahead costs no more than a near one:
//! what nobody has asked for yet is kept as ranges, and asked for a few at a time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quelea_cmq_proto::Time;

/// Numbers that one report names: what a small datagram holds.
const REPORT_MAX: usize = 64;

/// How patient a [`GapDetector`](crate::GapDetector) is.
#[derive(Clone, Copy, Debug)]
pub struct GapDetectorOptions {
    /// How long after a report the same message is reported again.
    pub ask_again_after: Duration,
    /// How often a message is reported before it counts as lost.
    pub asks_max: u32,
    /// Messages of one sender that may be missing; the oldest count as lost beyond.
    pub missing_max: usize,
}

impl Default for GapDetectorOptions {
    fn default() -> Self {
        // A round trip in a data centre is a fraction of this.
        Self { ask_again_after: Duration::from_millis(5), asks_max: 10, missing_max: 4_096 }
    }
}

/// The missing numbers of one sender.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The number that comes next.
    next: u64,
    /// Never asked for: from the key to the value, which is not one of them.
    unasked: BTreeMap<u64, u64>,
    /// How many numbers these are.
    unasked_count: u64,
    /// How often each of the others was asked for.
    asked: BTreeMap<u64, u32>,
    /// When to ask for them again, the first first. Some may have come meanwhile.
    again: VecDeque<(Time, u64)>,
}

impl Missing {
    /// Creates the record of a sender that is at the number `at` when it is first heard: what is
    /// long past was pushed before anybody watched, and is not missed.
    pub(crate) const fn of_sender_at(at: u64, options: &GapDetectorOptions) -> Self {
        Self {
            next: at.saturating_sub(options.missing_max as u64),
            unasked: BTreeMap::new(),
            unasked_count: 0,
            asked: BTreeMap::new(),
            again: VecDeque::new(),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.unasked_count + self.asked.len() as u64
    }

    /// Takes down that all below `next` were pushed; returns how many of them are lost, because too
    /// many are missing.
    pub(crate) fn expect(&mut self, next: u64, options: &GapDetectorOptions) -> u64 {
        if next <= self.next {
            return 0;
        }
        let max = options.missing_max as u64;
        let from = self.next.max(next.saturating_sub(max));
        let skipped = from - self.next;
        if from < next {
            self.unasked.insert(from, next);
            self.unasked_count += next - from;
        }
        self.next = next;
        skipped.saturating_add(self.shrink(max))
    }

    /// Takes down that `number` came; returns whether it is new, and how many are lost as
    /// [`expect`](Self::expect) does.
    pub(crate) fn came(&mut self, number: u64, options: &GapDetectorOptions) -> (bool, u64) {
        if number < self.next {
            return (self.forget(number), 0);
        }
        let lost = self.expect(number, options);
        self.next = number.saturating_add(1);
        (true, lost)
    }

    /// Takes down that `number` is not missing any more; returns whether it was.
    pub(crate) fn forget(&mut self, number: u64) -> bool {
        if self.asked.remove(&number).is_some() {
            // Few of those in line are gone already, so that this is seldom.
            if self.again.len() > 2 * self.asked.len() + REPORT_MAX {
                self.again.retain(|(_, number)| self.asked.contains_key(number));
            }
            return true;
        }
        let Some((from, to)) = self.unasked.range(..=number).next_back() else { return false };
        let (from, to) = (*from, *to);
        if to <= number {
            return false;
        }
        self.unasked.remove(&from);
        for (from, to) in [(from, number), (number + 1, to)] {
            if from < to {
                self.unasked.insert(from, to);
            }
        }
        self.unasked_count -= 1;
        true
    }

    /// Forgets the oldest until no more than `max` are missing; returns how many.
    pub(crate) fn shrink(&mut self, max: u64) -> u64 {
        let excess = self.count().saturating_sub(max);
        let mut left = excess;
        while left > 0 {
            let unasked = self.unasked.first_key_value().map(|(from, to)| (*from, *to));
            let asked = self.asked.first_key_value().map(|(number, _)| *number);
            match (unasked, asked) {
                (Some((from, to)), asked) if asked.is_none_or(|asked| from < asked) => {
                    // Those that were asked for may lie behind it, not within.
                    let gone = left.min(to - from);
                    self.unasked.remove(&from);
                    if from + gone < to {
                        self.unasked.insert(from + gone, to);
                    }
                    self.unasked_count -= gone;
                    left -= gone;
                }
                _ => {
                    self.asked.pop_first();
                    left -= 1;
                }
            }
        }
        if self.asked.is_empty() {
            self.again.clear();
        }
        excess
    }

    /// Takes the numbers to ask for now; returns them, and how many are lost because they were
    /// asked for often enough.
    pub(crate) fn take_requests(
        &mut self,
        now: Time,
        options: &GapDetectorOptions,
    ) -> (Vec<u64>, u64) {
        let (mut numbers, mut lost) = (Vec::new(), 0);
        let again_at = now.after(options.ask_again_after);
        for _ in 0..self.again.len() {
            let Some((at, number)) = self.again.front().copied() else { break };
            if at > now || numbers.len() == REPORT_MAX {
                break;
            }
            self.again.pop_front();
            match self.asked.get_mut(&number) {
                Some(asks) if *asks < options.asks_max => {
                    *asks += 1;
                    numbers.push(number);
                    self.again.push_back((again_at, number));
                }
                Some(_) => {
                    self.asked.remove(&number);
                    lost += 1;
                }
                None => {}
            }
        }
        if options.asks_max == 0 {
            lost += std::mem::take(&mut self.unasked_count);
            self.unasked.clear();
        }
        while numbers.len() < REPORT_MAX
            && let Some((from, to)) = self.unasked.pop_first()
        {
            if from + 1 < to {
                self.unasked.insert(from + 1, to);
            }
            self.unasked_count -= 1;
            self.asked.insert(from, 1);
            self.again.push_back((again_at, from));
            numbers.push(from);
        }
        (numbers, lost)
    }

    /// Returns when to ask next; `now` if there is more than one report names.
    pub(crate) fn ask_at(&self, now: Time) -> Option<Time> {
        if self.unasked.is_empty() { self.again.front().map(|(at, _)| *at) } else { Some(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(missing_max: usize) -> GapDetectorOptions {
        GapDetectorOptions { missing_max, asks_max: 2, ..GapDetectorOptions::default() }
    }

    #[test]
    fn what_comes_late_is_new_once() {
        let options = options(100);
        let mut missing = Missing::of_sender_at(0, &options);
        assert_eq!(missing.came(0, &options), (true, 0));
        assert_eq!(missing.came(5, &options), (true, 0));
        assert_eq!(missing.count(), 4);
        assert_eq!(missing.came(3, &options), (true, 0));
        assert_eq!(missing.came(3, &options), (false, 0));
        let now = Time::from_micros(1);
        assert_eq!(missing.take_requests(now, &options), (vec![1, 2, 4], 0));
        assert_eq!(missing.came(2, &options), (true, 0));
        assert_eq!(missing.came(2, &options), (false, 0));
        assert_eq!(missing.came(0, &options), (false, 0));
        let again = missing.ask_at(now).unwrap();
        assert_eq!(missing.take_requests(now, &options), (vec![], 0));
        assert_eq!(missing.take_requests(again, &options), (vec![1, 4], 0));
        let last = missing.ask_at(again).unwrap();
        assert_eq!(missing.take_requests(last, &options), (vec![], 2));
        assert_eq!((missing.count(), missing.ask_at(last)), (0, None));
    }

    #[test]
    fn a_number_far_ahead_costs_a_range() {
        let options = options(100);
        let mut missing = Missing::of_sender_at(0, &options);
        missing.came(0, &options);
        assert_eq!(missing.expect(1_001, &options), 900);
        assert_eq!((missing.count(), missing.unasked.len()), (100, 1));
        assert_eq!(missing.expect(u64::MAX, &options), u64::MAX - 1_001);
        assert_eq!((missing.count(), missing.unasked.len()), (100, 1));
        assert_eq!(missing.expect(u64::MAX, &options), 0);
    }

    #[test]
    fn the_oldest_make_room_asked_for_or_not() {
        let options = options(100);
        let mut missing = Missing::of_sender_at(0, &options);
        missing.came(0, &options);
        missing.expect(91, &options);
        let (asked, _) = missing.take_requests(Time::from_micros(1), &options);
        assert_eq!(asked, (1..=64).collect::<Vec<_>>());
        assert_eq!(missing.expect(161, &options), 60);
        assert!(!missing.forget(60));
        assert!(missing.forget(61) && missing.forget(160));
        assert_eq!(missing.shrink(10), 88);
        assert_eq!(missing.count(), 10);
        assert!(!missing.forget(149) && missing.forget(150));
    }

    #[test]
    fn the_line_holds_no_more_than_what_is_asked_for() {
        let options = options(100);
        let mut missing = Missing::of_sender_at(0, &options);
        missing.came(0, &options);
        for number in 0..10_000_u64 {
            missing.came(number * 2, &options);
            missing.take_requests(Time::from_micros(1), &options);
            missing.forget(number * 2 - u64::from(number > 0));
        }
        assert_eq!(missing.count(), 0);
        assert!(missing.again.len() <= REPORT_MAX);
    }

    #[test]
    fn a_sender_heard_late_is_not_asked_for_everything() {
        let options = options(100);
        let mut missing = Missing::of_sender_at(1_000_000, &options);
        assert_eq!(missing.came(1_000_000, &options), (true, 0));
        assert_eq!(missing.count(), 100);
    }
}

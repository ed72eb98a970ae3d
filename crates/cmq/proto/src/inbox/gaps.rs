//! What is missing in a flow, and how many messages that makes.

use std::collections::VecDeque;

use crate::Time;

/// Gaps of one flow that are kept apart; beyond, the two oldest become one.
pub(super) const GAPS_MAX: usize = 256;

/// Consecutive sequences that were skipped together. The messages in them are known, since the
/// datagrams around them number theirs; how many are in which is not.
#[derive(Debug)]
struct Gap {
    first: u64,
    past: u64,
    /// Sequences in it that neither came nor were given up.
    open: u64,
    /// Messages that are missing with them; none if the flow was not known when they were sent.
    messages: Option<u64>,
    since: Time,
}

/// The gaps of a flow, ascending.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    list: VecDeque<Gap>,
}

impl Gaps {
    /// Returns when the oldest gap was seen.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.list.front().map(|gap| gap.since)
    }

    /// Returns where the oldest gap begins, and where it ends.
    pub(super) fn oldest_range(&self) -> Option<(u64, u64)> {
        self.list.front().map(|gap| (gap.first, gap.past))
    }

    /// Sequences were skipped, above all that were before.
    pub(super) fn open(&mut self, first: u64, past: u64, messages: Option<u64>, now: Time) {
        if self.list.len() == GAPS_MAX
            && let Some(oldest) = self.list.pop_front()
            && let Some(next) = self.list.front_mut()
        {
            next.first = oldest.first;
            next.open += oldest.open;
            next.messages = next
                .messages
                .zip(oldest.messages)
                .map(|(next, oldest)| next.saturating_add(oldest));
            next.since = oldest.since;
        }
        self.list.push_back(Gap { first, past, open: past - first, messages, since: now });
    }

    /// Returns whether a missing datagram can have so many messages.
    pub(super) fn has_room_for(&self, sequence: u64, count: u16) -> bool {
        self.find(sequence).is_some_and(|at| {
            self.list[at].messages.is_none_or(|messages| messages >= u64::from(count))
        })
    }

    /// Takes down that a missing datagram came, with `count` messages. Returns the messages that
    /// are lost for good because nothing else of the gap can bring them: fragments that begin
    /// nowhere, or a lie.
    pub(super) fn fill(&mut self, sequence: u64, count: u16) -> u64 {
        let Some(at) = self.find(sequence) else { return 0 };
        let gap = &mut self.list[at];
        gap.open = gap.open.saturating_sub(1);
        gap.messages = gap.messages.map(|messages| messages.saturating_sub(u64::from(count)));
        if gap.open > 0 {
            return 0;
        }
        self.list.remove(at).and_then(|gap| gap.messages).unwrap_or(0)
    }

    /// Gives up what is missing below `floor`: it will not come; `missing(first, past)` says how
    /// many of a range did not. Returns the messages that are lost with them. What a gap has above
    /// `floor` keeps its messages.
    pub(super) fn give_up_below(&mut self, floor: u64, missing: impl Fn(u64, u64) -> u64) -> u64 {
        let mut lost = 0;
        while let Some(gap) = self.list.front_mut()
            && gap.first < floor
        {
            if floor < gap.past {
                gap.open = missing(floor, gap.past);
                gap.first = floor;
            } else {
                gap.open = 0;
            }
            if gap.open > 0 {
                break;
            }
            let messages = self.list.pop_front().and_then(|gap| gap.messages);
            lost = u64::saturating_add(lost, messages.unwrap_or(0));
        }
        lost
    }

    fn find(&self, sequence: u64) -> Option<usize> {
        let after = self.list.partition_point(|gap| gap.past <= sequence);
        self.list.get(after).filter(|gap| gap.first <= sequence).map(|_| after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(of: &[(u64, u64, u64)]) -> Gaps {
        let mut gaps = Gaps::default();
        for &(first, past, messages) in of {
            gaps.open(first, past, Some(messages), Time::from_micros(first));
        }
        gaps
    }

    #[test]
    fn messages_come_back_with_their_datagrams() {
        let mut gaps = gaps(&[(1, 3, 10), (5, 6, 7)]);
        assert_eq!(gaps.fill(2, 4), 0);
        assert_eq!(gaps.fill(5, 7), 0);
        assert_eq!(gaps.list.len(), 1);
        assert_eq!(gaps.give_up_below(4, |_, _| 0), 6, "the six of datagram 1");
        assert!(gaps.list.is_empty());
    }

    #[test]
    fn a_gap_given_up_in_part_loses_messages_once_it_ends() {
        let mut gaps = gaps(&[(1, 5, 10)]);
        assert_eq!(gaps.give_up_below(3, |first, past| past - first), 0);
        assert_eq!(gaps.fill(3, 2), 0);
        assert_eq!(gaps.fill(4, 3), 5, "five were in datagrams 1 and 2");
    }

    #[test]
    fn the_oldest_gaps_become_one_when_there_are_too_many() {
        let mut gaps = Gaps::default();
        let count = GAPS_MAX as u64 + 10;
        for at in 0..count {
            gaps.open(2 * at, 2 * at + 1, Some(3), Time::from_micros(at));
        }
        assert_eq!(gaps.list.len(), GAPS_MAX);
        assert_eq!(gaps.oldest(), Some(Time::ZERO));
        assert_eq!(gaps.fill(4, 1), 0);
        assert_eq!(gaps.give_up_below(2 * count, |_, _| 0), 3 * count - 1);
    }
}

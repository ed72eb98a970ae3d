//! Which message of a queue may be received next where messages have groups: in a FIFO queue only the
//! oldest of a group, and none behind one in flight; in a fair queue those of quiet groups first.
//!
//! A group id is kept as a hash of 64 bits: two ids that share one only wait for each other.

use std::collections::{BTreeMap, BTreeSet, btree_map, hash_map};
use std::iter::Chain;

use quelea_model::{Message, Seq, Timestamp};
use rustc_hash::FxHashMap;

use super::attempts::Attempts;

/// The header that names a message's group.
pub const GROUP_HEADER: &str = "x-message-group-id";

/// The group of messages that have none. In a fair queue they are never noisy.
pub(crate) const NO_GROUP: u64 = 0;

/// A group is noisy from so many of its messages in flight on, if they are more than a tenth of all
/// (developer guide of SQS, "Fair queues").
const NOISY_IN_FLIGHT_MIN: usize = 30;
/// The share of what is in flight, and of the time spent on messages, that a quiet group has at most.
const QUIET_SHARE: u64 = 10;
/// One in so many choices is of a noisy group, if there is one.
const NOISY_TURN: u32 = 10;
/// Time that was spent on messages counts half after this.
const BUSY_HALF_LIFE_MS: u64 = 60_000;

/// Returns the number that stands for a group id; never that of no group. FNV-1a of 64 bits, which
/// is the same in every version.
pub(crate) fn group_of_id(id: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = id.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash.max(1)
}

/// Returns the group that a message's headers name.
pub(crate) fn group_of(message: &Message) -> u64 {
    let headers = message.property_view().headers();
    let id = headers.as_ref().and_then(|headers| headers.get(GROUP_HEADER)?.as_text());
    id.map_or(NO_GROUP, group_of_id)
}

/// What groups mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    /// A group's messages come one after the other.
    Fifo,
    /// A group that takes more than its share comes last.
    Fair,
}

/// A group's place among the others: the number of its oldest message, or that of the queue's newest
/// when one of its messages came back; of those that came back behind the same one, which was first.
type Place = (Seq, u64);

#[derive(Debug, Default)]
struct Group {
    ready: BTreeSet<Seq>,
    /// Messages whose delay is not over: in a FIFO queue later ones wait for them.
    delayed: BTreeSet<Seq>,
    /// Messages in flight: in a FIFO queue later ones wait for them.
    in_flight: BTreeSet<Seq>,
    /// Where it stands among the others, if it may be received from.
    head: Option<Place>,
    /// Where it stands since one of its messages came back, until it is received from again.
    came_back: Option<Place>,
    busy: BusyTime,
    is_noisy: bool,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.delayed.is_empty() && self.in_flight.is_empty()
    }

    /// Returns the message that is next. In a FIFO queue it is behind none that is delayed or in
    /// flight, but those up to `received`, which the same receive has.
    fn next(&self, ordering: Ordering, received: Option<Seq>) -> Option<Seq> {
        let first = *self.ready.first()?;
        if ordering == Ordering::Fair {
            return Some(first);
        }
        let from = received.map_or(Seq(0), Seq::next);
        // What is back with a smaller number goes first, and then the others' wait for it.
        let waits = from > first
            || self.in_flight.range(from..first).next().is_some()
            || self.delayed.first().is_some_and(|delayed| *delayed < first);
        (!waits).then_some(first)
    }

    /// A message is not in flight any more.
    fn leave_flight(&mut self, seq: Seq) {
        self.delayed.remove(&seq);
        self.in_flight.remove(&seq);
    }
}

/// Time that was spent on messages, less and less the longer ago.
#[derive(Clone, Copy, Debug, Default)]
struct BusyTime {
    ms: u64,
    at: Timestamp,
}

impl BusyTime {
    fn at(self, now: Timestamp) -> u64 {
        let halvings = now.since_ms(self.at) / BUSY_HALF_LIFE_MS;
        self.ms.checked_shr(halvings.min(64) as u32).unwrap_or(0)
    }

    fn add(&mut self, ms: u64, now: Timestamp) {
        let halvings = now.since_ms(self.at) / BUSY_HALF_LIFE_MS;
        self.ms = self.at(now).saturating_add(ms);
        if halvings > 0 || self.at == Timestamp::ZERO {
            self.at = now;
        }
    }
}

/// The groups of one queue's messages, visible and in flight ones.
#[derive(Debug)]
pub(crate) struct Groups {
    ordering: Ordering,
    groups: FxHashMap<u64, Group>,
    of: FxHashMap<Seq, u64>,
    /// The groups that may be received from, by their places; of a fair queue the quiet ones.
    heads: BTreeMap<Place, u64>,
    /// The same of noisy groups.
    noisy_heads: BTreeMap<Place, u64>,
    in_flight: usize,
    /// The number of the newest message so far.
    newest: Seq,
    /// Messages that came back so far.
    returns: u64,
    busy: BusyTime,
    /// Receives of a FIFO queue that may be repeated.
    pub(crate) attempts: Attempts,
    /// Messages were recovered whose groups have not been read yet: nothing can be chosen.
    pub(crate) is_unknown: bool,
    /// Up to this number they have been asked for.
    pub(crate) read_to: Seq,
    /// Choices made while a noisy group waited: every so many are its.
    choices: u32,
}

impl Groups {
    pub(crate) fn new(ordering: Ordering) -> Self {
        Self {
            ordering,
            groups: FxHashMap::default(),
            of: FxHashMap::default(),
            heads: BTreeMap::new(),
            noisy_heads: BTreeMap::new(),
            in_flight: 0,
            newest: Seq(0),
            returns: 0,
            busy: BusyTime::default(),
            attempts: Attempts::default(),
            is_unknown: false,
            read_to: Seq(0),
            choices: 0,
        }
    }

    /// Returns what it takes of the memory, about: maps' entries and sets' leaves.
    pub(crate) fn bytes(&self) -> usize {
        const MESSAGE_BYTES: usize = 64;
        const GROUP_BYTES: usize = 256;
        self.of.len() * MESSAGE_BYTES + self.groups.len() * GROUP_BYTES
    }

    pub(crate) const fn ordering(&self) -> Ordering {
        self.ordering
    }

    /// Returns whether a message's group is known.
    pub(crate) fn knows(&self, seq: Seq) -> bool {
        self.of.contains_key(&seq)
    }

    /// Returns the group of a message that is here.
    pub(crate) fn group_of(&self, seq: Seq) -> u64 {
        self.of.get(&seq).copied().unwrap_or(NO_GROUP)
    }

    /// A message that is visible came in.
    pub(crate) fn add_visible(&mut self, seq: Seq, group: u64) {
        self.note(seq, group);
        self.change(group, |state| {
            state.ready.insert(seq);
        });
    }

    fn note(&mut self, seq: Seq, group: u64) {
        self.of.insert(seq, group);
        self.newest = self.newest.max(seq);
    }

    /// A message that is not visible is found after a start.
    pub(crate) fn add_invisible(&mut self, seq: Seq, group: u64, is_delayed: bool) {
        if is_delayed { self.add_delayed(seq, group) } else { self.add_in_flight(seq, group) }
    }

    /// A message that is delayed came in.
    pub(crate) fn add_delayed(&mut self, seq: Seq, group: u64) {
        self.note(seq, group);
        self.change(group, |state| {
            state.delayed.insert(seq);
        });
    }

    /// A message that is in flight came in.
    pub(crate) fn add_in_flight(&mut self, seq: Seq, group: u64) {
        self.note(seq, group);
        self.change(group, |state| {
            state.in_flight.insert(seq);
        });
    }

    /// Returns the message that is to be received next. `received` is the last one that the same
    /// receive has: it goes on with its group as long as it can.
    pub(crate) fn next(&mut self, received: Option<Seq>) -> Option<Seq> {
        if let (Ordering::Fifo, Some(last)) = (self.ordering, received)
            && let Some(group) = self.groups.get(&self.group_of(last))
            && let Some(seq) = group.next(self.ordering, received)
        {
            return Some(seq);
        }
        if let Some(group) = self.noisy_heads.first_key_value().map(|(_, group)| *group) {
            self.choices = self.choices.wrapping_add(1);
            if self.choices.is_multiple_of(NOISY_TURN) {
                // It may be quiet by now; and if not, later does not mean never.
                self.change(group, |_| {});
                return self.next_of(group);
            }
        }
        while let Some(group) = self.heads.first_key_value().map(|(_, group)| *group) {
            if self.ordering == Ordering::Fifo || !self.is_noisy(group) {
                return self.next_of(group);
            }
            // It has become noisy while others grew quiet.
            self.change(group, |_| {});
        }
        let group = self.noisy_heads.first_key_value().map(|(_, group)| *group)?;
        self.next_of(group)
    }

    fn next_of(&self, group: u64) -> Option<Seq> {
        self.groups.get(&group)?.next(self.ordering, None)
    }

    /// Returns what one receive of a FIFO queue gets, in order: of each group all that may be
    /// received, one group after the other.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = Seq> {
        let groups = self.heads.values().filter_map(|group| self.groups.get(group));
        let runs = groups.flat_map(|group| {
            let waited_for = [group.in_flight.first(), group.delayed.first()];
            let barrier = waited_for.into_iter().flatten().min().copied();
            group.ready.range(..barrier.unwrap_or(Seq(u64::MAX)))
        });
        runs.copied()
    }

    /// A message was received.
    pub(crate) fn mark_in_flight(&mut self, seq: Seq) {
        let group = *self.of.entry(seq).or_insert(NO_GROUP);
        self.change(group, |state| {
            state.ready.remove(&seq);
            state.in_flight.insert(seq);
            state.came_back = None;
        });
    }

    /// A message that was in flight is visible again: in a FIFO queue its group stands behind all that
    /// are there, so that one that fails time and again is in nobody's way.
    pub(crate) fn mark_returned(&mut self, seq: Seq) {
        let group = self.of.get(&seq).filter(|_| self.ordering == Ordering::Fifo);
        if let Some(group) = group.and_then(|group| self.groups.get_mut(group))
            && group.in_flight.contains(&seq)
        {
            self.returns += 1;
            // Brought up to date with the message's own place.
            group.came_back = Some((self.newest, self.returns));
        }
        self.mark_visible(seq);
    }

    /// A message in flight, or one that was delayed, became visible.
    pub(crate) fn mark_visible(&mut self, seq: Seq) {
        let Some(group) = self.of.get(&seq).copied() else {
            // It will be read for its group, or it was out before groups mattered.
            if !self.is_unknown {
                self.add_visible(seq, NO_GROUP);
            }
            return;
        };
        self.change(group, |state| {
            state.leave_flight(seq);
            state.ready.insert(seq);
        });
    }

    /// A visible message is gone.
    pub(crate) fn remove_visible(&mut self, seq: Seq) {
        if let Some(group) = self.of.remove(&seq) {
            self.change(group, |state| {
                state.ready.remove(&seq);
            });
        }
    }

    /// A message in flight is gone; it was worked on for so long.
    pub(crate) fn remove_in_flight(&mut self, seq: Seq, busy_ms: u64, now: Timestamp) {
        if let Some(group) = self.of.remove(&seq) {
            self.busy.add(busy_ms, now);
            self.change(group, |state| {
                state.leave_flight(seq);
                state.busy.add(busy_ms, now);
            });
        }
    }

    /// Forgets all messages but these, which are delayed or in flight. Returns what is left of the
    /// others.
    pub(crate) fn keep_only(&mut self, kept: impl Iterator<Item = Seq>) -> ForgottenGroups {
        let groups = std::mem::take(&mut self.groups);
        let of = std::mem::take(&mut self.of);
        self.in_flight = 0;
        for seq in kept {
            let Some((group, old)) = of.get(&seq).and_then(|id| Some((*id, groups.get(id)?)))
            else {
                continue;
            };
            self.of.insert(seq, group);
            let state = self.groups.entry(group).or_insert_with(|| Group {
                came_back: old.came_back,
                busy: old.busy,
                ..Group::default()
            });
            if old.delayed.contains(&seq) {
                state.delayed.insert(seq);
            } else {
                self.in_flight += usize::from(state.in_flight.insert(seq));
            }
        }
        let heads = std::mem::take(&mut self.heads).into_iter();
        let noisy_heads = std::mem::take(&mut self.noisy_heads);
        ForgottenGroups { groups: groups.into_iter(), heads: heads.chain(noisy_heads), group: None }
    }

    fn is_noisy(&self, group: u64) -> bool {
        let Some(state) = self.groups.get(&group).filter(|_| group != NO_GROUP) else {
            return false;
        };
        let in_flight = state.in_flight.len();
        let many = in_flight >= NOISY_IN_FLIGHT_MIN
            && in_flight as u64 * QUIET_SHARE > self.in_flight as u64;
        // Alone it cannot be in anybody's way.
        let busy = self.groups.len() > 1
            && state.busy.at(self.busy.at).saturating_mul(QUIET_SHARE) > self.busy.ms;
        many || busy
    }

    /// Changes a group and brings its place among the heads up to date.
    fn change(&mut self, group: u64, change: impl FnOnce(&mut Group)) {
        let state = self.groups.entry(group).or_default();
        if let Some(head) = state.head.take() {
            let heads = if state.is_noisy { &mut self.noisy_heads } else { &mut self.heads };
            heads.remove(&head);
        }
        self.in_flight -= state.in_flight.len();
        change(state);
        self.in_flight += state.in_flight.len();
        if state.is_empty() {
            self.groups.remove(&group);
            return;
        }
        let head = state.next(self.ordering, None).map(|seq| (seq, 0));
        let head = head.map(|head| state.came_back.map_or(head, |place| place.max(head)));
        state.head = head;
        let is_noisy = self.ordering == Ordering::Fair && self.is_noisy(group);
        if let Some(state) = self.groups.get_mut(&group) {
            state.is_noisy = is_noisy;
        }
        if let Some(head) = head {
            let heads = if is_noisy { &mut self.noisy_heads } else { &mut self.heads };
            heads.insert(head, group);
        }
    }
}

/// Groups whose messages are gone: they may be many, so they are dropped bit by bit.
#[derive(Debug)]
pub(crate) struct ForgottenGroups {
    groups: hash_map::IntoIter<u64, Group>,
    heads: Chain<btree_map::IntoIter<Place, u64>, btree_map::IntoIter<Place, u64>>,
    /// The one whose messages are next.
    group: Option<Group>,
}

impl ForgottenGroups {
    /// Drops a message, a group or a place. False: there are no more.
    pub(crate) fn drop_one(&mut self) -> bool {
        if let Some(group) = &mut self.group {
            let sets = [&mut group.ready, &mut group.delayed, &mut group.in_flight];
            if sets.into_iter().any(|seqs| seqs.pop_first().is_some()) {
                return true;
            }
        }
        self.group = self.groups.next().map(|(_, group)| group);
        self.group.is_some() || self.heads.next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(ordering: Ordering, messages: &[(u64, u64)]) -> Groups {
        let mut groups = Groups::new(ordering);
        messages.iter().for_each(|(seq, group)| groups.add_visible(Seq(*seq), *group));
        groups
    }

    #[test]
    fn a_group_waits_while_one_of_its_messages_is_in_flight() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (2, 7), (3, 8)]);
        assert_eq!(groups.next(None), Some(Seq(1)));
        groups.mark_in_flight(Seq(1));
        assert_eq!(groups.next(None), Some(Seq(3)), "the other group's");
        assert_eq!(groups.next(Some(Seq(1))), Some(Seq(2)), "the same receive may take it");
        groups.mark_in_flight(Seq(3));
        assert_eq!(groups.next(None), None);
        groups.remove_in_flight(Seq(1), 5, Timestamp::from_millis(5));
        assert_eq!(groups.next(None), Some(Seq(2)));
        groups.mark_visible(Seq(3));
        groups.mark_in_flight(Seq(2));
        assert_eq!(groups.next(None), Some(Seq(3)));
    }

    #[test]
    fn a_message_that_is_visible_again_comes_before_those_behind_it() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (2, 7)]);
        groups.mark_in_flight(Seq(1));
        groups.mark_visible(Seq(1));
        assert_eq!(groups.next(None), Some(Seq(1)));
    }

    #[test]
    fn only_what_stands_behind_a_message_in_flight_waits() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (2, 7), (3, 7)]);
        groups.mark_in_flight(Seq(1));
        groups.mark_in_flight(Seq(2));
        groups.mark_visible(Seq(1));
        assert_eq!(groups.next(None), Some(Seq(1)));
        assert!(groups.upcoming().eq([Seq(1)]));
        groups.mark_in_flight(Seq(1));
        assert_eq!(groups.next(Some(Seq(1))), None, "the second is another receive's");
        groups.mark_visible(Seq(2));
        assert_eq!(groups.next(Some(Seq(1))), Some(Seq(2)));
        assert_eq!(groups.next(None), None);
    }

    #[test]
    fn a_group_whose_message_came_back_stands_behind_those_that_are_there() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (2, 7), (3, 8), (4, 9)]);
        groups.mark_in_flight(Seq(1));
        groups.mark_in_flight(Seq(3));
        groups.mark_returned(Seq(3));
        groups.mark_returned(Seq(1));
        groups.add_visible(Seq(5), 10);
        assert!(groups.upcoming().eq([4, 3, 1, 2, 5].map(Seq)));
        for seq in [4, 3, 1] {
            assert_eq!(groups.next(None), Some(Seq(seq)));
            groups.mark_in_flight(Seq(seq));
        }
        groups.remove_in_flight(Seq(1), 0, Timestamp::ZERO);
        assert_eq!(groups.next(None), Some(Seq(2)), "it has its old place again");
    }

    #[test]
    fn a_noisy_group_waits_for_the_quiet_ones() {
        let messages: Vec<_> = (1..=100).map(|seq| (seq, 7)).collect();
        let mut groups = groups(Ordering::Fair, &messages);
        for seq in 1..=40 {
            assert_eq!(groups.next(None), Some(Seq(seq)));
            groups.mark_in_flight(Seq(seq));
        }
        groups.add_visible(Seq(101), 8);
        groups.add_visible(Seq(102), NO_GROUP);
        assert_eq!(groups.next(None), Some(Seq(101)), "the quiet group's comes first");
        groups.mark_in_flight(Seq(101));
        assert_eq!(groups.next(None), Some(Seq(102)));
        groups.mark_in_flight(Seq(102));
        assert_eq!(groups.next(None), Some(Seq(41)), "and then the noisy one's");
        for seq in 1..=40 {
            groups.mark_visible(Seq(seq));
        }
        assert_eq!(groups.next(None), Some(Seq(1)), "with nothing in flight nobody is noisy");
    }

    #[test]
    fn a_group_that_takes_the_time_is_noisy() {
        let mut groups = groups(Ordering::Fair, &[(1, 7), (2, 7), (3, 8)]);
        groups.mark_in_flight(Seq(1));
        groups.remove_in_flight(Seq(1), 10_000, Timestamp::from_millis(10_000));
        assert_eq!(groups.next(None), Some(Seq(3)));
    }

    #[test]
    fn a_delayed_message_holds_up_those_behind_it_only() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (3, 7)]);
        groups.add_delayed(Seq(2), 7);
        assert_eq!(groups.next(None), Some(Seq(1)));
        groups.mark_in_flight(Seq(1));
        assert_eq!(groups.next(Some(Seq(1))), None, "the third waits for the second");
        groups.remove_in_flight(Seq(1), 0, Timestamp::ZERO);
        assert_eq!(groups.next(None), None);
        groups.mark_visible(Seq(2));
        assert_eq!(groups.next(None), Some(Seq(2)));
    }

    #[test]
    fn a_message_that_shows_before_it_was_read_gets_no_group() {
        let mut groups = Groups::new(Ordering::Fifo);
        groups.is_unknown = true;
        groups.mark_visible(Seq(1));
        assert!(!groups.knows(Seq(1)), "it will be read");
    }

    #[test]
    fn groups_without_messages_are_forgotten() {
        let mut groups = groups(Ordering::Fifo, &[(1, 7), (2, 8)]);
        groups.mark_in_flight(Seq(1));
        groups.remove_in_flight(Seq(1), 0, Timestamp::ZERO);
        groups.remove_visible(Seq(2));
        assert!(groups.groups.is_empty() && groups.of.is_empty() && groups.heads.is_empty());
    }

    #[test]
    fn the_number_of_a_group_never_changes() {
        // The published test vectors of FNV-1a, 64 bits.
        let vectors = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ];
        for (id, group) in vectors {
            assert_eq!(group_of_id(id), group, "{id}");
        }
    }
}

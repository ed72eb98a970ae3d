//! Which entries are being taken, by this front-end and by others, as they tell each other by datagrams. Nobody waits for
//! an answer: a claim is sent when an entry is chosen, and heard by the others long before Cassandra has moved it. Whoever
//! hears of it in time does not choose the entry; two that have chosen it at the same moment both know before they deliver it,
//! and rendezvous hashing says which of them goes on.
//!
//! A claim that was lost costs a duplicate at most, and one of a front-end that died the time that a claim lasts.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{CLAIM_MS, CLAIMS_MAX};
use crate::peers::datagram::EntryName;
use crate::peers::rendezvous::score;

const LASTS: Duration = Duration::from_millis(CLAIM_MS);

/// The claims of all queues.
#[derive(Debug)]
pub(crate) struct Claims {
    me: Uuid,
    queues: FxHashMap<Uuid, FxHashMap<EntryName, Claimed>>,
    /// All of them by their age, with those that are gone already.
    order: VecDeque<(Instant, Uuid, EntryName)>,
}

/// Who has claimed an entry.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    at: Instant,
    mine: Option<Mine>,
    /// The one of the others that wants it most.
    other: Option<Other>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mine {
    Taking,
    Delivered,
}

#[derive(Clone, Copy, Debug)]
struct Other {
    id: Uuid,
    is_delivered: bool,
}

/// What a claim of another front-end means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// It is theirs.
    Theirs,
    /// It is taken here: they have not heard that, and have to hear it again.
    Mine { is_delivered: bool },
    /// Both have delivered it.
    Duplicate,
}

/// Whose an entry is when it could be delivered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is delivered here.
    Mine,
    /// Another front-end delivers it.
    Theirs,
}

impl Claims {
    pub(crate) fn new(me: Uuid) -> Self {
        Self { me, queues: FxHashMap::default(), order: VecDeque::new() }
    }

    /// Returns whether no other front-end takes an entry.
    pub(crate) fn is_free(&self, generation: Uuid, entry: EntryName, now: Instant) -> bool {
        self.live(generation, entry, now).is_none_or(|claimed| claimed.other.is_none())
    }

    /// Returns how many of a queue's entries are claimed.
    #[cfg(test)]
    pub(crate) fn count(&self, generation: Uuid) -> usize {
        self.queues.get(&generation).map_or(0, FxHashMap::len)
    }

    /// An entry was chosen here.
    pub(crate) fn take(&mut self, generation: Uuid, entry: EntryName, now: Instant) {
        if let Some(claimed) = self.entry(generation, entry, now) {
            claimed.mine = Some(Mine::Taking);
        }
    }

    /// Notes that another front-end has chosen an entry, or delivered it. Returns what that means
    /// here.
    pub(crate) fn on_claim(
        &mut self,
        generation: Uuid,
        entry: EntryName,
        from: Uuid,
        is_delivered: bool,
        now: Instant,
    ) -> ClaimOutcome {
        let me = self.me;
        let Some(claimed) = self.entry(generation, entry, now) else { return ClaimOutcome::Theirs };
        if claimed.other.is_none_or(|other| {
            other.id == from || Other { id: from, is_delivered }.wants_more_than(other, entry)
        }) {
            claimed.other = Some(Other { id: from, is_delivered });
        }
        match claimed.mine {
            Some(Mine::Delivered) if is_delivered => ClaimOutcome::Duplicate,
            Some(Mine::Delivered) => ClaimOutcome::Mine { is_delivered: true },
            Some(Mine::Taking) if !claimed.is_theirs(me, entry) => {
                ClaimOutcome::Mine { is_delivered: false }
            }
            Some(Mine::Taking) | None => ClaimOutcome::Theirs,
        }
    }

    /// Settles whose an entry is that could be delivered now, and returns it.
    pub(crate) fn settle(&mut self, generation: Uuid, entry: EntryName, now: Instant) -> Settled {
        let me = self.me;
        let Some(claimed) = self.entry(generation, entry, now) else { return Settled::Mine };
        if claimed.is_theirs(me, entry) {
            claimed.mine = None;
            return Settled::Theirs;
        }
        claimed.mine = Some(Mine::Delivered);
        Settled::Mine
    }

    /// An entry that was chosen here is not taken after all.
    pub(crate) fn release(&mut self, generation: Uuid, entry: EntryName) {
        self.drop_if(generation, entry, |claimed| {
            claimed.mine = None;
            claimed.other.is_none()
        });
    }

    /// Another front-end does not take an entry after all.
    pub(crate) fn receive_release(&mut self, generation: Uuid, entry: EntryName, from: Uuid) {
        self.drop_if(generation, entry, |claimed| {
            if claimed.other.is_some_and(|other| other.id == from) {
                claimed.other = None;
            }
            claimed.mine.is_none() && claimed.other.is_none()
        });
    }

    fn live(&self, generation: Uuid, entry: EntryName, now: Instant) -> Option<&Claimed> {
        let claimed = self.queues.get(&generation)?.get(&entry)?;
        (now.saturating_duration_since(claimed.at) < LASTS).then_some(claimed)
    }

    /// Returns the claims of an entry, made if there are none; `None`: there are too many.
    fn entry(&mut self, generation: Uuid, entry: EntryName, now: Instant) -> Option<&mut Claimed> {
        self.forget_old(now);
        let is_known =
            self.queues.get(&generation).is_some_and(|claims| claims.contains_key(&entry));
        if !is_known {
            if self.order.len() >= CLAIMS_MAX {
                return None;
            }
            self.order.push_back((now, generation, entry));
        }
        let fresh = Claimed { at: now, mine: None, other: None };
        Some(self.queues.entry(generation).or_default().entry(entry).or_insert(fresh))
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((at, generation, entry)) = self.order.front().copied() {
            if now.saturating_duration_since(at) < LASTS {
                return;
            }
            self.order.pop_front();
            // One that was made anew meanwhile has a later place, too.
            self.drop_if(generation, entry, |claimed| claimed.at == at);
        }
    }

    fn drop_if(
        &mut self,
        generation: Uuid,
        entry: EntryName,
        is_over: impl FnOnce(&mut Claimed) -> bool,
    ) {
        let Some(claims) = self.queues.get_mut(&generation) else { return };
        if claims.get_mut(&entry).is_some_and(is_over) {
            claims.remove(&entry);
            if claims.is_empty() {
                self.queues.remove(&generation);
            }
        }
    }
}

impl Claimed {
    /// Returns whether another front-end delivers it.
    fn is_theirs(&self, me: Uuid, entry: EntryName) -> bool {
        let mine = Other { id: me, is_delivered: self.mine == Some(Mine::Delivered) };
        self.other.is_some_and(|other| other.wants_more_than(mine, entry))
    }
}

impl Other {
    /// Returns whether it wants an entry more than another: whoever has delivered it has it, and
    /// then whom rendezvous hashing names.
    fn wants_more_than(self, other: Self, entry: EntryName) -> bool {
        let rank = |one: Self| (one.is_delivered, score(entry.message, one.id), one.id);
        rank(self) > rank(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Uuid = Uuid::from_u128(100);
    const ENTRY: EntryName = EntryName { message: Uuid::from_u128(7), written_at_us: 1 };

    /// Returns two front-ends; the first is the one that rendezvous hashing prefers.
    fn two() -> [(Uuid, Claims); 2] {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let is_a_first = score(ENTRY.message, a) > score(ENTRY.message, b);
        let [first, second] = if is_a_first { [a, b] } else { [b, a] };
        [(first, Claims::new(first)), (second, Claims::new(second))]
    }

    #[test]
    fn whoever_hears_of_a_claim_does_not_choose_the_entry() {
        let (now, [(first, _), (_, mut second)]) = (Instant::now(), two());
        assert!(second.is_free(QUEUE, ENTRY, now));
        assert_eq!(second.on_claim(QUEUE, ENTRY, first, false, now), ClaimOutcome::Theirs);
        assert!(!second.is_free(QUEUE, ENTRY, now));
        assert!(
            second.is_free(QUEUE, EntryName { written_at_us: 2, ..ENTRY }, now),
            "its next entry"
        );
        assert!(second.is_free(first, ENTRY, now), "of another queue");
    }

    #[test]
    fn of_two_that_choose_at_once_one_delivers() {
        let (now, [(first_id, mut first), (second_id, mut second)]) = (Instant::now(), two());
        first.take(QUEUE, ENTRY, now);
        second.take(QUEUE, ENTRY, now);
        assert_eq!(second.on_claim(QUEUE, ENTRY, first_id, false, now), ClaimOutcome::Theirs);
        let heard = first.on_claim(QUEUE, ENTRY, second_id, false, now);
        assert_eq!(heard, ClaimOutcome::Mine { is_delivered: false });
        assert_eq!(second.settle(QUEUE, ENTRY, now), Settled::Theirs);
        assert_eq!(first.settle(QUEUE, ENTRY, now), Settled::Mine);
    }

    #[test]
    fn whoever_has_delivered_says_so_and_the_other_gives_up() {
        let (now, [(first_id, mut first), (second_id, mut second)]) = (Instant::now(), two());
        // The first claim of the second was lost.
        second.take(QUEUE, ENTRY, now);
        assert_eq!(second.settle(QUEUE, ENTRY, now), Settled::Mine);
        first.take(QUEUE, ENTRY, now);
        let heard = second.on_claim(QUEUE, ENTRY, first_id, false, now);
        assert_eq!(heard, ClaimOutcome::Mine { is_delivered: true });
        assert_eq!(first.on_claim(QUEUE, ENTRY, second_id, true, now), ClaimOutcome::Theirs);
        assert_eq!(first.settle(QUEUE, ENTRY, now), Settled::Theirs);
    }

    #[test]
    fn a_duplicate_is_seen() {
        let (now, [(first_id, mut first), (second_id, mut second)]) = (Instant::now(), two());
        for claims in [&mut first, &mut second] {
            claims.take(QUEUE, ENTRY, now);
            assert_eq!(claims.settle(QUEUE, ENTRY, now), Settled::Mine);
        }
        assert_eq!(first.on_claim(QUEUE, ENTRY, second_id, true, now), ClaimOutcome::Duplicate);
        assert_eq!(second.on_claim(QUEUE, ENTRY, first_id, true, now), ClaimOutcome::Duplicate);
    }

    #[test]
    fn a_claim_of_somebody_who_died_ends() {
        let (now, [(first, _), (_, mut second)]) = (Instant::now(), two());
        second.on_claim(QUEUE, ENTRY, first, false, now);
        assert!(!second.is_free(QUEUE, ENTRY, now + LASTS / 2));
        assert!(second.is_free(QUEUE, ENTRY, now + LASTS));
        second.take(QUEUE, ENTRY, now + LASTS);
        assert_eq!(second.settle(QUEUE, ENTRY, now + LASTS), Settled::Mine);
    }

    #[test]
    fn what_is_released_is_free() {
        let (now, [(first, _), (_, mut second)]) = (Instant::now(), two());
        second.on_claim(QUEUE, ENTRY, first, false, now);
        second.receive_release(QUEUE, ENTRY, Uuid::from_u128(3));
        assert!(!second.is_free(QUEUE, ENTRY, now), "it was not theirs to release");
        second.receive_release(QUEUE, ENTRY, first);
        assert!(second.is_free(QUEUE, ENTRY, now));
        assert_eq!(second.count(QUEUE), 0);
        second.take(QUEUE, ENTRY, now);
        assert_eq!(second.count(QUEUE), 1);
        second.release(QUEUE, ENTRY);
        assert_eq!(second.count(QUEUE), 0);
    }

    #[test]
    fn claims_are_bounded_and_more_of_them_are_as_none() {
        let (now, [(first, _), (_, mut second)]) = (Instant::now(), two());
        let entry = |number| EntryName { written_at_us: number, ..ENTRY };
        for number in 0..2 * CLAIMS_MAX as i64 {
            second.on_claim(QUEUE, entry(number), first, false, now);
        }
        assert_eq!(second.count(QUEUE), CLAIMS_MAX);
        let last = entry(2 * CLAIMS_MAX as i64 - 1);
        assert!(second.is_free(QUEUE, last, now));
        second.take(QUEUE, last, now);
        assert_eq!(second.settle(QUEUE, last, now), Settled::Mine, "nothing waits for room");
        second.on_claim(QUEUE, last, first, false, now + LASTS);
        assert_eq!((second.count(QUEUE), second.order.len()), (1, 1), "the old ones are gone");
    }
}

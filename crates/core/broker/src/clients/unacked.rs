//! What a channel has delivered and its client has not yet settled, by delivery tag.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::{Message, QueueId, Timestamp};
use quelea_store::{Entry, NEVER, QueuedMessage};

use crate::ids::ConsumerId;

/// Holes in the deque are kept until they are this many and the greater part of it.
const HOLES_MAX: usize = 64;

/// One delivery.
#[derive(Clone, Debug)]
pub(crate) struct Unacked {
    pub(crate) queue: QueueId,
    /// `None`: it was got, not consumed.
    pub(crate) consumer: Option<ConsumerId>,
    pub(crate) entry: Entry,
    /// [`NEVER`] if it does not expire.
    pub(crate) expires_at: Timestamp,
    /// Kept if the message is not in the log.
    pub(crate) body: Option<Arc<Message>>,
    /// An open transaction has settled it.
    pub(crate) is_held: bool,
}

impl Unacked {
    /// Returns the message as it goes back to its queue.
    pub(crate) fn into_ready(self) -> QueuedMessage {
        let expires_at = Some(self.expires_at).filter(|at| *at != NEVER);
        QueuedMessage { entry: self.entry, expires_at, body: self.body }
    }
}

/// Deliveries in the order of their tags. Tags mostly follow one another, so the place of one is
/// mostly known without a search; acknowledging `multiple` takes a range from the front.
#[derive(Debug, Default)]
pub(crate) struct UnackedDeliveries {
    /// Tags rise. A `None` is settled; the front never is.
    slots: VecDeque<(u64, Option<Unacked>)>,
    holes: usize,
    /// Ranges of tags that an open transaction has settled: one for each of its operations.
    held: Vec<(u64, u64)>,
    /// No delivery up to this tag is unsettled but those held: a range begins behind it, so that
    /// none is walked through twice.
    held_up_to: u64,
}

impl UnackedDeliveries {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.holes
    }

    /// Returns how many are unsettled up to a tag, at most: those are counted too that are settled
    /// and not yet forgotten.
    pub(crate) fn count_up_to(&self, tag: u64) -> usize {
        self.slots.partition_point(|(other, _)| *other <= tag)
    }

    /// Returns whether an open transaction has settled any.
    pub(crate) const fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn push(&mut self, tag: u64, unacked: Unacked) {
        debug_assert!(self.slots.back().is_none_or(|(last, _)| *last < tag), "tags rise");
        self.slots.push_back((tag, Some(unacked)));
    }

    /// Returns whether a delivery of that tag is unsettled, also by an open transaction.
    pub(crate) fn contains(&self, tag: u64) -> bool {
        let unacked = self.position(tag).and_then(|at| self.slots[at].1.as_ref());
        unacked.is_some_and(|unacked| !unacked.is_held)
    }

    /// Holds one delivery, or with `multiple` all up to it, until [`UnackedDeliveries::release`]:
    /// they are not unsettled any more, and not gone either.
    pub(crate) fn hold(&mut self, tag: u64, multiple: bool) {
        let first = if multiple { self.held_up_to + 1 } else { tag };
        for (_, unacked) in self.after_mut(first - 1).take_while(|(other, _)| *other <= tag) {
            unacked.is_held = true;
        }
        self.held.push((first, tag));
        if multiple {
            self.held_up_to = tag;
        }
    }

    /// Returns the last tag that is unsettled.
    pub(crate) fn last_unheld(&mut self) -> Option<u64> {
        let (held_up_to, last) = (self.held_up_to, self.slots.back()?.0);
        let behind = self.slots.iter().rev().take_while(|(tag, _)| *tag > held_up_to);
        let mut unheld = behind.filter(|(_, u)| u.as_ref().is_some_and(|u| !u.is_held));
        let found = unheld.next().map(|(tag, _)| *tag);
        if found.is_none() {
            self.held_up_to = last;
        }
        found
    }

    /// Returns all tags that are unsettled.
    pub(crate) fn unheld(&self) -> Vec<u64> {
        let slots = self.slots.iter().filter(|(_, u)| u.as_ref().is_some_and(|u| !u.is_held));
        slots.map(|(tag, _)| *tag).collect()
    }

    /// What was held is unsettled as before: the transaction has ended.
    pub(crate) fn release(&mut self) {
        self.held_up_to = 0;
        for (first, last) in std::mem::take(&mut self.held) {
            for (_, unacked) in self.after_mut(first - 1).take_while(|(tag, _)| *tag <= last) {
                unacked.is_held = false;
            }
        }
    }

    /// Takes one delivery.
    pub(crate) fn take(&mut self, tag: u64) -> Option<Unacked> {
        let at = self.position(tag)?;
        let taken = self.slots[at].1.take();
        self.holes += 1;
        self.trim();
        taken
    }

    /// Takes the oldest delivery if its tag is at most `tag`.
    pub(crate) fn take_up_to(&mut self, tag: u64) -> Option<Unacked> {
        let (first, _) = self.slots.front()?;
        if *first > tag {
            return None;
        }
        let (_, taken) = self.slots.pop_front()?;
        self.trim();
        taken
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Unacked> {
        self.slots.iter().filter_map(|(_, unacked)| unacked.as_ref())
    }

    /// Returns the unsettled deliveries with a greater tag, in order. Tags make a cursor that holds
    /// while deliveries are settled.
    pub(crate) fn after_mut(&mut self, tag: u64) -> impl Iterator<Item = (u64, &mut Unacked)> {
        let from = self.slots.partition_point(|(other, _)| *other <= tag);
        self.slots
            .range_mut(from..)
            .filter_map(|(tag, unacked)| unacked.as_mut().map(|unacked| (*tag, unacked)))
    }

    fn position(&self, tag: u64) -> Option<usize> {
        let (first, _) = self.slots.front()?;
        let guess = usize::try_from(tag.checked_sub(*first)?).ok()?;
        let at = match self.slots.get(guess) {
            Some((found, _)) if *found == tag => guess,
            _ => self.slots.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?,
        };
        self.slots[at].1.is_some().then_some(at)
    }

    /// Keeps the front unsettled, and the holes few.
    fn trim(&mut self) {
        while let Some((_, None)) = self.slots.front() {
            self.slots.pop_front();
            self.holes -= 1;
        }
        if self.holes > HOLES_MAX && self.holes > self.slots.len() / 2 {
            self.slots.retain(|(_, unacked)| unacked.is_some());
            self.holes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Unacked {
        Unacked {
            queue: QueueId(1),
            consumer: None,
            entry: Entry::default(),
            expires_at: NEVER,
            body: None,
            is_held: false,
        }
    }

    fn with(tags: impl IntoIterator<Item = u64>) -> UnackedDeliveries {
        let mut unacked = UnackedDeliveries::default();
        tags.into_iter().for_each(|tag| unacked.push(tag, delivery()));
        unacked
    }

    #[test]
    fn a_tag_is_taken_once_wherever_it_lies() {
        let mut unacked = with([1, 2, 5, 9, 10]);
        for tag in [5, 1, 10, 9, 2] {
            assert!(unacked.contains(tag));
            assert!(unacked.take(tag).is_some());
            assert!(unacked.take(tag).is_none());
        }
        assert_eq!(unacked.len(), 0);
        assert!(unacked.take(3).is_none());
    }

    #[test]
    fn what_is_held_is_settled_until_it_is_released() {
        let mut unacked = with(1..=6);
        unacked.hold(2, false);
        unacked.hold(4, true);
        assert_eq!((unacked.unheld(), unacked.len()), (vec![5, 6], 6));
        assert!(!unacked.contains(2) && !unacked.contains(3) && unacked.contains(5));
        assert_eq!(unacked.last_unheld(), Some(6));
        unacked.hold(6, true);
        assert_eq!(unacked.last_unheld(), None);
        unacked.push(7, delivery());
        assert_eq!(unacked.unheld(), [7]);
        unacked.take(7);
        unacked.release();
        assert_eq!(unacked.unheld(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_range_is_taken_from_the_front() {
        let mut unacked = with(1..=10);
        unacked.take(3);
        let mut taken = 0;
        while unacked.take_up_to(5).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 4);
        assert_eq!(unacked.len(), 5);
        assert!(!unacked.contains(5));
        assert!(unacked.contains(6));
    }

    #[test]
    fn a_delivery_never_settled_does_not_keep_the_room_of_later_ones() {
        let mut unacked = with([1]);
        for tag in 2..100_000 {
            unacked.push(tag, delivery());
            assert!(unacked.take(tag).is_some());
        }
        assert_eq!(unacked.len(), 1);
        assert!(unacked.slots.len() <= 2 * HOLES_MAX + 2);
    }
}

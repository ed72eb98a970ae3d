//! How many bytes of bodies the whole server holds: of requests, whoever sent them, since bodies are read
//! before anybody knows whether their signatures are good; and of answers, until their clients have taken them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;

/// Shorter answers are not counted: connections have a limit, and each has one answer at a time.
const COUNTED_ANSWER_BYTES_MIN: usize = 16 * 1024;

/// Those of a server.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    pub(crate) requests: BodyBudget,
    pub(crate) answers: BodyBudget,
}

impl Budgets {
    /// Returns budgets of as many bytes for each.
    pub(crate) fn new(max: usize) -> Self {
        Self { requests: BodyBudget::new(max), answers: BodyBudget::new(max) }
    }
}

/// The budget of all threads.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget {
    max: usize,
    taken: Arc<AtomicUsize>,
}

/// What one request has taken of it; given back when it is dropped, however the request ends.
#[derive(Debug)]
pub(crate) struct Share {
    budget: BodyBudget,
    bytes: usize,
}

impl BodyBudget {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    /// Returns a share of nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// Returns whether nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.max
    }

    /// Returns an answer that counts until its last byte is written, or its connection ends; and
    /// what is gone by then. What is there already is not refused: the budget may be exceeded by
    /// those that were waited for when it was spent.
    pub(crate) fn counted(&self, answer: Bytes) -> (Bytes, Weak<()>) {
        if answer.len() < COUNTED_ANSWER_BYTES_MIN {
            return (answer, Weak::new());
        }
        self.taken.fetch_add(answer.len(), Ordering::Relaxed);
        let share = Share { budget: self.clone(), bytes: answer.len() };
        let unread = Arc::new(());
        let is_unread = Arc::downgrade(&unread);
        (Bytes::from_owner(Counted { answer, _share: share, _unread: unread }), is_unread)
    }
}

/// Bytes and their share, which ends with the last reference to them.
struct Counted {
    answer: Bytes,
    _share: Share,
    _unread: Arc<()>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

impl Share {
    /// Makes it a share of `bytes`, if that is more than it has; false, and nothing taken, if there are too few.
    /// Bodies that have not arrived as a whole leave a part of the budget to those that have: clients that do not
    /// go on keep nobody else's small requests out.
    pub(crate) fn grow_to(&mut self, bytes: usize, is_whole: bool) -> bool {
        let BodyBudget { max, taken } = &self.budget;
        let max = if is_whole { *max } else { *max / 4 * 3 };
        let bytes = bytes.saturating_sub(self.bytes);
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= max);
        // It counts, and guards nothing else in memory.
        let is_taken = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_budget_is_refused_and_shares_return() {
        let budget = BodyBudget::new(10);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.grow_to(4, true) && one.grow_to(6, true));
        assert!(!other.grow_to(5, true) && other.grow_to(4, true));
        assert!(!one.grow_to(7, true) && one.grow_to(6, true) && !one.grow_to(usize::MAX, true));
        drop(one);
        assert!(!other.grow_to(11, true) && other.grow_to(10, true));
    }

    #[test]
    fn an_answer_counts_until_nobody_has_it() {
        let budget = BodyBudget::new(COUNTED_ANSWER_BYTES_MIN);
        let (short, _) = budget.counted(Bytes::from(vec![1; COUNTED_ANSWER_BYTES_MIN - 1]));
        assert!(!budget.is_spent());
        let (answer, is_unread) = budget.counted(Bytes::from(vec![7; COUNTED_ANSWER_BYTES_MIN]));
        let rest = answer.slice(9..);
        drop(answer);
        assert!(budget.is_spent() && is_unread.strong_count() > 0);
        assert!(rest.iter().all(|byte| *byte == 7));
        drop((rest, short));
        assert!(!budget.is_spent() && is_unread.strong_count() == 0);
    }

    #[test]
    fn what_has_arrived_in_part_leaves_room_for_what_has_arrived() {
        let budget = BodyBudget::new(8);
        let (mut half, mut whole) = (budget.share(), budget.share());
        assert!(!half.grow_to(7, false) && half.grow_to(6, false));
        assert!(whole.grow_to(2, true));
    }
}

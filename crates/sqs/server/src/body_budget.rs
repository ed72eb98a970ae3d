//! How many bytes of requests' bodies the whole server holds, whoever sent them: bodies are read
//! before anybody knows whether their signatures are good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// A share of nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
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
    fn what_has_arrived_in_part_leaves_room_for_what_has_arrived() {
        let budget = BodyBudget::new(8);
        let (mut half, mut whole) = (budget.share(), budget.share());
        assert!(!half.grow_to(7, false) && half.grow_to(6, false));
        assert!(whole.grow_to(2, true));
    }
}

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
    /// Takes so many more bytes; false, and nothing taken, if there are too few.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let BodyBudget { max, taken } = &self.budget;
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| sum <= max);
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
        assert!(one.take(4) && one.take(2));
        assert!(!other.take(5) && other.take(4));
        assert!(!one.take(1) && one.take(0) && !one.take(usize::MAX));
        drop(one);
        assert!(!other.take(7) && other.take(6));
    }
}

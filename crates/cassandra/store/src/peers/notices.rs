//! Notices of what was changed here, until the others have acknowledged them. An answer to whoever changed a queue waits for that,
//! a moment at most, so that the change holds at any front-end when it is answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;
use uuid::Uuid;

/// Those that somebody waits for: one for each request that changes a queue.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    notices: FxHashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    missing: FxHashSet<Uuid>,
    noted_by_all: Arc<Notify>,
}

impl Notices {
    /// Begins to wait for these front-ends, until what is returned is dropped.
    pub(crate) fn open(&self, for_whom: impl IntoIterator<Item = Uuid>) -> Notice<'_> {
        let noted_by_all = Arc::new(Notify::new());
        let missing = for_whom.into_iter().collect();
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.notices.insert(number, Waiting { missing, noted_by_all: noted_by_all.clone() });
        Notice { notices: self, number, noted_by_all }
    }

    /// Returns how many notices there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().last
    }

    /// That front-end has acknowledged the notice; nobody may wait for it any more.
    pub(crate) fn noted(&self, number: u64, by: Uuid) {
        let mut open = self.lock();
        let Some(waiting) = open.notices.get_mut(&number) else { return };
        waiting.missing.remove(&by);
        if waiting.missing.is_empty() {
            waiting.noted_by_all.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    notices: &'a Notices,
    /// No other notice of this front-end has it.
    pub(crate) number: u64,
    noted_by_all: Arc<Notify>,
}

impl Notice<'_> {
    /// Returns the front-ends that have not acknowledged it.
    pub(crate) fn missing(&self) -> Vec<Uuid> {
        let open = self.notices.lock();
        let waiting = open.notices.get(&self.number);
        waiting.map(|waiting| waiting.missing.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns when all have.
    pub(crate) async fn noted_by_all(&self) {
        self.noted_by_all.notified().await;
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        self.notices.lock().notices.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_notice_is_noted_when_the_last_one_has_said_so() {
        let notices = Notices::default();
        let [first, second, stranger] = [1, 2, 3].map(Uuid::from_u128);
        let notice = notices.open([first, second]);
        for by in [first, stranger, first] {
            notices.noted(notice.number, by);
            assert!(notice.noted_by_all().now_or_never().is_none());
        }
        assert_eq!(notice.missing(), [second]);
        notices.noted(notice.number + 1, second);
        assert_eq!(notice.missing(), [second]);
        notices.noted(notice.number, second);
        assert!(notice.noted_by_all().now_or_never().is_some());
    }

    #[test]
    fn nothing_is_kept_of_a_notice_nobody_waits_for() {
        let notices = Notices::default();
        let number = notices.open([Uuid::nil()]).number;
        assert!(notices.lock().notices.is_empty());
        notices.noted(number, Uuid::nil());
        assert_ne!(notices.open([]).number, number);
    }
}

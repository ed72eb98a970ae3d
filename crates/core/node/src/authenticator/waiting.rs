//! What waits for the password thread, in a line for each address: none waits for another's.

use std::collections::VecDeque;
use std::net::IpAddr;

use quelea_model::limits::LOGINS_WAITING_MAX;
use rustc_hash::FxHashMap;

/// What can wait: it may have been given up meanwhile.
pub(super) trait Waits {
    /// Returns whether somebody still wants the answer.
    fn is_wanted(&self) -> bool;
}

/// The lines. Addresses take turns. Within an address the oldest and the newest take turns: under a flood the
/// oldest have waited so long that nobody may want them, and the newest alone would starve the others.
pub(super) struct Waiting<T> {
    lines: FxHashMap<Source, Line<T>>,
    /// Addresses with a line, the next one first.
    turns: VecDeque<Source>,
    total: usize,
}

/// Who asks. `None` is this process.
pub(super) type Source = Option<IpAddr>;

struct Line<T> {
    requests: VecDeque<T>,
    newest_is_next: bool,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { lines: FxHashMap::default(), turns: VecDeque::new(), total: 0 }
    }
}

impl<T: Waits> Waiting<T> {
    pub(super) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Puts it into its address' line. If there are too many, the one that has waited longest in the longest line
    /// is returned, and is to be refused.
    pub(super) fn push(&mut self, source: Source, request: T) -> Option<T> {
        if self.total >= LOGINS_WAITING_MAX {
            self.forget_unwanted();
        }
        let line = self.lines.entry(source).or_insert_with(|| {
            self.turns.push_back(source);
            Line { requests: VecDeque::new(), newest_is_next: false }
        });
        line.requests.push_back(request);
        self.total += 1;
        if self.total <= LOGINS_WAITING_MAX {
            return None;
        }
        let longest = self.lines.iter().max_by_key(|(_, line)| line.requests.len());
        let longest = longest.map(|(source, _)| *source)?;
        self.take(longest, |line| line.requests.pop_front())
    }

    /// Takes the next one that somebody still wants.
    pub(super) fn pop(&mut self) -> Option<T> {
        while let Some(source) = self.turns.pop_front() {
            self.turns.push_back(source);
            let request = self.take(source, |line| {
                line.newest_is_next = !line.newest_is_next;
                match line.newest_is_next {
                    true => line.requests.pop_front(),
                    false => line.requests.pop_back(),
                }
            });
            if request.as_ref().is_some_and(T::is_wanted) {
                return request;
            }
        }
        None
    }

    /// Takes everything, in no order.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.turns.clear();
        self.total = 0;
        self.lines.drain().flat_map(|(_, line)| line.requests).collect()
    }

    fn take(&mut self, source: Source, take: impl FnOnce(&mut Line<T>) -> Option<T>) -> Option<T> {
        let line = self.lines.get_mut(&source)?;
        let taken = take(line);
        self.total -= usize::from(taken.is_some());
        if line.requests.is_empty() {
            self.lines.remove(&source);
            self.turns.retain(|turn| *turn != source);
        }
        taken
    }

    fn forget_unwanted(&mut self) {
        for line in self.lines.values_mut() {
            line.requests.retain(T::is_wanted);
        }
        self.lines.retain(|_, line| !line.requests.is_empty());
        self.turns.retain(|source| self.lines.contains_key(source));
        self.total = self.lines.values().map(|line| line.requests.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    struct Asked(u32, Rc<Cell<bool>>);

    impl Waits for Asked {
        fn is_wanted(&self) -> bool {
            self.1.get()
        }
    }

    fn wanted(number: u32) -> Asked {
        Asked(number, Rc::new(Cell::new(true)))
    }

    fn from(host: u8) -> Source {
        Some(IpAddr::from([192, 0, 2, host]))
    }

    fn order(waiting: &mut Waiting<Asked>) -> Vec<u32> {
        std::iter::from_fn(|| waiting.pop()).map(|asked| asked.0).collect()
    }

    #[test]
    fn an_address_that_asks_a_thousand_times_keeps_another_waiting_for_one() {
        let mut waiting = Waiting::default();
        (0..1_000).for_each(|number| drop(waiting.push(from(1), wanted(number))));
        waiting.push(from(2), wanted(5_000));
        assert_eq!(waiting.pop().unwrap().0, 0);
        assert_eq!(waiting.pop().unwrap().0, 5_000);
    }

    #[test]
    fn of_an_address_the_oldest_and_the_newest_take_turns() {
        let mut waiting = Waiting::default();
        (0..6).for_each(|number| drop(waiting.push(from(1), wanted(number))));
        assert_eq!(order(&mut waiting), [0, 5, 1, 4, 2, 3]);
        assert!(waiting.is_empty() && waiting.lines.is_empty() && waiting.turns.is_empty());
    }

    #[test]
    fn what_nobody_wants_any_more_is_passed_over() {
        let mut waiting = Waiting::default();
        let gone = Rc::new(Cell::new(true));
        (0..1_000).for_each(|number| drop(waiting.push(from(1), Asked(number, Rc::clone(&gone)))));
        waiting.push(from(1), wanted(1_000));
        (1_001..2_000)
            .for_each(|number| drop(waiting.push(from(1), Asked(number, Rc::clone(&gone)))));
        gone.set(false);
        assert_eq!(order(&mut waiting), [1_000]);
    }

    #[test]
    fn at_the_limit_the_longest_line_gives_way_and_first_those_that_are_gone() {
        let mut waiting = Waiting::default();
        let flood = Rc::new(Cell::new(true));
        for number in 0..LOGINS_WAITING_MAX as u32 {
            assert!(waiting.push(from(1), Asked(number, Rc::clone(&flood))).is_none());
        }
        assert_eq!(waiting.push(from(2), wanted(70_000)).unwrap().0, 0);
        assert_eq!(waiting.push(from(1), wanted(70_001)).unwrap().0, 1);
        flood.set(false);
        assert!(waiting.push(from(3), wanted(70_002)).is_none());
        let mut left = order(&mut waiting);
        left.sort_unstable();
        assert_eq!(left, [70_000, 70_001, 70_002]);
    }
}

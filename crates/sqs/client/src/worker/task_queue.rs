//! Where a worker's messages lie between the thread that receives them and those that handle them.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::message::Message;
use crate::worker::{Stop, Tally, Task};

/// Messages whose processing is remembered because their deletion was not confirmed.
const FINISHED_MAX: usize = 10_000;
/// How often the receiving thread looks for a stop while all handlers are busy.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// The messages in hand.
#[derive(Debug)]
pub(crate) struct TaskQueue {
    state: Mutex<State>,
    changed: Condvar,
    concurrency: usize,
    /// A FIFO queue: the messages of a group are handled one after the other.
    keeps_groups: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Received, not begun; oldest first.
    waiting: VecDeque<Arc<Task>>,
    /// Being handled.
    handled: Vec<Arc<Task>>,
    /// Ids of messages that were processed and perhaps not deleted, oldest first.
    finished: VecDeque<String>,
    tally: Tally,
    is_closed: bool,
}

impl TaskQueue {
    pub(crate) fn new(concurrency: usize, keeps_groups: bool) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), concurrency, keeps_groups }
    }

    /// Waits until a handler has time, and says how many have; `None` once stopped.
    pub(crate) fn wait_for_room(&self, stop: &Stop) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if stop.is_stopped() {
                return None;
            }
            let room = self.concurrency.saturating_sub(state.waiting.len() + state.handled.len());
            if room > 0 {
                return Some(room);
            }
            state = self.wait(state, STOP_CHECK);
        }
    }

    /// Adds what was received.
    pub(crate) fn put(&self, messages: Vec<Message>, visibility_timeout_seconds: u32) {
        if messages.is_empty() {
            return;
        }
        let extend_after = Duration::from_secs(visibility_timeout_seconds.into()) / 3;
        let mut state = self.lock();
        state.tally.received += messages.len() as u64;
        let tasks = messages.into_iter().map(|message| Arc::new(Task::new(message, extend_after)));
        state.waiting.extend(tasks);
        self.changed.notify_all();
    }

    /// Waits for the next message to handle, and takes it; `None` when there will be none.
    pub(crate) fn take(&self) -> Option<Arc<Task>> {
        let mut state = self.lock();
        loop {
            if let Some(at) = self.next(&state) {
                let task = state.waiting.remove(at)?;
                state.handled.push(Arc::clone(&task));
                return Some(task);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the place of the oldest message whose group is not being handled.
    fn next(&self, state: &State) -> Option<usize> {
        if !self.keeps_groups {
            return (!state.waiting.is_empty()).then_some(0);
        }
        let busy: HashSet<_> = state.handled.iter().filter_map(|task| task.group()).collect();
        state.waiting.iter().position(|task| task.group().is_none_or(|group| !busy.contains(group)))
    }

    /// A handler is done with a message.
    pub(crate) fn finish(&self, task: &Arc<Task>, count: impl FnOnce(&mut Tally)) {
        let mut state = self.lock();
        state.handled.retain(|other| !Arc::ptr_eq(other, task));
        count(&mut state.tally);
        state.tally.lost += u64::from(!task.is_ours());
        self.changed.notify_all();
    }

    /// Takes out those that wait behind `failed` in its group: they must not be handled before it.
    pub(crate) fn remove_followers(&self, failed: &Task) -> Vec<Arc<Task>> {
        let Some(group) = failed.group().filter(|_| self.keeps_groups) else {
            return Vec::new();
        };
        self.remove_where(|task| task.group() == Some(group))
    }

    /// Takes out all that wait.
    pub(crate) fn remove_waiting(&self) -> Vec<Arc<Task>> {
        self.remove_where(|_| true)
    }

    fn remove_where(&self, which: impl Fn(&Task) -> bool) -> Vec<Arc<Task>> {
        let mut state = self.lock();
        let (taken, rest) = state.waiting.drain(..).partition(|task| which(task));
        state.waiting = rest;
        self.changed.notify_all();
        Vec::from(taken)
    }

    /// Remembers that a message was processed although it may come again.
    pub(crate) fn remember_finished(&self, id: &str) {
        let mut state = self.lock();
        if state.finished.len() == FINISHED_MAX {
            state.finished.pop_front();
        }
        state.finished.push_back(id.to_owned());
    }

    /// Returns whether a message was processed before.
    pub(crate) fn is_finished(&self, id: &str) -> bool {
        // Empty unless the service was away for a while.
        self.lock().finished.iter().any(|finished| finished == id)
    }

    /// Waits for the next time a lease is to be extended, and returns those that are due;
    /// `None` when the queue is closed and empty.
    pub(crate) fn wait_for_leases(&self, idle: Duration) -> Option<Vec<Arc<Task>>> {
        let mut state = self.lock();
        loop {
            if state.is_closed && state.handled.is_empty() && state.waiting.is_empty() {
                return None;
            }
            let now = Instant::now();
            let in_hand: Vec<Arc<Task>> =
                state.handled.iter().chain(&state.waiting).map(Arc::clone).collect();
            drop(state);
            // A message that is just being deleted or given back needs no extension.
            let due_at = |task: &Arc<Task>| task.lease_if_free().map(|lease| lease.extend_at);
            let leases = in_hand.into_iter().filter_map(|task| Some((due_at(&task)?, task)));
            let (due, later): (Vec<_>, Vec<_>) = leases.partition(|(at, _)| *at <= now);
            if !due.is_empty() {
                return Some(due.into_iter().map(|(_, task)| task).collect());
            }
            let next = later.iter().map(|(at, _)| *at).min();
            let time = next.map_or(idle, |at| at.saturating_duration_since(now)).min(idle);
            state = self.wait(self.lock(), time);
        }
    }

    /// Closes the queue once the returned value is gone: no message will be put here any more.
    pub(crate) fn close_on_drop(&self) -> Closing<'_> {
        Closing(self)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Locks the state. Handlers run outside of the lock, so a panic of theirs does not poison it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the queue when it goes.
pub(crate) struct Closing<'a>(&'a TaskQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, group: Option<&str>) -> Message {
        let attributes = group.map(|group| ("MessageGroupId".to_owned(), group.to_owned()));
        Message {
            id: id.to_owned(),
            receipt_handle: format!("handle of {id}"),
            body: String::new(),
            attributes: attributes.into_iter().collect(),
        }
    }

    fn take(tasks: &TaskQueue) -> Option<Arc<Task>> {
        tasks.close_on_drop();
        tasks.take()
    }

    fn ids(tasks: &[Arc<Task>]) -> Vec<&str> {
        tasks.iter().map(|task| task.message().id.as_str()).collect()
    }

    #[test]
    fn no_more_is_received_than_there_is_time_for() {
        let tasks = TaskQueue::new(3, false);
        assert_eq!(tasks.wait_for_room(&Stop::default()), Some(3));
        tasks.put(vec![message("a", None), message("b", None)], 30);
        assert_eq!(tasks.wait_for_room(&Stop::default()), Some(1));
        let task = take(&tasks).unwrap();
        assert_eq!(tasks.wait_for_room(&Stop::default()), Some(1));
        tasks.finish(&task, |tally| tally.done += 1);
        assert_eq!(tasks.wait_for_room(&Stop::default()), Some(2));
        assert_eq!((tasks.tally().received, tasks.tally().done), (2, 1));
    }

    #[test]
    fn a_stopped_queue_takes_nothing_more() {
        let (tasks, stop) = (TaskQueue::new(1, false), Stop::default());
        tasks.put(vec![message("a", None)], 30);
        stop.stop();
        assert_eq!(tasks.wait_for_room(&stop), None);
        assert_eq!(ids(&tasks.remove_waiting()), ["a"]);
        assert!(take(&tasks).is_none());
    }

    #[test]
    fn the_messages_of_a_group_are_handled_one_after_the_other() {
        let tasks = TaskQueue::new(10, true);
        let messages = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")];
        tasks.put(messages.map(|(id, group)| message(id, Some(group))).to_vec(), 30);
        let first = take(&tasks).unwrap();
        let other = take(&tasks).unwrap();
        assert_eq!(ids(&[Arc::clone(&first), other]), ["a1", "b1"]);
        assert!(take(&tasks).is_none(), "a2 and a3 wait for a1");
        tasks.finish(&first, |_| {});
        assert_eq!(take(&tasks).unwrap().message().id, "a2");
    }

    #[test]
    fn a_failed_message_takes_its_followers_along() {
        let tasks = TaskQueue::new(10, true);
        let messages = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")];
        tasks.put(messages.map(|(id, group)| message(id, Some(group))).to_vec(), 30);
        let failed = take(&tasks).unwrap();
        assert_eq!(ids(&tasks.remove_followers(&failed)), ["a2", "a3"]);
        let standard = TaskQueue::new(10, false);
        standard.put(messages.map(|(id, group)| message(id, Some(group))).to_vec(), 30);
        let failed = take(&standard).unwrap();
        assert!(standard.remove_followers(&failed).is_empty());
    }

    #[test]
    fn finished_messages_are_remembered_up_to_a_limit() {
        let tasks = TaskQueue::new(1, false);
        (0..=FINISHED_MAX).for_each(|number| tasks.remember_finished(&number.to_string()));
        assert!(!tasks.is_finished("0"));
        assert!(tasks.is_finished("1") && tasks.is_finished(&FINISHED_MAX.to_string()));
    }

    #[test]
    fn leases_are_due_after_a_third_of_the_timeout() {
        let tasks = TaskQueue::new(2, false);
        tasks.put(vec![message("now", None)], 0);
        tasks.put(vec![message("later", None)], 3_000);
        assert_eq!(ids(&tasks.wait_for_leases(Duration::from_secs(1)).unwrap()), ["now"]);
        drop(tasks.remove_waiting());
        drop(tasks.close_on_drop());
        assert!(tasks.wait_for_leases(Duration::from_secs(1)).is_none());
    }
}

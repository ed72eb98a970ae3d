//! The threads that handle messages, and what becomes of a message after that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::operations::BATCH_MAX;
use crate::retry::Retry;
use crate::worker::task_queue::TaskQueue;
use crate::worker::{Stop, Task, VISIBILITY_MAX_S, Verdict};

/// How long an answer may take once the worker is to end: it is asked for once, and a message that
/// is not given back comes back by its visibility timeout.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Settles messages: deletes them, or returns them to their queue.
pub(crate) struct Settler<'a> {
    client: Client,
    queue_url: &'a str,
    tasks: &'a TaskQueue,
    back_off: Retry,
    stop: Stop,
}

impl<'a> Settler<'a> {
    pub(crate) const fn new(
        client: Client,
        queue_url: &'a str,
        tasks: &'a TaskQueue,
        back_off: Retry,
        stop: Stop,
    ) -> Self {
        Self { client, queue_url, tasks, back_off, stop }
    }

    /// Handles messages until there are no more.
    pub(crate) fn run(&mut self, handler: &(impl Fn(&Task) -> Verdict + Sync)) {
        while let Some(task) = self.tasks.take() {
            if self.tasks.is_finished(&task.message().id) {
                self.delete(&task);
                self.tasks.finish(&task, |tally| tally.repeated += 1);
                continue;
            }
            if !task.is_ours() {
                // It waited too long behind others of its group: somebody else may be at it, and
                // those behind it must not come before it.
                self.give_back_followers(&task);
                self.tasks.finish(&task, |_| {});
                continue;
            }
            // What the handler left half done is its own matter; the message comes again.
            let verdict = catch_unwind(AssertUnwindSafe(|| handler(&task)));
            match verdict.unwrap_or(Verdict::Failed) {
                Verdict::Done if self.delete(&task) => {
                    self.tasks.finish(&task, |tally| tally.done += 1);
                }
                Verdict::Done => {
                    self.tasks.remember_finished(&task.message().id);
                    self.tasks.finish(&task, |tally| tally.not_deleted += 1);
                }
                Verdict::Failed => self.fail(&task),
            }
        }
    }

    /// Returns what nobody has begun to handle, as long as the service answers.
    pub(crate) fn give_back_waiting(&mut self) {
        self.hurry();
        let waiting = self.tasks.remove_waiting();
        for tasks in waiting.chunks(BATCH_MAX) {
            let mut held: Vec<_> =
                tasks.iter().filter(|task| task.is_ours()).map(|task| task.lease()).collect();
            held.iter_mut().for_each(|lease| lease.is_settled = true);
            let ours = tasks.iter().filter(|task| task.is_ours());
            let handles: Vec<&str> =
                ours.map(|task| task.message().receipt_handle.as_str()).collect();
            if handles.is_empty() {
                continue;
            }
            let answer = self.client.change_visibility_batch(self.queue_url, &handles, 0);
            if let Err(error) = answer {
                tracing::warn!(queue = self.queue_url, %error, "cannot give messages back");
                return;
            }
        }
    }

    /// From now on each call is made once, and not waited for for long.
    fn hurry(&mut self) {
        let patience = self.client.patience().min(STOP_PATIENCE);
        self.client = self.client.clone().with_retry(Retry::never()).with_patience(patience);
    }

    /// Hurries if the worker is to end.
    fn check_for_stop(&mut self) {
        if self.stop.is_stopped() && self.client.patience() > STOP_PATIENCE {
            self.hurry();
        }
    }

    /// Deletes a message; true if the service confirmed it.
    fn delete(&mut self, task: &Task) -> bool {
        self.check_for_stop();
        let mut lease = task.lease();
        let deleted = self.client.delete(self.queue_url, &task.message().receipt_handle);
        lease.is_settled = true;
        if let Err(error) = &deleted {
            let id = &task.message().id;
            tracing::warn!(queue = self.queue_url, id, %error, "cannot delete a message");
        }
        deleted.is_ok()
    }

    fn fail(&mut self, task: &Arc<Task>) {
        // The followers go back first: while this one is out of sight, so is its group.
        self.give_back_followers(task);
        self.give_back(task, self.back_off.span(task.message().receive_count()));
        self.tasks.finish(task, |tally| tally.failed += 1);
    }

    fn give_back_followers(&mut self, task: &Task) {
        for follower in self.tasks.remove_followers(task) {
            self.give_back(&follower, Duration::ZERO);
        }
    }

    /// Should this fail, the message comes back by its visibility timeout.
    fn give_back(&mut self, task: &Task, after: Duration) {
        self.check_for_stop();
        let mut lease = task.lease();
        lease.is_settled = true;
        if !task.is_ours() {
            // It would be taken out of the hands of whoever has it now.
            return;
        }
        let seconds = u32::try_from(after.as_secs_f64().ceil() as u64).unwrap_or(u32::MAX);
        let handle = &task.message().receipt_handle;
        let seconds = seconds.min(VISIBILITY_MAX_S);
        if let Err(error) = self.client.change_visibility(self.queue_url, handle, seconds) {
            let id = &task.message().id;
            tracing::warn!(queue = self.queue_url, id, %error, "cannot give a message back");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;

    use super::*;
    use crate::message::Message;

    /// Returns a service that takes connections and says nothing, and a client that has little
    /// patience.
    fn silent() -> (TcpListener, Client) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        (listener, Client::new(endpoint, None).with_patience(Duration::from_millis(50)))
    }

    /// Returns a FIFO queue's tasks, with messages of one group.
    fn tasks(messages: usize) -> TaskQueue {
        desk_of(messages, 30)
    }

    fn desk_of(messages: usize, visibility_timeout_seconds: u32) -> TaskQueue {
        let tasks = TaskQueue::new(messages, true);
        let attributes = BTreeMap::from([("MessageGroupId".to_owned(), "g".to_owned())]);
        let message = |number: usize| Message {
            id: number.to_string(),
            receipt_handle: number.to_string(),
            body: String::new(),
            attributes: attributes.clone(),
        };
        tasks.put((0..messages).map(message).collect(), visibility_timeout_seconds);
        tasks
    }

    fn connections(listener: &TcpListener) -> usize {
        std::iter::from_fn(|| listener.accept().ok()).count()
    }

    #[test]
    fn a_service_that_says_nothing_holds_up_a_stop_once() {
        let (listener, client) = silent();
        let tasks = tasks(25);
        Settler::new(client, "q", &tasks, Retry::never(), Stop::default()).give_back_waiting();
        assert_eq!(connections(&listener), 1);
        assert!(tasks.remove_waiting().is_empty());
    }

    #[test]
    fn after_a_stop_each_call_is_made_once() {
        let (listener, client) = silent();
        let (tasks, stop) = (tasks(1), Stop::default());
        stop.stop();
        drop(tasks.close_on_drop());
        let client = client.with_patience(STOP_PATIENCE + Duration::from_secs(1));
        let mut settler = Settler::new(client, "q", &tasks, Retry::never(), stop);
        settler.check_for_stop();
        assert_eq!(settler.client.patience(), STOP_PATIENCE);
        settler.client = settler.client.with_patience(Duration::from_millis(50));
        settler.run(&|_: &Task| Verdict::Failed);
        assert_eq!((connections(&listener), tasks.tally().failed), (1, 1));
    }

    #[test]
    fn what_is_lost_before_its_start_is_not_handled() {
        let (listener, client) = silent();
        // All leases are due at once.
        let tasks = desk_of(3, 0);
        let due = tasks.wait_for_leases(Duration::ZERO).unwrap();
        assert_eq!(due.iter().filter(|task| task.lose()).count(), 3);
        drop(tasks.close_on_drop());
        let mut settler = Settler::new(client, "q", &tasks, Retry::never(), Stop::default());
        settler.run(&|_: &Task| panic!("it is somebody else's"));
        assert_eq!((connections(&listener), tasks.tally().failed, tasks.tally().lost), (0, 0, 1));
    }
}

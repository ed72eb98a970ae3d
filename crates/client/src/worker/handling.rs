//! The threads that handle messages, and what becomes of a message after that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::retry::Retry;
use crate::worker::desk::Desk;
use crate::worker::{Task, VISIBILITY_MAX_S, Verdict};

/// Settles messages: deletes them, or gives them back.
pub(crate) struct Settler<'a> {
    client: Client,
    queue_url: &'a str,
    desk: &'a Desk,
    back_off: Retry,
}

impl<'a> Settler<'a> {
    pub(crate) const fn new(
        client: Client,
        queue_url: &'a str,
        desk: &'a Desk,
        back_off: Retry,
    ) -> Self {
        Self { client, queue_url, desk, back_off }
    }

    /// Handles messages until there are no more.
    pub(crate) fn run(&mut self, handler: &(impl Fn(&Task) -> Verdict + Sync)) {
        while let Some(task) = self.desk.take() {
            if self.desk.is_finished(&task.message().id) {
                self.delete(&task);
                self.desk.put_away(&task, |tally| tally.repeated += 1);
                continue;
            }
            // What the handler left half done is its own matter; the message comes again.
            let verdict = catch_unwind(AssertUnwindSafe(|| handler(&task)));
            match verdict.unwrap_or(Verdict::Failed) {
                Verdict::Done if self.delete(&task) => {
                    self.desk.put_away(&task, |tally| tally.done += 1);
                }
                Verdict::Done => {
                    self.desk.remember_finished(&task.message().id);
                    self.desk.put_away(&task, |tally| tally.not_deleted += 1);
                }
                Verdict::Failed => self.fail(&task),
            }
        }
    }

    /// Gives back what nobody has begun to handle.
    pub(crate) fn give_back_waiting(&mut self) {
        for task in self.desk.take_waiting() {
            self.give_back(&task, Duration::ZERO);
        }
    }

    /// True if the service confirmed it.
    fn delete(&mut self, task: &Task) -> bool {
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
        for follower in self.desk.take_followers(task) {
            self.give_back(&follower, Duration::ZERO);
        }
        self.give_back(task, self.back_off.span(task.message().receive_count()));
        self.desk.put_away(task, |tally| tally.failed += 1);
    }

    /// Should this fail, the message comes back by its visibility timeout.
    fn give_back(&mut self, task: &Task, after: Duration) {
        let mut lease = task.lease();
        let seconds = u32::try_from(after.as_secs_f64().ceil() as u64).unwrap_or(u32::MAX);
        let handle = &task.message().receipt_handle;
        let seconds = seconds.min(VISIBILITY_MAX_S);
        if let Err(error) = self.client.change_visibility(self.queue_url, handle, seconds) {
            let id = &task.message().id;
            tracing::warn!(queue = self.queue_url, id, %error, "cannot give a message back");
        }
        lease.is_settled = true;
    }
}

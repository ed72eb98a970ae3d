//! The thread that keeps the messages in hand out of everybody else's.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::Error;
use crate::message::BatchFailure;
use crate::operations::BATCH_MAX;
use crate::retry::Retry;
use crate::worker::Task;
use crate::worker::task::Lease;
use crate::worker::task_queue::TaskQueue;

/// How often it looks when nothing is in hand.
const IDLE: Duration = Duration::from_secs(1);

/// Extends leases until the queue is closed and empty. A call that is not answered must not cost the
/// other messages their leases: it is soon given up, and made again when its messages are due again.
pub(crate) fn run(client: Client, queue_url: &str, tasks: &TaskQueue, lease: Duration) {
    let patience = client.patience().min(lease / 6);
    let mut client = client.with_retry(Retry::never()).with_patience(patience);
    while let Some(tasks) = tasks.wait_for_leases(IDLE.min(lease / 3)) {
        for batch in tasks.chunks(BATCH_MAX) {
            extend(&mut client, queue_url, batch, lease);
        }
    }
}

fn extend(client: &mut Client, queue_url: &str, tasks: &[Arc<Task>], lease: Duration) {
    // Whoever handles a message waits for this call before it deletes it or returns it; this
    // thread waits for nobody, since other messages are due too.
    let held = tasks.iter().filter_map(|task| Some((task, task.lease_if_free()?)));
    let mut held: Vec<(&Arc<Task>, MutexGuard<'_, Lease>)> =
        held.filter(|(_, lease)| !lease.is_settled).collect();
    if held.is_empty() {
        return;
    }
    let seconds = u32::try_from(lease.as_secs()).unwrap_or(u32::MAX);
    let handles: Vec<&str> =
        held.iter().map(|(task, _)| task.message().receipt_handle.as_str()).collect();
    let asked_at = Instant::now();
    let answer = client.change_visibility_batch(queue_url, &handles, seconds);
    for (at, (task, held)) in held.iter_mut().enumerate() {
        let failure = failure(&answer, at);
        if let Some(Failure { text, is_gone: true }) = &failure
            && task.lose()
        {
            let id = &task.message().id;
            tracing::warn!(queue = queue_url, id, error = text, "a message is no longer ours");
        }
        held.extend_at = match failure {
            None => asked_at + lease / 3,
            // Two thirds of the timeout are left for further tries.
            Some(_) => Instant::now() + lease / 10,
        };
    }
}

/// Why a message was not extended.
struct Failure {
    text: String,
    /// It is out of our hands: its visibility timeout passed before it was extended.
    is_gone: bool,
}

/// Returns what failed of a batch's entry.
fn failure(answer: &Result<Vec<BatchFailure>, Error>, at: usize) -> Option<Failure> {
    match answer {
        Ok(failed) => {
            let failed = failed.iter().find(|failed| failed.id.parse() == Ok(at))?;
            let text = format!("{}: {}", failed.code, failed.message);
            Some(Failure { text, is_gone: failed.sender_fault })
        }
        Err(error) => {
            let is_gone = matches!(error, Error::Service(error) if !error.is_transient());
            Some(Failure { text: error.to_string(), is_gone })
        }
    }
}

//! The thread that keeps the messages in hand out of everybody else's.

use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::Error;
use crate::worker::Task;
use crate::worker::desk::Desk;

/// How often it looks when nothing is in hand.
const IDLE: Duration = Duration::from_secs(1);

/// Extends leases until the desk is closed and empty.
pub(crate) fn run(mut client: Client, queue_url: &str, desk: &Desk, lease: Duration) {
    while let Some(tasks) = desk.wait_for_leases(IDLE.min(lease / 3)) {
        for task in tasks {
            extend(&mut client, queue_url, &task, lease);
        }
    }
}

fn extend(client: &mut Client, queue_url: &str, task: &Task, lease: Duration) {
    // Whoever handles the message waits for this call before it deletes it or gives it back; this
    // thread waits for nobody, since other messages are due too.
    let Some(mut held) = task.lease_if_free().filter(|lease| !lease.is_settled) else {
        return;
    };
    let seconds = u32::try_from(lease.as_secs()).unwrap_or(u32::MAX);
    let asked_at = Instant::now();
    match client.change_visibility(queue_url, &task.message().receipt_handle, seconds) {
        Ok(()) => held.extend_at = asked_at + lease / 3,
        Err(error) => {
            if is_gone(&error) && task.lose() {
                let id = &task.message().id;
                tracing::warn!(queue = queue_url, id, %error, "a message is no longer ours");
            }
            // Two thirds of the timeout are left for further tries.
            held.extend_at = Instant::now() + lease / 10;
        }
    }
}

/// Whether the message is out of our hands: its visibility timeout passed before it was extended.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Service(error) if !error.is_transient())
}

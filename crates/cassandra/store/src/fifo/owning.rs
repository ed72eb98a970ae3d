//! Where a queue's owner is: here, at another front-end, or nowhere; then this one takes the queue over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quelea_cassandra_fifo::limits::RENEW_EVERY_MS;
use quelea_cassandra_fifo::{CallId, OwnerRow, Watch};
use quelea_sqs_protocol::{Fault, QueueFacts};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use uuid::Uuid;

use super::inbox::Input;
use super::operation::{Answer, FifoQueue, Operation};
use super::owned::{ObservedOwner, Place};
use super::peer_client::Caller;
use crate::limits::OWNED_QUEUES_MAX;
use crate::shared::Shared;
use crate::standard::send::stopped;

/// The owner's row is read this often at most.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(500);

/// How often an owner's row is looked at while it carries a call out: as often as the owner renews it.
const WATCH_EVERY: Duration = Duration::from_millis(RENEW_EVERY_MS);

/// Before an owner is looked for again that was not where it was said to be.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where a queue's owner is.
enum Location {
    Here,
    There(OwnerRow),
    /// It cannot be reached; its lease may be over then.
    Nowhere,
}

impl Shared {
    /// Asks a queue's owner to do something, wherever it is. A call of which nothing was heard may
    /// have been carried out.
    pub(crate) async fn fifo_call(
        self: &Arc<Self>,
        facts: &QueueFacts,
        mut queue: FifoQueue,
        operation: Operation,
        patience: Duration,
    ) -> Result<Answer, Fault> {
        let (until, waits_until) = (Instant::now() + patience, waits_until(&operation));
        loop {
            let place = self.fifo.place(queue.generation);
            let operation = with_rest(&operation, waits_until);
            let attempt = self.attempt(&place, &queue, operation);
            let answer = tokio::time::timeout_at(until.into(), attempt).await;
            match answer.unwrap_or(Ok(Answer::NotOwner))? {
                Answer::NotOwner if Instant::now() + AGAIN_AFTER < until => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                    // It may have been purged or deleted meanwhile: that, too, ends an owner.
                    queue = self.fifo_queue(facts).await?;
                }
                Answer::NotOwner => {
                    let why = "the queue's owner cannot be reached, and no other can follow it yet";
                    return Err(Fault::Unavailable(why.to_owned()));
                }
                Answer::Failed(fault) => return Err(fault),
                answer => return Ok(answer),
            }
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        place: &Arc<Place>,
        queue: &FifoQueue,
        operation: Operation,
    ) -> Result<Answer, Fault> {
        match self.locate(place, queue).await? {
            Location::Here => Ok(self.fifo_call_here(place, queue.clone(), operation).await),
            Location::Nowhere => Ok(Answer::NotOwner),
            Location::There(row) => tokio::select! {
                answer = self.fifo.peers.call(self.caller(), &row, queue, operation) => Ok(answer),
                // It may be stopped, and its connections open.
                () = self.owner_ends(place, queue, &row) => Ok(Answer::NotOwner),
            },
        }
    }

    /// Returns this front-end, as it calls others.
    pub(super) fn caller(&self) -> Caller<'_> {
        let (database, runtime) = (&self.database, &self.runtime);
        Caller { database, runtime, secret: &self.fifo.secret }
    }

    /// Asks the owner that is here to do something.
    pub(super) async fn fifo_call_here(
        &self,
        place: &Place,
        queue: FifoQueue,
        operation: Operation,
    ) -> Answer {
        let Some(calls) = place.owner() else { return Answer::NotOwner };
        let call = CallId(self.fifo.calls.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let input = Input::Call { queue, operation, reply, call };
        if calls.send(input).await.is_err() {
            return Answer::NotOwner;
        }
        let mut waiting = Waiting { calls, call, is_answered: false };
        let answer = answer.await.unwrap_or(Answer::NotOwner);
        waiting.is_answered = true;
        answer
    }

    /// Carries out what another front-end asks for, if the queue's owner is here.
    pub(super) async fn fifo_call_of_peer(&self, queue: FifoQueue, operation: Operation) -> Answer {
        let place = self.fifo.place(queue.generation);
        self.fifo_call_here(&place, queue, operation).await
    }

    /// Finds out where the queue's owner is. If it has none, it is here then.
    async fn locate(
        self: &Arc<Self>,
        place: &Arc<Place>,
        queue: &FifoQueue,
    ) -> Result<Location, Fault> {
        if place.owner().is_some() {
            return Ok(Location::Here);
        }
        let mut seen = place.seen.clone().lock_owned().await;
        if place.owner().is_some() {
            return Ok(Location::Here);
        }
        let watch = self.observe_owner(&mut seen, queue.generation).await?;
        if watch == Watch::Free && self.fifo.is_releasing() {
            return Ok(Location::Nowhere);
        }
        if watch == Watch::Free {
            if self.fifo.owned().len() >= OWNED_QUEUES_MAX || self.fifo.is_full() {
                let why = "this front-end owns too many FIFO queues".to_owned();
                return Err(Fault::Unavailable(why));
            }
            let is_taken = self.take_over_whoever_waits(place, queue, seen).await?;
            return Ok(if is_taken { Location::Here } else { Location::Nowhere });
        }
        let row = seen.row.as_ref();
        let is_elsewhere = |row: &&OwnerRow| place.is_elsewhere(row);
        Ok(row.filter(is_elsewhere).cloned().map_or(Location::Nowhere, Location::There))
    }

    /// Takes a queue over in a task of its own: a caller that goes meanwhile does not leave it with an owner that nobody
    /// serves for. Nobody looks at the owner's row until it is over.
    async fn take_over_whoever_waits(
        self: &Arc<Self>,
        place: &Arc<Place>,
        queue: &FifoQueue,
        mut seen: OwnedMutexGuard<ObservedOwner>,
    ) -> Result<bool, Fault> {
        let (shared, place, queue) = (self.clone(), place.clone(), queue.clone());
        let task = self.runtime.spawn(async move {
            let is_taken = shared.take_queue_over(&place, &queue, seen.row.as_ref()).await;
            seen.looked_at = None;
            is_taken
        });
        task.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Looks at the owner's row, unless that was done a moment ago. While it says that somebody owns the queue that is a plain read,
    /// which sees each renewal that was granted. Before it is taken to be free, what is under way is ended or finished.
    async fn observe_owner(
        &self,
        seen: &mut ObservedOwner,
        generation: Uuid,
    ) -> Result<Watch, Fault> {
        let Self { database, fifo, .. } = self;
        if seen.looked_at.is_none_or(|looked_at| looked_at.elapsed() >= POLL_INTERVAL_MIN) {
            seen.row = fifo.owners.read_plain(database, generation).await?;
            seen.looked_at = Some(Instant::now());
        }
        // From now on nobody can have seen it for longer.
        let watch = seen.observation.see(seen.row.as_ref(), fifo.observers_now(database));
        if watch != Watch::Free {
            return Ok(watch);
        }
        seen.row = fifo.owners.read(database, generation).await?;
        seen.looked_at = Some(Instant::now());
        Ok(seen.observation.see(seen.row.as_ref(), fifo.observers_now(database)))
    }

    /// Waits until that owner is none any more.
    async fn owner_ends(&self, place: &Place, queue: &FifoQueue, owner: &OwnerRow) {
        let mut pause = WATCH_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let mut seen = place.seen.lock().await;
            let watch = self.observe_owner(&mut seen, queue.generation).await;
            let is_same = seen.row.as_ref().is_some_and(|row| row.holder == owner.holder);
            match watch {
                Ok(Watch::Held { free_at_ms }) if is_same => {
                    let now_ms = self.fifo.observers_now(&self.database).steady_ms;
                    pause = pause_before(free_at_ms.saturating_sub(now_ms));
                }
                Ok(_) => return,
                // Cassandra cannot be asked: nor can the owner renew its lease.
                Err(_) => {}
            }
        }
    }

    /// Lets go of all queues, so that others need not wait for the ends of their leases.
    pub(crate) async fn release_fifo_queues(&self) {
        // What is let go is not taken over again meanwhile, for messages that come from another queue here.
        let _releasing = self.fifo.begin_release();
        release_each(self.fifo.owned()).await;
    }
}

/// Has each of them let go of its queue. One that takes no calls, since its queue cannot be read, keeps none of the others.
async fn release_each(owned: Vec<mpsc::Sender<Input>>) {
    let releases = owned.into_iter().map(|calls| async move {
        let (done, ended) = oneshot::channel();
        if calls.send(Input::Release(done)).await.is_ok() {
            // An actor that has ended by itself has let go, too.
            let _ = ended.await;
        }
    });
    futures_util::future::join_all(releases).await;
}

/// Returns how long to wait before the next look at an owner that may be gone after so many ms.
fn pause_before(free_after_ms: u64) -> Duration {
    Duration::from_millis(free_after_ms).clamp(POLL_INTERVAL_MIN, WATCH_EVERY)
}

/// Whoever waits for a call of this front-end's own; when it is dropped before its answer, the owner hears of it.
struct Waiting {
    calls: mpsc::Sender<Input>,
    call: CallId,
    is_answered: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_answered {
            // Where there is no room, it is found out when the call is answered.
            let _ = self.calls.try_send(Input::Cancel(self.call));
        }
    }
}

/// Returns until when a receive waits for messages.
fn waits_until(operation: &Operation) -> Option<Instant> {
    match operation {
        Operation::Receive(receive) => {
            Some(Instant::now() + Duration::from_millis(receive.wait_ms))
        }
        _ => None,
    }
}

/// Returns the operation with what is left of its wait.
fn with_rest(operation: &Operation, until: Option<Instant>) -> Operation {
    let mut operation = operation.clone();
    if let (Operation::Receive(receive), Some(until)) = (&mut operation, until) {
        receive.wait_ms = until.saturating_duration_since(Instant::now()).as_millis() as u64;
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_is_nearly_gone_is_looked_at_more_often() {
        assert_eq!(pause_before(7_000), WATCH_EVERY);
        assert_eq!(pause_before(900), Duration::from_millis(900));
        assert_eq!(pause_before(0), POLL_INTERVAL_MIN);
    }

    #[tokio::test]
    async fn one_queue_that_takes_no_calls_keeps_no_other_from_being_let_go_of() {
        let (stuck, _inbox) = mpsc::channel(1);
        stuck.try_send(Input::Cancel(CallId(1))).unwrap();
        let (calls, mut inbox) = mpsc::channel(1);
        let released = tokio::spawn(release_each(vec![stuck, calls]));
        let Some(Input::Release(done)) = inbox.recv().await else { panic!("no release") };
        done.send(()).unwrap();
        assert!(!released.is_finished());
        released.abort();
    }
}

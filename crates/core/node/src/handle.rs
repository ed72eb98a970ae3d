//! The way to the core from other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quelea_store::Ticket;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::core::{Call, Core};
use crate::local_core;

/// Calls that wait for the core's next turn; a caller beyond waits for its place.
pub(crate) const CALLS_WAITING_MAX: usize = 256;

/// The core has stopped, or stops: nothing more is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the broker stops")]
pub struct CoreStopped;

/// Runs closures on the core thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CoreHandle {
    calls: mpsc::Sender<Call>,
    wake: Arc<Notify>,
    queues_epoch: Arc<AtomicU64>,
}

/// That the store reaches a ticket.
#[derive(Debug)]
pub struct Promise(oneshot::Receiver<()>);

impl Promise {
    /// Waits until it has.
    ///
    /// # Errors
    /// [`CoreStopped`] if it never will: the core stops, or the disk failed.
    pub async fn kept(self) -> Result<(), CoreStopped> {
        self.0.await.map_err(|_| CoreStopped)
    }
}

impl CoreHandle {
    pub(crate) fn new(wake: Arc<Notify>) -> (Self, mpsc::Receiver<Call>) {
        let (calls, receiver) = mpsc::channel(CALLS_WAITING_MAX);
        (Self { calls, wake, queues_epoch: Arc::default() }, receiver)
    }

    /// Returns a number that changes after anything that is known of queues, users and permissions
    /// may have changed: what was looked up before is then looked up anew. Costs no call.
    #[must_use]
    pub fn queues_epoch(&self) -> u64 {
        self.queues_epoch.load(Ordering::Acquire)
    }

    pub(crate) fn shared_queues_epoch(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.queues_epoch)
    }

    /// Runs `call` in the core's next turn and returns its result. All connections wait while it runs:
    /// it must neither block nor take longer than listing what it was asked for.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core will not run it.
    pub async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, CoreStopped> {
        let call = match local_core::run(&self.wake, call) {
            Ok(result) => return Ok(result),
            Err(call) => call,
        };
        let (sender, receiver) = oneshot::channel();
        self.send(Box::new(move |core: &mut Core| {
            // A caller that went away needs no answer; what it asked for is done all the same.
            let _ = sender.send(call(core));
        }))
        .await?;
        receiver.await.map_err(|_| CoreStopped)
    }

    /// Waits until the store has reached `ticket`.
    ///
    /// # Errors
    /// [`CoreStopped`] if it never will: the core stops, or the disk failed.
    pub async fn reached(&self, ticket: Ticket) -> Result<(), CoreStopped> {
        self.promise(move |_| ((), ticket)).await
    }

    /// Runs `call` as [`CoreHandle::call`] does, and returns its result when the store has reached the
    /// ticket that came with it.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core will not run it, or the store never comes that far: then it may
    /// have been run.
    pub async fn promise<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> (R, Ticket) + Send + 'static,
    ) -> Result<R, CoreStopped> {
        let (sender, receiver) = oneshot::channel();
        self.post(move |core| {
            let (result, ticket) = call(core);
            core.when_reached(
                ticket,
                Box::new(move |_| {
                    // A caller that went away needs no answer; what it asked for is done all the same.
                    let _ = sender.send(result);
                }),
            );
        })
        .await?;
        receiver.await.map_err(|_| CoreStopped)
    }

    /// Runs `call` and returns its result at once, with the promise that the store reaches the ticket that
    /// came with it.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core will not run it.
    pub async fn begin<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> (R, Ticket) + Send + 'static,
    ) -> Result<(R, Promise), CoreStopped> {
        let ((sender, ran), (keeper, promise)) = (oneshot::channel(), oneshot::channel());
        self.post(move |core| {
            let (result, ticket) = call(core);
            // Nobody need wait for either.
            let _ = sender.send(result);
            core.when_reached(
                ticket,
                Box::new(move |_| {
                    let _ = keeper.send(());
                }),
            );
        })
        .await?;
        let result = ran.await.map_err(|_| CoreStopped)?;
        Ok((result, Promise(promise)))
    }

    /// Lets the core's own thread run a future, beside the connections. Its calls of the core cost
    /// no hand-over; it must never block. It is dropped when the core stops.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core will not run it.
    pub async fn spawn_local<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<(), CoreStopped> {
        self.send(Box::new(move |_| {
            // Nobody waits for its end.
            drop(tokio::task::spawn_local(make()));
        }))
        .await
    }

    /// Runs `call` in the core's next turn, unless too many wait already or the core has stopped;
    /// returns whether it will.
    pub fn try_call(&self, call: impl FnOnce(&mut Core) + Send + 'static) -> bool {
        let sent = self.calls.try_send(Box::new(call)).is_ok();
        self.wake.notify_one();
        sent
    }

    /// Runs `call` in the core's next turn, or at once from the core's own thread.
    ///
    /// # Errors
    /// [`CoreStopped`] if the core will not run it.
    pub async fn post(
        &self,
        call: impl FnOnce(&mut Core) + Send + 'static,
    ) -> Result<(), CoreStopped> {
        match local_core::run(&self.wake, call) {
            Ok(()) => Ok(()),
            Err(call) => self.send(Box::new(call)).await,
        }
    }

    async fn send(&self, call: Call) -> Result<(), CoreStopped> {
        self.calls.send(call).await.map_err(|_| CoreStopped)?;
        self.wake.notify_one();
        Ok(())
    }
}

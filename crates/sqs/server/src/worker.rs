//! What the connections of a thread share, and a connection's place among them.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use quelea_sqs_protocol::{Error, ReceiveMessageResult, Reply, Service};
use tokio::sync::watch;

use crate::authentication::Authentication;
use crate::body_budget::Budgets;
use crate::counters::SqsCounters;
use crate::limits::RECEIVES_MAX;
use crate::phases::{Connections, Progress};

/// What the connections of a thread share.
pub(crate) struct Worker<Q, I> {
    pub(crate) service: Service<Q, I>,
    pub(crate) authentication: Authentication,
    pub(crate) connections: Connections,
    pub(crate) connections_max: usize,
    /// Of all threads.
    pub(crate) budgets: Budgets,
    /// Of all threads.
    pub(crate) counters: Arc<SqsCounters>,
    /// How many refused signatures there have to be for the next line of the log: their number doubles from one to
    /// the next, so that a flood of them is no flood of lines.
    pub(crate) failures_logged: Cell<u64>,
    /// Whether the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl<Q, I> Worker<Q, I> {
    /// Returns what a receive answers. One that waits when the server stops has received nothing,
    /// and its client asks elsewhere; one that is taking messages has the time to.
    pub(crate) async fn unless_stopped(
        &self,
        receive: impl Future<Output = Result<Reply, Error>>,
    ) -> Result<Reply, Error> {
        let nothing = || Ok(Reply::ReceiveMessage(ReceiveMessageResult::default()));
        if *self.stopping.borrow() {
            return nothing();
        }
        let mut stopping = self.stopping.clone();
        let stop = async {
            // Its sender's end means the same.
            let _ = stopping.wait_for(|stopping| *stopping).await;
            tokio::time::sleep(RECEIVES_MAX).await;
        };
        tokio::select! {
            biased;
            received = receive => received,
            () = stop => nothing(),
        }
    }

    /// A request was refused for its signature, or for want of one.
    pub(crate) fn signature_refused(&self, peer: IpAddr, error: &Error) {
        self.counters.count_refused_signature();
        let refused = self.counters.signatures_refused();
        if refused >= self.failures_logged.get() {
            self.failures_logged.set(refused.saturating_mul(2));
            let (code, reason) = (error.kind.code(), &*error.message);
            tracing::warn!(%peer, code, reason, refused, "an SQS request is refused");
        }
    }
}

/// A connection's place among those that there may be; it is given back when it is dropped, however
/// the connection ends.
pub(crate) struct Place<Q, I> {
    worker: Rc<Worker<Q, I>>,
    pub(crate) number: usize,
}

impl<Q, I> Place<Q, I> {
    pub(crate) fn take(worker: &Rc<Worker<Q, I>>) -> Option<(Self, Rc<Progress>)> {
        if !worker.counters.open_connection(worker.connections_max) {
            return None;
        }
        let (number, progress) = worker.connections.add();
        Some((Self { worker: Rc::clone(worker), number }, progress))
    }
}

impl<Q, I> Drop for Place<Q, I> {
    fn drop(&mut self) {
        self.worker.connections.remove(self.number);
        self.worker.counters.close_connection();
    }
}

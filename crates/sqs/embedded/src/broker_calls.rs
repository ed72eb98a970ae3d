//! Calls of the broker's core, and waiting for what they promise.

use std::sync::Arc;
use std::time::Duration;

use quelea_broker::ReceiptOutcome;
use quelea_model::QueueId;
use quelea_node::{Core, CoreHandle, CoreStopped};
use quelea_sqs_protocol::{Fault, QueueClass, QueueKey};
use quelea_store::Ticket;

use crate::settings::EmbeddedSettings;

/// While the broker has too much to write, senders wait for so long before they look again, and for
/// so long in all.
const RETRY_AFTER: Duration = Duration::from_millis(5);
const RETRIES_MAX: usize = 1_000;

/// The broker's core, and what accounts are there. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct BrokerCalls {
    core: CoreHandle,
    settings: Arc<EmbeddedSettings>,
}

impl BrokerCalls {
    pub(crate) fn new(core: CoreHandle, settings: EmbeddedSettings) -> Self {
        Self { core, settings: Arc::new(settings) }
    }

    pub(crate) const fn core(&self) -> &CoreHandle {
        &self.core
    }

    pub(crate) fn cooldown_ms(&self) -> u64 {
        self.settings.cooldown_ms
    }

    pub(crate) fn vhost(&self, account: &str) -> Option<Arc<str>> {
        self.settings.vhost(account)
    }

    pub(crate) fn account(&self, vhost: &str) -> Arc<str> {
        self.settings.account(vhost)
    }

    pub(crate) async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Fault> {
        self.core.call(call).await.map_err(stopped)
    }

    /// Runs a change and waits until it is durable.
    pub(crate) async fn promise<R: Send + 'static, E: Into<Fault> + Send + 'static>(
        &self,
        call: impl FnOnce(&mut Core) -> Result<(R, Ticket), E> + Send + 'static,
    ) -> Result<R, Fault> {
        let promised = self.core.promise(move |core| match call(core) {
            Ok((result, ticket)) => (Ok(result), ticket),
            Err(error) => (Err(error), Ticket::NONE),
        });
        promised.await.map_err(stopped)?.map_err(Into::into)
    }

    /// Waits while the broker has more to write than it may to take so many bytes more; not while its disk is full.
    pub(crate) async fn wait_for_room(&self, bytes: usize) -> Result<(), Fault> {
        for _ in 0..RETRIES_MAX {
            let state = self.call(move |core| {
                let blocked = core.broker.publishers_blocked().map(str::to_owned);
                (core.broker.accepts_publish(bytes), blocked)
            });
            match state.await? {
                (true, _) => return Ok(()),
                (false, Some(reason)) => return Err(Fault::Unavailable(reason)),
                (false, None) => tokio::time::sleep(RETRY_AFTER).await,
            }
        }
        Err(Fault::Unavailable("the log cannot keep up".to_owned()))
    }

    /// Settles receipts; waits for messages that have to be read before.
    pub(crate) async fn settle(
        &self,
        call: impl Fn(&mut Core) -> Result<(Vec<ReceiptOutcome>, Ticket), Fault>
        + Clone
        + Send
        + 'static,
    ) -> Result<Vec<ReceiptOutcome>, Fault> {
        for _ in 0..RETRIES_MAX {
            let outcomes = self.promise(call.clone()).await?;
            if !outcomes.contains(&ReceiptOutcome::Busy) {
                return Ok(outcomes);
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        Err(Fault::Unavailable("the message cannot be read".to_owned()))
    }
}

pub(crate) fn stopped(_: CoreStopped) -> Fault {
    Fault::Unavailable("the broker stops, or its disk failed".to_owned())
}

pub(crate) fn queue_id(key: QueueKey) -> Result<QueueId, Fault> {
    let id = key.id_in(QueueClass::Ordered).and_then(|id| u32::try_from(id).ok());
    id.map(QueueId).ok_or(Fault::NoSuchQueue)
}

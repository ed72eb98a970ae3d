//! Who gets messages of a queue by HTTP: a connection inside the broker, with the permissions of its user.

use std::sync::Arc;
use std::time::Duration;

use quelea_broker::{Browse, BrowsedPage, ChannelId, Effect, GetError, OpenError};
use quelea_model::Message;
use quelea_node::{Core, InternalChannel, InternalClient};

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::operation::vhost_exists;
use crate::state::ApiState;

/// How long a message may take to be read from the log.
const GET_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection inside the broker that gets messages. What it has when it goes is back in its queue.
pub(crate) struct Getter {
    api: ApiState,
    inside: InternalChannel,
}

/// What becomes of messages that were got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckMode {
    Requeue,
    Acknowledge,
    /// To the dead-letter exchange, if the queue has one.
    Reject,
}

/// A message that was got.
pub(crate) struct Got {
    pub(crate) message: Arc<Message>,
    pub(crate) redelivered: bool,
    pub(crate) message_count: u32,
    pub(crate) delivery_tag: u64,
}

impl Getter {
    pub(crate) async fn open(
        api: &ApiState,
        user: &ApiUser,
        vhost: String,
    ) -> Result<Self, ApiError> {
        if !vhost_exists(api, &vhost).await? {
            return Err(ApiError::NotFound);
        }
        let (user, kept) = (user.name.clone(), api.clone());
        // It is made where the connection is opened: whose request has gone meanwhile has it closed again.
        let opened = api.on_core(move |core| {
            let (sender, effects) = tokio::sync::mpsc::unbounded_channel();
            let (name, protocol) = (format!("management API, {user}"), "management");
            let client =
                InternalClient { user: &user, vhost: &vhost, local: "", name: &name, protocol };
            let (connection, channel) = core.open_internal(client, sender)?;
            let inside = InternalChannel { connection, channel, effects };
            Ok::<_, OpenError>(Self { api: kept, inside })
        });
        opened.await?.map_err(ApiError::from)
    }

    /// Returns the getter's channel in the broker.
    pub(crate) const fn channel(&self) -> ChannelId {
        self.inside.channel
    }

    /// Returns a page of what is ready, all of which stays as it is.
    pub(crate) async fn browse(
        &mut self,
        queue: &str,
        wanted: Browse,
    ) -> Result<BrowsedPage, ApiError> {
        let (channel, queue) = (self.inside.channel, queue.to_owned());
        let browse = move |core: &mut Core| core.broker.browse(core.now(), channel, &queue, wanted);
        match self.api.on_core(browse).await? {
            Err(GetError::LimitReached(_)) => {
                return Err(ApiError::Busy("too many look at queues"));
            }
            begun => begun?,
        }
        loop {
            match self.next_effect().await? {
                Effect::Browsed { page, .. } => return Ok(*page),
                Effect::CloseConnection { reason, .. } => {
                    return Err(ApiError::Unavailable(reason.text()));
                }
                _ => {}
            }
        }
    }

    async fn next_effect(&mut self) -> Result<Effect, ApiError> {
        let effect = tokio::time::timeout(GET_TIMEOUT, self.inside.effects.recv());
        let effect = effect.await.map_err(|_| ApiError::Busy("the message is not read yet"))?;
        effect.ok_or(ApiError::Stopping)
    }

    /// Gets the next message; `None` if there is none.
    pub(crate) async fn get(&mut self, queue: &str) -> Result<Option<Got>, ApiError> {
        let (channel, queue) = (self.inside.channel, queue.to_owned());
        self.api.on_core(move |core| core.broker.get(core.now(), channel, &queue, false)).await??;
        loop {
            match self.next_effect().await? {
                Effect::Got { delivery_tag, redelivered, message_count, message, .. } => {
                    let connection = self.inside.connection;
                    self.api
                        .on_core(move |core| {
                            core.broker.output_drained(core.now(), connection, usize::MAX);
                        })
                        .await?;
                    return Ok(Some(Got { message, redelivered, message_count, delivery_tag }));
                }
                Effect::GotEmpty { .. } => return Ok(None),
                Effect::CloseConnection { reason, .. } => {
                    return Err(ApiError::Unavailable(reason.text()));
                }
                _ => {}
            }
        }
    }

    /// Settles all messages up to this one.
    pub(crate) async fn settle(&self, last: u64, mode: AckMode) -> Result<(), ApiError> {
        let channel = self.inside.channel;
        let settled = self.api.on_core(move |core| {
            let now = core.now();
            match mode {
                AckMode::Acknowledge => core.broker.ack(now, channel, last, true),
                AckMode::Reject => core.broker.nack(now, channel, last, true, false),
                AckMode::Requeue => core.broker.nack(now, channel, last, true, true),
            }
        });
        // Its messages were taken from it: their queue is gone.
        settled.await?.map_err(ApiError::bad)
    }
}

impl Drop for Getter {
    fn drop(&mut self) {
        let connection = self.inside.connection;
        if self.api.core.try_call(move |core| core.detach(connection)) {
            return;
        }
        // Too many wait for the core: its messages have to go back all the same. Without a runtime all of it stops.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let core = self.api.core.clone();
            runtime.spawn(async move {
                // A core that has stopped has no connections.
                let _ = core.call(move |core| core.detach(connection)).await;
            });
        }
    }
}

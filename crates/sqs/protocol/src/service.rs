//! The operations: what SQS checks in a request, what it asks of the queues, what it answers.

mod access;
mod attributes;
mod batch;
mod caller;
mod change;
mod delete;
mod json_call;
mod moves;
mod paging;
mod peek;
mod permissions;
mod queue_change;
mod queues;
mod receipt;
mod receive;
mod send;
mod tags;
mod visibility;

use core::pin::Pin;
use std::sync::Arc;

pub use self::caller::Caller;
pub use self::queue_change::{ChangeSink, QueueChange};
pub use self::queues::check_new_queue;
use crate::names::{arn_of_queue, path_of_queue, queue_of_url};
use crate::refusal;
use crate::{
    Action, AnyIdentity, AnyQueues, Error, ErrorKind, Identity, QueueClass, QueueFacts, QueueRef,
    Queues, Reply, Request,
};

/// What the service goes by in ARNs and for new queues.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// The region in ARNs, such as `us-east-1`.
    pub region: Arc<str>,
    /// The class of queues that are made without the attribute `Class`.
    pub default_class: QueueClass,
    /// Is notified of what is changed.
    pub changes: ChangeSink,
}

/// The service on a store of queues. It holds no state, so there may be any number over one store.
#[derive(Clone, Debug)]
pub struct Service<Q, I> {
    queues: Q,
    identity: I,
    settings: ServiceSettings,
}

/// The service on whatever store.
pub type AnyService = Service<AnyQueues, AnyIdentity>;

impl<Q: Queues, I: Identity> Service<Q, I> {
    /// Returns a service on these queues, for those whom `identity` knows.
    #[must_use]
    pub const fn new(queues: Q, identity: I, settings: ServiceSettings) -> Self {
        Self { queues, identity, settings }
    }

    /// Returns the identity store, which knows who may call, to look up access keys.
    #[must_use]
    pub const fn identity(&self) -> &I {
        &self.identity
    }

    /// Carries out a request. A dropped future may have done it, see [`Queues`].
    ///
    /// # Errors
    /// As SQS refuses, with its texts.
    pub async fn handle(&self, caller: &Caller, request: Request) -> Result<Reply, Error> {
        let change = self.settings.changes.change(caller, &request);
        let reply = self.operate(caller, request).await?;
        if let Some(change) = change {
            self.settings.changes.done(caller, change);
        }
        Ok(reply)
    }

    async fn operate(&self, caller: &Caller, request: Request) -> Result<Reply, Error> {
        // Each operation has a box of its own: 100,000 waiting receives must not each hold the room
        // that the largest operation needs.
        let operation: Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send>> = match request {
            Request::SendMessage(request) => Box::pin(self.send_message(caller, request)),
            Request::ReceiveMessage(request) => Box::pin(self.receive_message(caller, request)),
            Request::DeleteMessage(request) => Box::pin(self.delete_message(caller, request)),
            Request::SendMessageBatch(request) => {
                Box::pin(self.send_message_batch(caller, request))
            }
            Request::DeleteMessageBatch(request) => {
                Box::pin(self.delete_message_batch(caller, request))
            }
            Request::ChangeMessageVisibility(request) => {
                Box::pin(self.change_message_visibility(caller, request))
            }
            Request::ChangeMessageVisibilityBatch(request) => {
                Box::pin(self.change_message_visibility_batch(caller, request))
            }
            Request::CreateQueue(request) => Box::pin(self.create_queue(caller, request)),
            Request::DeleteQueue(request) => Box::pin(self.delete_queue(caller, request)),
            Request::GetQueueUrl(request) => Box::pin(self.get_queue_url(caller, request)),
            Request::ListQueues(request) => Box::pin(self.list_queues(caller, request)),
            Request::PurgeQueue(request) => Box::pin(self.purge_queue(caller, request)),
            Request::GetQueueAttributes(request) => {
                Box::pin(self.get_queue_attributes(caller, request))
            }
            Request::SetQueueAttributes(request) => {
                Box::pin(self.set_queue_attributes(caller, request))
            }
            Request::TagQueue(request) => Box::pin(self.tag_queue(caller, request)),
            Request::UntagQueue(request) => Box::pin(self.untag_queue(caller, request)),
            Request::ListQueueTags(request) => Box::pin(self.list_queue_tags(caller, request)),
            Request::AddPermission(request) => Box::pin(self.add_permission(caller, request)),
            Request::RemovePermission(request) => Box::pin(self.remove_permission(caller, request)),
            Request::ListDeadLetterSourceQueues(request) => {
                Box::pin(self.list_dead_letter_source_queues(caller, request))
            }
            Request::StartMessageMoveTask(request) => {
                Box::pin(self.start_message_move_task(caller, request))
            }
            Request::CancelMessageMoveTask(request) => {
                Box::pin(self.cancel_message_move_task(caller, request))
            }
            Request::ListMessageMoveTasks(request) => {
                Box::pin(self.list_message_move_tasks(caller, request))
            }
        };
        operation.await
    }

    /// Returns the queue that a request names, if the caller may do that with it.
    async fn target(
        &self,
        caller: &Caller,
        queue_url: Option<&str>,
        action: Action,
    ) -> Result<Arc<QueueFacts>, Error> {
        let url = queue_url.filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| refusal::missing("QueueUrl"))?;
        let queue = queue_of_url(url, &caller.user.account).ok_or_else(|| {
            let message = format!("The address {url} is not valid for this endpoint.");
            refusal::error(ErrorKind::InvalidAddress, message)
        })?;
        let found = match is_about_messages(action) {
            true => self.find(&queue).await?,
            false => self.find_now(&queue).await?,
        };
        let target = found.ok_or_else(refusal::no_such_queue)?;
        self.authorize(caller, action, &target).await?;
        Ok(target)
    }

    /// Returns the same as [`Self::find`], as it is now.
    async fn find_now(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Error> {
        self.queues.facts_now(queue).await.map_err(refusal::fault)
    }

    /// Returns a queue, whatever the caller may do with it.
    async fn find(&self, queue: &QueueRef) -> Result<Option<Arc<QueueFacts>>, Error> {
        self.queues.facts(queue).await.map_err(refusal::fault)
    }

    fn arn(&self, queue: &QueueRef) -> String {
        arn_of_queue(queue, &self.settings.region)
    }
}

/// Returns whether an action goes by what is remembered of its queue: those do that come by the
/// thousand. All others see what was done before them through any front-end.
const fn is_about_messages(action: Action) -> bool {
    matches!(
        action,
        Action::SendMessage
            | Action::SendMessageBatch
            | Action::ReceiveMessage
            | Action::DeleteMessage
            | Action::DeleteMessageBatch
            | Action::ChangeMessageVisibility
            | Action::ChangeMessageVisibilityBatch
    )
}

impl Caller {
    fn url_of(&self, queue: &QueueRef) -> String {
        format!("{}{}", self.base_url, path_of_queue(queue))
    }

    /// Returns the URL of a queue of the caller's account.
    fn url_of_own(&self, name: &str) -> String {
        self.url_of(&QueueRef { account: self.user.account.clone(), name: name.into() })
    }
}

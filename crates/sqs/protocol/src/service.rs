//! The operations: what SQS checks in a request, what it asks of the queues, what it answers.

mod access;
mod attributes;
mod batch;
mod change;
mod delete;
mod moves;
mod paging;
mod permissions;
mod queues;
mod receipt;
mod receive;
mod send;
mod tags;
mod visibility;

use core::net::IpAddr;
use std::sync::Arc;

use crate::names::{arn_of_queue, path_of_queue, queue_of_url};
use crate::refusal;
use crate::{Action, Error, ErrorKind, QueueFacts, QueueRef, Queues, Reply, Request, User};

/// What the service says of itself in ARNs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// The region, such as `us-east-1`.
    pub region: Arc<str>,
}

/// Who calls, and by what way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub user: User,
    /// What the URLs of queues begin with: scheme and host as the client wrote it, no path.
    pub base_url: String,
    /// Where the request came from, for policies.
    pub source_ip: Option<IpAddr>,
    /// The header `User-Agent`, for policies.
    pub user_agent: Option<String>,
    /// The header `X-Amzn-Trace-Id`, which goes with messages that have no trace header of their own.
    pub trace_header: Option<String>,
    /// When the request came, in ms since 1970.
    pub now_ms: u64,
}

/// The service on a store of queues. It holds no state, so there may be any number over one store.
#[derive(Clone, Debug)]
pub struct Service<Q> {
    queues: Q,
    settings: ServiceSettings,
}

impl<Q: Queues> Service<Q> {
    /// A service on these queues.
    #[must_use]
    pub const fn new(queues: Q, settings: ServiceSettings) -> Self {
        Self { queues, settings }
    }

    /// The store of queues, to look up access keys.
    #[must_use]
    pub const fn queues(&self) -> &Q {
        &self.queues
    }

    /// Does what is asked for. A dropped future may have done it, see [`Queues`].
    ///
    /// # Errors
    /// As SQS refuses, with its texts.
    pub async fn handle(&self, caller: &Caller, request: Request) -> Result<Reply, Error> {
        // Each operation has a box of its own: 100,000 waiting receives must not each hold the room
        // that the largest operation needs.
        match request {
            Request::SendMessage(request) => Box::pin(self.send_message(caller, request)).await,
            Request::ReceiveMessage(request) => {
                Box::pin(self.receive_message(caller, request)).await
            }
            Request::DeleteMessage(request) => Box::pin(self.delete_message(caller, request)).await,
            Request::SendMessageBatch(request) => {
                Box::pin(self.send_message_batch(caller, request)).await
            }
            Request::DeleteMessageBatch(request) => {
                Box::pin(self.delete_message_batch(caller, request)).await
            }
            Request::ChangeMessageVisibility(request) => {
                Box::pin(self.change_message_visibility(caller, request)).await
            }
            Request::ChangeMessageVisibilityBatch(request) => {
                Box::pin(self.change_message_visibility_batch(caller, request)).await
            }
            other => Box::pin(self.handle_rare(caller, other)).await,
        }
    }

    /// Operations on queues themselves.
    async fn handle_rare(&self, caller: &Caller, request: Request) -> Result<Reply, Error> {
        match request {
            Request::CreateQueue(request) => self.create_queue(caller, request).await,
            Request::DeleteQueue(request) => self.delete_queue(caller, request).await,
            Request::GetQueueUrl(request) => self.get_queue_url(caller, request).await,
            Request::ListQueues(request) => self.list_queues(caller, request).await,
            Request::PurgeQueue(request) => self.purge_queue(caller, request).await,
            Request::GetQueueAttributes(request) => {
                self.get_queue_attributes(caller, request).await
            }
            Request::SetQueueAttributes(request) => {
                self.set_queue_attributes(caller, request).await
            }
            Request::TagQueue(request) => self.tag_queue(caller, request).await,
            Request::UntagQueue(request) => self.untag_queue(caller, request).await,
            Request::ListQueueTags(request) => self.list_queue_tags(caller, request).await,
            Request::AddPermission(request) => self.add_permission(caller, request).await,
            Request::RemovePermission(request) => self.remove_permission(caller, request).await,
            Request::ListDeadLetterSourceQueues(request) => {
                self.list_dead_letter_source_queues(caller, request).await
            }
            Request::StartMessageMoveTask(request) => {
                self.start_message_move_task(caller, request).await
            }
            Request::CancelMessageMoveTask(request) => {
                self.cancel_message_move_task(caller, request).await
            }
            Request::ListMessageMoveTasks(request) => {
                self.list_message_move_tasks(caller, request).await
            }
            Request::SendMessage(_)
            | Request::SendMessageBatch(_)
            | Request::ReceiveMessage(_)
            | Request::DeleteMessage(_)
            | Request::DeleteMessageBatch(_)
            | Request::ChangeMessageVisibility(_)
            | Request::ChangeMessageVisibilityBatch(_) => {
                // `handle` has taken these.
                Err(refusal::error(ErrorKind::InternalFailure, "the request took a wrong turn"))
            }
        }
    }

    /// The queue that a request names, if the caller may do that with it.
    async fn target(
        &self,
        caller: &Caller,
        queue_url: Option<&str>,
        action: Action,
    ) -> Result<Target, Error> {
        let url = queue_url.filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| refusal::missing("QueueUrl"))?;
        let queue = queue_of_url(url, &caller.user.account).ok_or_else(|| {
            let message = format!("The address {url} is not valid for this endpoint.");
            refusal::error(ErrorKind::InvalidAddress, message)
        })?;
        let target = self.find(caller, queue).await?.ok_or_else(refusal::no_such_queue)?;
        self.authorize(caller, action, &target)?;
        Ok(target)
    }

    /// A queue, whatever the caller may do with it.
    async fn find(&self, caller: &Caller, queue: QueueRef) -> Result<Option<Target>, Error> {
        let facts = self.queues.facts(&caller.user, &queue).await.map_err(refusal::fault)?;
        Ok(facts.map(|facts| Target { queue, facts }))
    }

    fn arn(&self, queue: &QueueRef) -> String {
        arn_of_queue(queue, &self.settings.region)
    }
}

/// A queue that exists.
#[derive(Clone, Debug)]
struct Target {
    queue: QueueRef,
    facts: Arc<QueueFacts>,
}

impl Caller {
    fn url_of(&self, queue: &QueueRef) -> String {
        format!("{}{}", self.base_url, path_of_queue(queue))
    }

    /// Of a queue of the caller's account.
    fn url_of_own(&self, name: &str) -> String {
        self.url_of(&QueueRef { account: self.user.account.clone(), name: name.into() })
    }
}

//! CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, PurgeQueue and ListDeadLetterSourceQueues.

use super::access::FOR_WANT_OF_PERMISSION;
use super::paging::Page;
use super::{Caller, Service, tags};
use crate::action::{
    CreateQueueRequest, CreateQueueResult, DeleteQueueRequest, GetQueueUrlRequest,
    GetQueueUrlResult, ListDeadLetterSourceQueuesRequest, ListDeadLetterSourceQueuesResult,
    ListQueuesRequest, ListQueuesResult, PurgeQueueRequest,
};
use crate::attributes::{first_difference, for_new_queue, is_fifo};
use crate::names::{FIFO_SUFFIX, is_fifo_queue_name, is_standard_queue_name};
use crate::refusal;
use crate::{Action, Created, Error, ErrorKind, Fault, QueueRef, Queues, Reply};

impl<Q: Queues> Service<Q> {
    pub(super) async fn create_queue(
        &self,
        caller: &Caller,
        request: CreateQueueRequest,
    ) -> Result<Reply, Error> {
        let name = request.queue_name.ok_or_else(no_name)?;
        let says_fifo = request.attributes.get("FifoQueue");
        check_name(&name, says_fifo.is_some_and(|value| value.eq_ignore_ascii_case("true")))?;
        let attributes = for_new_queue(&request.attributes)?;
        tags::check(&request.tags, &name)?;
        let queue = QueueRef { account: caller.user.account.clone(), name: name.into() };
        let kind = is_fifo(&attributes);
        if let Some(policy) = request.attributes.get("RedrivePolicy")
            && !policy.is_empty()
        {
            self.check_dead_letter_queue(caller, &queue, kind, policy).await?;
        }
        let wished = attributes.clone();
        let created = self.queues.create(&caller.user, &queue, attributes, request.tags).await;
        match created.map_err(refusal::fault)? {
            Created::New => {}
            Created::Exists(facts) => {
                if let Some(name) = first_difference(&facts.attributes, &wished) {
                    let message = format!(
                        "A queue already exists with the same name and a different value for \
                         attribute {name}"
                    );
                    return Err(refusal::error(ErrorKind::QueueNameExists, message));
                }
            }
            Created::DeletedRecently => {
                return Err(refusal::error(
                    ErrorKind::QueueDeletedRecently,
                    "You must wait 60 seconds after deleting a queue before you can create another \
                     with the same name.",
                ));
            }
            Created::Refused => {
                let (action, why) = (Action::CreateQueue, FOR_WANT_OF_PERMISSION);
                return Err(self.denied(caller, action, &queue, why));
            }
        }
        let queue_url = Some(caller.url_of(&queue));
        Ok(Reply::CreateQueue(CreateQueueResult { queue_url }))
    }

    pub(super) async fn delete_queue(
        &self,
        caller: &Caller,
        request: DeleteQueueRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::DeleteQueue).await?;
        self.queues.delete_queue(target.facts.key).await.map_err(refusal::fault)?;
        Ok(Reply::Empty)
    }

    pub(super) async fn get_queue_url(
        &self,
        caller: &Caller,
        request: GetQueueUrlRequest,
    ) -> Result<Reply, Error> {
        let name = request.queue_name.filter(|name| !name.is_empty()).ok_or_else(no_name)?;
        let owner = request.queue_owner_aws_account_id.filter(|owner| !owner.is_empty());
        let account = owner.map_or_else(|| caller.user.account.clone(), Into::into);
        let queue = QueueRef { account, name: name.into() };
        let target = self.find(caller, queue).await?.ok_or_else(refusal::no_such_queue)?;
        self.authorize(caller, Action::GetQueueUrl, &target)?;
        let queue_url = Some(caller.url_of(&target.queue));
        Ok(Reply::GetQueueUrl(GetQueueUrlResult { queue_url }))
    }

    pub(super) async fn list_queues(
        &self,
        caller: &Caller,
        request: ListQueuesRequest,
    ) -> Result<Reply, Error> {
        let page = Page::read(request.max_results, request.next_token.as_deref())?;
        let prefix = request.queue_name_prefix.unwrap_or_default();
        let (user, after) = (&caller.user, page.after.as_deref());
        let listing = self.queues.list(user, &user.account, &prefix, after, page.wanted());
        let mut names = listing.await.map_err(refusal::fault)?;
        let next_token = page.cut(&mut names);
        let queue_urls = names.iter().map(|name| caller.url_of_own(name)).collect();
        Ok(Reply::ListQueues(ListQueuesResult { queue_urls, next_token }))
    }

    pub(super) async fn purge_queue(
        &self,
        caller: &Caller,
        request: PurgeQueueRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::PurgeQueue).await?;
        match self.queues.purge(target.facts.key).await {
            Ok(()) => Ok(Reply::Empty),
            Err(Fault::PurgeInProgress) => {
                let message = format!(
                    "Only one PurgeQueue operation on {} is allowed every 60 seconds.",
                    target.queue.name
                );
                Err(refusal::error(ErrorKind::PurgeQueueInProgress, message))
            }
            Err(fault) => Err(refusal::fault(fault)),
        }
    }

    pub(super) async fn list_dead_letter_source_queues(
        &self,
        caller: &Caller,
        request: ListDeadLetterSourceQueuesRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::ListDeadLetterSourceQueues).await?;
        let page = Page::read(request.max_results, request.next_token.as_deref())?;
        let (user, after) = (&caller.user, page.after.as_deref());
        let listing = self.queues.dead_letter_sources(user, &target.queue, after, page.wanted());
        let mut names = listing.await.map_err(refusal::fault)?;
        let next_token = page.cut(&mut names);
        let account = &target.queue.account;
        let url = |name: &String| {
            caller.url_of(&QueueRef { account: account.clone(), name: name.as_str().into() })
        };
        let queue_urls = names.iter().map(url).collect();
        let result = ListDeadLetterSourceQueuesResult { queue_urls, next_token };
        Ok(Reply::ListDeadLetterSourceQueues(result))
    }
}

/// Here SQS does not say that a parameter is missing, as it does elsewhere.
fn no_name() -> Error {
    refusal::invalid("Value for parameter QueueName is invalid. Reason: Must specify a queue name.")
}

/// Checks a new queue's name.
fn check_name(name: &str, is_fifo: bool) -> Result<(), Error> {
    match is_fifo {
        true if !is_fifo_queue_name(name) => Err(refusal::invalid(format!(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or \
             underscores, must end with {FIFO_SUFFIX} suffix and be 1 to 80 in length"
        ))),
        false if !is_standard_queue_name(name) => Err(refusal::invalid(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )),
        _ => Ok(()),
    }
}

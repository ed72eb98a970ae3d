//! CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, PurgeQueue and ListDeadLetterSourceQueues.

use super::attributes::Source;
use super::paging::Page;
use super::{Caller, Service, tags};
use crate::action::{
    CreateQueueRequest, CreateQueueResult, DeleteQueueRequest, GetQueueUrlRequest,
    GetQueueUrlResult, ListDeadLetterSourceQueuesRequest, ListDeadLetterSourceQueuesResult,
    ListQueuesRequest, ListQueuesResult, PurgeQueueRequest,
};
use crate::attributes::{Attributes, CLASS, class_of, first_difference, for_new_queue, is_fifo};
use crate::names::{FIFO_SUFFIX, is_fifo_queue_name, is_standard_queue_name};
use crate::refusal;
use crate::{
    Action, Created, Error, ErrorKind, Fault, Identity, NewQueue, QueueRef, Queues, Reply,
};

/// Checks a queue that is to be made, and returns its attributes in the form in which they are
/// stored.
///
/// # Errors
/// As SQS refuses names, attributes and tags; what other queues have to do with it is not looked at.
pub fn check_new_queue(
    name: &str,
    attributes: &Attributes,
    tags: &Attributes,
) -> Result<Attributes, Error> {
    let says_fifo = attributes.get("FifoQueue");
    check_name(name, says_fifo.is_some_and(|value| value.eq_ignore_ascii_case("true")))?;
    let checked = for_new_queue(attributes)?;
    tags::check(tags, name)?;
    Ok(checked)
}

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn create_queue(
        &self,
        caller: &Caller,
        request: CreateQueueRequest,
    ) -> Result<Reply, Error> {
        let name = request.queue_name.ok_or_else(no_name)?;
        let attributes = check_new_queue(&name, &request.attributes, &request.tags)?;
        let says_class = class_of(&request.attributes)?;
        let class = says_class.unwrap_or(self.settings.default_class);
        self.check_of_class(class, &request.attributes)?;
        let queue = QueueRef { account: caller.user.account.clone(), name: name.into() };
        self.check_permits(caller, Action::CreateQueue, &queue).await?;
        if let Some(policy) = request.attributes.get("RedrivePolicy")
            && !policy.is_empty()
        {
            let source = Source { queue: &queue, class, is_fifo: is_fifo(&attributes) };
            self.check_dead_letter_queue(caller, &source, policy).await?;
        }
        let new = NewQueue { class, attributes: attributes.clone(), tags: request.tags };
        match self.queues.create(&queue, new).await.map_err(refusal::fault)? {
            Created::New => {}
            Created::Exists(facts) => {
                let other = says_class.filter(|class| *class != facts.key.class());
                let difference = match other {
                    Some(_) => Some(CLASS),
                    None => first_difference(&facts.attributes, &attributes),
                };
                if let Some(name) = difference {
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
        self.queues.delete_queue(&target).await.map_err(refusal::fault)?;
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
        let target = self.find_now(&queue).await?.ok_or_else(refusal::no_such_queue)?;
        self.authorize(caller, Action::GetQueueUrl, &target).await?;
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
        let mut names = self.visible_names(caller, &prefix, &page).await?;
        let next_token = page.cut(&mut names);
        let queue_urls = names.iter().map(|name| caller.url_of_own(name)).collect();
        Ok(Reply::ListQueues(ListQueuesResult { queue_urls, next_token }))
    }

    /// Lists names of queues of the caller's account that the caller may see: a page, and one more.
    async fn visible_names(
        &self,
        caller: &Caller,
        prefix: &str,
        page: &Page,
    ) -> Result<Vec<String>, Error> {
        let (user, wanted) = (&caller.user, page.wanted());
        let mut after = page.after.clone();
        let mut visible = Vec::new();
        loop {
            let names = self.queues.list(&user.account, prefix, after.as_deref(), wanted).await;
            let names = names.map_err(refusal::fault)?;
            if user.name.is_none() {
                return Ok(names);
            }
            let is_last = names.len() < wanted;
            after = names.last().cloned();
            let shown = self.identity.visible(user, &user.account, names).await;
            visible.extend(shown.map_err(refusal::fault)?);
            if is_last || visible.len() >= wanted {
                return Ok(visible);
            }
        }
    }

    pub(super) async fn purge_queue(
        &self,
        caller: &Caller,
        request: PurgeQueueRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::PurgeQueue).await?;
        match self.queues.purge(&target).await {
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
        let after = page.after.as_deref();
        let listing = self.queues.dead_letter_sources(&target, after, page.wanted());
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

/// Returns the error for a missing name: here SQS does not say that a parameter is missing, as it
/// does elsewhere.
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

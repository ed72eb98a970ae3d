//! GetQueueAttributes and SetQueueAttributes.

use std::collections::BTreeMap;

use super::change::Part;
use super::{Caller, Service};
use crate::action::{
    GetQueueAttributesRequest, GetQueueAttributesResult, SetQueueAttributesRequest,
};
use crate::attributes::{
    CLASS, COMPUTED, CONSISTENCY, DURABILITY, OLDEST_AGE, after_setting, all_effective,
    check_of_class, effective, is_known,
};
use crate::redrive::{RedriveAllowPolicy, RedrivePolicy};
use crate::refusal;
use crate::{
    Action, Backlog, Consistency, Error, Identity, QueueClass, QueueFacts, QueueRef, Queues, Reply,
};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn get_queue_attributes(
        &self,
        caller: &Caller,
        request: GetQueueAttributesRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::GetQueueAttributes).await?;
        let names = &request.attribute_names;
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(refusal::unknown_attribute(unknown));
        }
        let all = names.iter().any(|name| name == "All");
        let mut attributes = match all {
            true => all_effective(&target.attributes),
            false => BTreeMap::new(),
        };
        let computed = COMPUTED.iter().filter(|_| all).copied();
        let wanted: Vec<&str> = computed.chain(names.iter().map(String::as_str)).collect();
        // Counting may cost the store something, so only when it is asked for.
        let counted = wanted.iter().any(|name| name.starts_with("Approximate"));
        let backlog = match counted {
            true => self.queues.backlog(&target).await.map_err(refusal::fault)?,
            false => Backlog::default(),
        };
        for name in wanted {
            if let Some(value) = self.attribute(&target, &backlog, name) {
                attributes.insert(name.to_owned(), value);
            }
        }
        Ok(Reply::GetQueueAttributes(GetQueueAttributesResult { attributes }))
    }

    fn attribute(&self, facts: &QueueFacts, backlog: &Backlog, name: &str) -> Option<String> {
        Some(match name {
            "ApproximateNumberOfMessages" => backlog.visible.to_string(),
            "ApproximateNumberOfMessagesNotVisible" => backlog.in_flight.to_string(),
            "ApproximateNumberOfMessagesDelayed" => backlog.delayed.to_string(),
            OLDEST_AGE => backlog.oldest_age_s.to_string(),
            "CreatedTimestamp" => (facts.created_at_ms / 1000).to_string(),
            "LastModifiedTimestamp" => (facts.modified_at_ms / 1000).to_string(),
            "QueueArn" => self.arn(&facts.queue),
            CLASS => facts.key.class().name().to_owned(),
            CONSISTENCY => self.consistency(facts)?.name().to_owned(),
            DURABILITY if !self.queues.capabilities(facts.key.class())?.durability => return None,
            name => return effective(&facts.attributes, name).map(str::to_owned),
        })
    }

    fn consistency(&self, facts: &QueueFacts) -> Option<Consistency> {
        let default = self.queues.capabilities(facts.key.class())?.consistency?;
        Some(facts.settings.consistency.unwrap_or(default))
    }

    /// Checks that queues of that class have those attributes, and that there can be such queues here.
    ///
    /// # Errors
    /// InvalidAttributeValue.
    pub(super) fn check_of_class(
        &self,
        class: QueueClass,
        given: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let capabilities = self.queues.capabilities(class);
        let capabilities = capabilities.ok_or_else(|| {
            let reason = format!("There is no store of {} queues here.", class.name());
            refusal::invalid_attribute(CLASS, &reason)
        })?;
        check_of_class(given, class, &capabilities)
    }

    pub(super) async fn set_queue_attributes(
        &self,
        caller: &Caller,
        request: SetQueueAttributesRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::SetQueueAttributes).await?;
        if request.attributes.is_empty() {
            return Err(refusal::missing("Attributes"));
        }
        let old = &target.attributes;
        after_setting(old, &request.attributes)?;
        self.check_of_class(target.key.class(), &request.attributes)?;
        if let Some(policy) = request.attributes.get("RedrivePolicy")
            && !policy.is_empty()
        {
            let (class, is_fifo) = (target.key.class(), target.settings.is_fifo());
            let source = Source { queue: &target.queue, class, is_fifo };
            self.check_dead_letter_queue(caller, &source, policy).await?;
        }
        let set = |old: &_| after_setting(old, &request.attributes);
        self.change(caller, Action::SetQueueAttributes, target, Part::Attributes, set).await
    }

    /// Checks that a queue may have the dead-letter queue that its redrive policy names.
    pub(super) async fn check_dead_letter_queue(
        &self,
        caller: &Caller,
        source: &Source<'_>,
        policy: &str,
    ) -> Result<(), Error> {
        let invalid = |reason: &str| refusal::invalid_value(policy, "RedrivePolicy", reason);
        let queue = RedrivePolicy::parse(policy)?.dead_letter_queue;
        if queue.account != source.queue.account {
            return Err(invalid("Dead-letter target owner should be same as the source."));
        }
        let found = self.find_now(&queue).await?;
        let target = found.ok_or_else(|| invalid("Dead letter target does not exist."))?;
        // Messages will go there, so who could not send them there must not have them sent.
        self.authorize(caller, Action::SendMessage, &target).await?;
        if target.settings.is_fifo() != source.is_fifo {
            return Err(invalid("Dead-letter queue must be same type of queue as the source."));
        }
        if target.key.class() != source.class {
            return Err(invalid("Dead-letter queue must be of the same Class as the source."));
        }
        let allowed = match target.attributes.get("RedriveAllowPolicy") {
            Some(text) => RedriveAllowPolicy::parse(text)?.allows(source.queue, &target.queue),
            None => true,
        };
        match allowed {
            true => Ok(()),
            false => Err(invalid(
                "Dead-letter target queue's redrive allow policy doesn't allow this source queue.",
            )),
        }
    }
}

/// A queue that is to have a dead-letter queue; it may be yet to be made.
pub(super) struct Source<'a> {
    pub(super) queue: &'a QueueRef,
    pub(super) class: QueueClass,
    pub(super) is_fifo: bool,
}

//! TagQueue, UntagQueue and ListQueueTags.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::Part;
use super::{Caller, Service};
use crate::action::{
    ListQueueTagsRequest, ListQueueTagsResult, TagQueueRequest, UntagQueueRequest,
};
use crate::limits::{TAG_KEY_LENGTH_MAX, TAG_VALUE_LENGTH_MAX, TAGS_MAX};
use crate::refusal;
use crate::{Action, Error, Identity, Queues, Reply};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn tag_queue(
        &self,
        caller: &Caller,
        request: TagQueueRequest,
    ) -> Result<Reply, Error> {
        let target = self.target(caller, request.queue_url.as_deref(), Action::TagQueue).await?;
        if request.tags.is_empty() {
            return Err(refusal::missing("Tags"));
        }
        let name = Arc::clone(&target.queue.name);
        let add = |old: &BTreeMap<String, String>| {
            let mut tags = old.clone();
            tags.extend(request.tags.clone());
            check(&tags, &name).map(|()| tags)
        };
        self.change(caller, Action::TagQueue, target, Part::Tags, add).await
    }

    pub(super) async fn untag_queue(
        &self,
        caller: &Caller,
        request: UntagQueueRequest,
    ) -> Result<Reply, Error> {
        let target = self.target(caller, request.queue_url.as_deref(), Action::UntagQueue).await?;
        if request.tag_keys.is_empty() {
            return Err(refusal::invalid(
                "Tag keys must be between 1 and 128 characters in length.",
            ));
        }
        let remove = |old: &BTreeMap<String, String>| {
            let mut tags = old.clone();
            tags.retain(|key, _| !request.tag_keys.contains(key));
            Ok(tags)
        };
        self.change(caller, Action::UntagQueue, target, Part::Tags, remove).await
    }

    pub(super) async fn list_queue_tags(
        &self,
        caller: &Caller,
        request: ListQueueTagsRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::ListQueueTags).await?;
        Ok(Reply::ListQueueTags(ListQueueTagsResult { tags: target.tags.clone() }))
    }
}

/// Checks all tags that a queue is to have.
///
/// # Errors
/// InvalidParameterValue.
pub(super) fn check(tags: &BTreeMap<String, String>, queue: &str) -> Result<(), Error> {
    if tags.len() > TAGS_MAX {
        return Err(refusal::invalid(format!("Too many tags added for queue {queue}.")));
    }
    for (key, value) in tags {
        if !(1..=TAG_KEY_LENGTH_MAX).contains(&key.chars().count()) {
            return Err(refusal::invalid(
                "Tag keys must be between 1 and 128 characters in length.",
            ));
        }
        if value.chars().count() > TAG_VALUE_LENGTH_MAX {
            return Err(refusal::invalid(
                "Tag values must be between 0 and 256 characters in length.",
            ));
        }
    }
    Ok(())
}

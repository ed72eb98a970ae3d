//! ChangeMessageVisibility and ChangeMessageVisibilityBatch.

use super::{Caller, Service, batch, receipt};
use crate::action::{
    ChangeMessageVisibilityBatchRequest, ChangeMessageVisibilityBatchResult,
    ChangeMessageVisibilityBatchResultEntry, ChangeMessageVisibilityRequest,
};
use crate::limits::VISIBILITY_TIMEOUT_S_MAX;
use crate::refusal;
use crate::{Action, Delivery, Error, Identity, Queues, Reply};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn change_message_visibility(
        &self,
        caller: &Caller,
        request: ChangeMessageVisibilityRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::ChangeMessageVisibility).await?;
        let change = change(request.receipt_handle.as_deref(), request.visibility_timeout)?;
        let delivery = change.0.clone();
        let changing = self.queues.change_visibility(&target, vec![change]);
        for outcome in changing.await.map_err(refusal::fault)? {
            receipt::result(outcome, &delivery)?;
        }
        Ok(Reply::Empty)
    }

    pub(super) async fn change_message_visibility_batch(
        &self,
        caller: &Caller,
        request: ChangeMessageVisibilityBatchRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::ChangeMessageVisibilityBatch).await?;
        let ids = request.entries.iter().map(|entry| entry.id.as_deref());
        let ids = batch::check_ids(ids, "ChangeMessageVisibilityBatchRequestEntry")?;
        let mut result = ChangeMessageVisibilityBatchResult::default();
        let mut valid = Vec::with_capacity(ids.len());
        let mut changes = Vec::with_capacity(ids.len());
        for (id, entry) in ids.into_iter().zip(&request.entries) {
            match change(entry.receipt_handle.as_deref(), entry.visibility_timeout) {
                Ok(change) => {
                    valid.push((id, change.0.clone()));
                    changes.push(change);
                }
                Err(error) => result.failed.push(batch::failed(id, error)),
            }
        }
        if changes.is_empty() {
            return Ok(Reply::ChangeMessageVisibilityBatch(result));
        }
        let outcomes = self.queues.change_visibility(&target, changes).await;
        for ((id, delivery), outcome) in valid.into_iter().zip(outcomes.map_err(refusal::fault)?) {
            match receipt::result(outcome, &delivery) {
                Ok(()) => {
                    result.successful.push(ChangeMessageVisibilityBatchResultEntry { id });
                }
                Err(error) => result.failed.push(batch::failed(id, error)),
            }
        }
        Ok(Reply::ChangeMessageVisibilityBatch(result))
    }
}

/// Checks a change. Returns the delivery, and for how long it is to be invisible, in ms.
fn change(handle: Option<&str>, timeout_s: Option<i64>) -> Result<(Delivery, u64), Error> {
    let timeout_s = timeout_s.ok_or_else(|| refusal::missing("VisibilityTimeout"))?;
    if !(0..=VISIBILITY_TIMEOUT_S_MAX).contains(&timeout_s) {
        let reason = "VisibilityTimeout must be an integer between 0 and 43200.";
        return Err(refusal::invalid_value(timeout_s, "VisibilityTimeout", reason));
    }
    Ok((receipt::decode(handle)?, timeout_s as u64 * 1000))
}

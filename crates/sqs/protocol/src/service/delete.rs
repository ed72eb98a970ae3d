//! DeleteMessage and DeleteMessageBatch.

use super::{Caller, Service, batch, receipt};
use crate::action::{
    DeleteMessageBatchRequest, DeleteMessageBatchResult, DeleteMessageBatchResultEntry,
    DeleteMessageRequest,
};
use crate::refusal;
use crate::{Action, Error, Identity, Queues, Reply};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn delete_message(
        &self,
        caller: &Caller,
        request: DeleteMessageRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::DeleteMessage).await?;
        let delivery = receipt::decode(request.receipt_handle.as_deref())?;
        let deleting = self.queues.delete(&target, vec![delivery.clone()]);
        for outcome in deleting.await.map_err(refusal::fault)? {
            receipt::result(outcome, &delivery)?;
        }
        Ok(Reply::Empty)
    }

    pub(super) async fn delete_message_batch(
        &self,
        caller: &Caller,
        request: DeleteMessageBatchRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::DeleteMessageBatch).await?;
        let ids = request.entries.iter().map(|entry| entry.id.as_deref());
        let ids = batch::check_ids(ids, "DeleteMessageBatchRequestEntry")?;
        let mut result = DeleteMessageBatchResult::default();
        let mut valid = Vec::with_capacity(ids.len());
        let mut deliveries = Vec::with_capacity(ids.len());
        for (id, entry) in ids.into_iter().zip(&request.entries) {
            match receipt::decode(entry.receipt_handle.as_deref()) {
                Ok(delivery) => {
                    valid.push((id, delivery.clone()));
                    deliveries.push(delivery);
                }
                Err(error) => result.failed.push(batch::failed(id, error)),
            }
        }
        if deliveries.is_empty() {
            return Ok(Reply::DeleteMessageBatch(result));
        }
        let outcomes = self.queues.delete(&target, deliveries).await;
        for ((id, delivery), outcome) in valid.into_iter().zip(outcomes.map_err(refusal::fault)?) {
            match receipt::result(outcome, &delivery) {
                Ok(()) => result.successful.push(DeleteMessageBatchResultEntry { id }),
                Err(error) => result.failed.push(batch::failed(id, error)),
            }
        }
        Ok(Reply::DeleteMessageBatch(result))
    }
}

//! SendMessage and SendMessageBatch.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{Caller, Service, batch};
use crate::action::{
    MessageAttributeValue, SendMessageBatchRequest, SendMessageBatchRequestEntry,
    SendMessageBatchResult, SendMessageBatchResultEntry, SendMessageRequest, SendMessageResult,
};
use crate::limits::{DELAY_S_MAX, MESSAGE_BYTES_MAX};
use crate::md5::{md5_of_attributes, md5_of_body};
use crate::message_rules::{
    TRACE_HEADER, check_attributes, check_body, check_id, check_system_attributes, message_bytes,
};
use crate::refusal;
use crate::{
    Action, Error, ErrorKind, Fault, Identity, MessageAttribute, NewMessage, QueueSettings, Queues,
    Reply,
};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn send_message(
        &self,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::SendMessage).await?;
        let rules = Rules::of(&target.settings);
        let Checked { message, sums } = rules.check(caller, request.into())?;
        let sending = self.queues.send(&target, vec![message]);
        let outcome = sending.await.map_err(refusal::fault)?.pop();
        let sent = outcome.ok_or_else(no_outcome)?.map_err(refusal::fault)?;
        Ok(Reply::SendMessage(SendMessageResult {
            md5_of_message_body: Some(sums.body),
            md5_of_message_attributes: sums.attributes,
            md5_of_message_system_attributes: sums.system_attributes,
            message_id: Some(sent.message_id),
            sequence_number: sent.sequence_number,
        }))
    }

    pub(super) async fn send_message_batch(
        &self,
        caller: &Caller,
        request: SendMessageBatchRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::SendMessageBatch).await?;
        let ids = request.entries.iter().map(|entry| entry.id.as_deref());
        let ids = batch::check_ids(ids, "SendMessageBatchRequestEntry")?;
        let rules = Rules::of(&target.settings);
        check_batch_bytes(&request.entries)?;
        rules.check_batch(&request.entries)?;
        let mut result = SendMessageBatchResult::default();
        let mut valid = Vec::with_capacity(ids.len());
        let mut messages = Vec::with_capacity(ids.len());
        for (id, entry) in ids.into_iter().zip(request.entries) {
            match rules.check(caller, entry) {
                Ok(Checked { message, sums }) => {
                    valid.push((id, sums));
                    messages.push(message);
                }
                Err(error) => result.failed.push(batch::failed(id, error)),
            }
        }
        if messages.is_empty() {
            return Ok(Reply::SendMessageBatch(result));
        }
        let outcomes = self.queues.send(&target, messages).await;
        let mut outcomes = outcomes.map_err(refusal::fault)?.into_iter();
        for (id, sums) in valid {
            let lost = || Err(Fault::Unavailable("the store gave no outcome".to_owned()));
            match outcomes.next().unwrap_or_else(lost) {
                Ok(sent) => result.successful.push(SendMessageBatchResultEntry {
                    id,
                    message_id: sent.message_id,
                    md5_of_message_body: sums.body,
                    md5_of_message_attributes: sums.attributes,
                    md5_of_message_system_attributes: sums.system_attributes,
                    sequence_number: sent.sequence_number,
                }),
                Err(fault) => result.failed.push(batch::failed(id, refusal::fault(fault))),
            }
        }
        Ok(Reply::SendMessageBatch(result))
    }
}

fn no_outcome() -> Error {
    refusal::error(ErrorKind::InternalFailure, "the store gave no outcome")
}

/// A message alone is checked as one of a batch, but for its id.
impl From<SendMessageRequest> for SendMessageBatchRequestEntry {
    fn from(request: SendMessageRequest) -> Self {
        Self {
            id: None,
            message_body: request.message_body,
            delay_seconds: request.delay_seconds,
            message_attributes: request.message_attributes,
            message_system_attributes: request.message_system_attributes,
            message_deduplication_id: request.message_deduplication_id,
            message_group_id: request.message_group_id,
        }
    }
}

/// A message that may be sent.
struct Checked {
    message: NewMessage,
    sums: Sums,
}

/// What clients check what arrived with.
struct Sums {
    body: String,
    attributes: Option<String>,
    system_attributes: Option<String>,
}

/// What a queue asks of its messages.
struct Rules {
    is_fifo: bool,
    by_content: bool,
    bytes_max: u64,
}

impl Rules {
    fn of(settings: &QueueSettings) -> Self {
        Self {
            is_fifo: settings.is_fifo(),
            by_content: settings.fifo.is_some_and(|fifo| fifo.by_content),
            bytes_max: settings.message_bytes_max,
        }
    }

    /// Checks what makes SQS refuse a whole batch, though it is one entry's fault.
    fn check_batch(&self, entries: &[SendMessageBatchRequestEntry]) -> Result<(), Error> {
        if !self.is_fifo {
            return Ok(());
        }
        for entry in entries {
            self.deduplicable(entry.message_deduplication_id.as_deref())?;
            if entry.message_group_id.is_none() {
                return Err(refusal::invalid(refusal::missing("MessageGroupId").message));
            }
        }
        Ok(())
    }

    fn deduplicable(&self, id: Option<&str>) -> Result<(), Error> {
        match self.by_content || id.is_some() {
            true => Ok(()),
            false => Err(refusal::invalid(
                "The queue should either have ContentBasedDeduplication enabled or \
                 MessageDeduplicationId provided explicitly",
            )),
        }
    }

    fn check(
        &self,
        caller: &Caller,
        entry: SendMessageBatchRequestEntry,
    ) -> Result<Checked, Error> {
        let body = entry.message_body.filter(|body| !body.is_empty());
        let body = body.ok_or_else(|| refusal::missing("MessageBody"))?;
        // Before the rest is looked at, so that a message far too long costs little.
        self.check_bytes(body.len() as u64)?;
        let attributes = check_attributes(&entry.message_attributes)?;
        self.check_bytes(message_bytes(&body, &attributes))?;
        check_body(&body)?;
        let trace_header = check_system_attributes(&entry.message_system_attributes)?;
        let (deduplication_id, group_id) = (entry.message_deduplication_id, entry.message_group_id);
        if let Some(id) = &deduplication_id {
            check_id(id, "MessageDeduplicationId")?;
        }
        if let Some(id) = &group_id {
            check_id(id, "MessageGroupId")?;
        }
        let delay_ms = self.check_delay(entry.delay_seconds)?;
        let deduplication_id = match self.is_fifo {
            true => Some(self.fifo_id(&body, group_id.as_deref(), deduplication_id)?),
            false => match deduplication_id {
                Some(id) => {
                    return Err(refusal::not_of_this_queue_type(id, "MessageDeduplicationId"));
                }
                None => None,
            },
        };
        let sums = Sums {
            body: md5_of_body(body.as_bytes()),
            attributes: md5_of_attributes(&attributes),
            system_attributes: trace_header.as_deref().and_then(md5_of_trace_header),
        };
        let message = NewMessage {
            body: Bytes::from(body),
            attributes,
            trace_header: trace_header.or_else(|| caller.trace_header.clone()),
            sender_id: sender_id(caller),
            delay_ms,
            group_id,
            deduplication_id,
        };
        Ok(Checked { message, sums })
    }

    fn check_bytes(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        let max = self.bytes_max;
        Err(refusal::invalid(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {max} bytes."
        )))
    }

    fn check_delay(&self, delay_s: Option<i64>) -> Result<Option<u64>, Error> {
        let Some(delay_s) = delay_s else { return Ok(None) };
        if !(0..=DELAY_S_MAX).contains(&delay_s) {
            let reason = "DelaySeconds must be >= 0 and <= 900.";
            return Err(refusal::invalid_value(delay_s, "DelaySeconds", reason));
        }
        match self.is_fifo {
            // Only the whole queue can have a delay, or the order would be lost.
            true if delay_s > 0 => Err(refusal::not_of_this_queue_type(delay_s, "DelaySeconds")),
            true => Ok(None),
            false => Ok(Some(delay_s as u64 * 1000)),
        }
    }

    /// Returns what a message for a FIFO queue is recognised by.
    fn fifo_id(
        &self,
        body: &str,
        group_id: Option<&str>,
        id: Option<String>,
    ) -> Result<String, Error> {
        if group_id.is_none() {
            return Err(refusal::missing("MessageGroupId"));
        }
        self.deduplicable(id.as_deref())?;
        Ok(id.unwrap_or_else(|| content_id(body)))
    }
}

/// Returns the sum over the system attributes, of which there is one.
fn md5_of_trace_header(header: &str) -> Option<String> {
    md5_of_attributes([&MessageAttribute {
        name: TRACE_HEADER.to_owned(),
        data_type: "String".to_owned(),
        value: Bytes::copy_from_slice(header.as_bytes()),
    }])
}

/// Returns the SHA-256 of a body, in hexadecimal.
fn content_id(body: &str) -> String {
    hex::encode(Sha256::digest(body))
}

fn sender_id(caller: &Caller) -> Arc<str> {
    caller.user.name.as_ref().unwrap_or(&caller.user.account).clone()
}

/// Checks the size of a batch as it came, before anything in it is looked at.
fn check_batch_bytes(entries: &[SendMessageBatchRequestEntry]) -> Result<(), Error> {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let attribute = |(name, value): (&String, &MessageAttributeValue)| {
        let binary = value.binary_value.as_ref().map_or(0, Bytes::len);
        name.len() + text(&value.data_type) + text(&value.string_value) + binary
    };
    let entry = |entry: &SendMessageBatchRequestEntry| {
        text(&entry.message_body) + entry.message_attributes.iter().map(attribute).sum::<usize>()
    };
    let bytes = entries.iter().map(entry).sum::<usize>() as u64;
    if bytes <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes."
    );
    Err(refusal::error(ErrorKind::BatchRequestTooLong, message))
}

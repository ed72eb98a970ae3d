//! The operations, each a call with its shapes. What an empty answer leaves out (`Messages`, say) is
//! empty.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::Client;
use crate::error::Error;
use crate::message::{BatchFailure, Message, OutgoingMessage, Receive, SentMessage, unique_id};

/// Entries of a batch at most.
pub(crate) const BATCH_MAX: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueAnswer {
    queue_url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendCall<'a> {
    queue_url: &'a str,
    #[serde(flatten)]
    message: &'a OutgoingMessage,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct BatchCall<'a, T> {
    queue_url: &'a str,
    entries: Vec<Entry<T>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entry<T> {
    id: String,
    #[serde(flatten)]
    entry: T,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Handle<'a> {
    receipt_handle: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Extension<'a> {
    receipt_handle: &'a str,
    visibility_timeout: u32,
}

#[derive(Deserialize)]
struct BatchAnswer {
    #[serde(rename = "Failed", default)]
    failed: Vec<BatchFailure>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveCall<'a> {
    queue_url: &'a str,
    max_number_of_messages: u32,
    wait_time_seconds: u32,
    /// Both names of the same list: older services know only the first.
    attribute_names: [&'static str; 1],
    message_system_attribute_names: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    visibility_timeout: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive_request_attempt_id: Option<String>,
}

#[derive(Deserialize)]
struct ReceiveAnswer {
    #[serde(rename = "Messages", default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct AttributesAnswer {
    #[serde(rename = "Attributes", default)]
    attributes: BTreeMap<String, String>,
}

impl Client {
    /// Makes a queue, or finds the one of that name and those attributes; its URL.
    ///
    /// # Errors
    /// [`Error`], as the service or the connection gives it; so with all operations.
    pub fn create_queue(
        &mut self,
        name: &str,
        attributes: &BTreeMap<String, String>,
    ) -> Result<String, Error> {
        let call = json!({ "QueueName": name, "Attributes": attributes });
        self.ask::<QueueAnswer>("CreateQueue", &call).map(|answer| answer.queue_url)
    }

    /// Returns the URL of a queue.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn queue_url(&mut self, name: &str) -> Result<String, Error> {
        let call = json!({ "QueueName": name });
        self.ask::<QueueAnswer>("GetQueueUrl", &call).map(|answer| answer.queue_url)
    }

    /// Deletes a queue with all it holds.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn delete_queue(&mut self, url: &str) -> Result<(), Error> {
        self.command("DeleteQueue", &json!({ "QueueUrl": url }))
    }

    /// Deletes all that a queue holds.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn purge_queue(&mut self, url: &str) -> Result<(), Error> {
        self.command("PurgeQueue", &json!({ "QueueUrl": url }))
    }

    /// Returns all attributes of a queue.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn queue_attributes(&mut self, url: &str) -> Result<BTreeMap<String, String>, Error> {
        let call = json!({ "QueueUrl": url, "AttributeNames": ["All"] });
        self.ask::<AttributesAnswer>("GetQueueAttributes", &call).map(|answer| answer.attributes)
    }

    /// Sends a message; when this returns, the service has stored it. A sending that is tried again
    /// may count twice in a standard queue; in a FIFO queue its deduplication id prevents that.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn send(&mut self, url: &str, message: &OutgoingMessage) -> Result<SentMessage, Error> {
        self.ask("SendMessage", &SendCall { queue_url: url, message })
    }

    /// Sends up to ten messages in one call; those that the service refused.
    ///
    /// # Errors
    /// As [`Self::create_queue`]; [`Error::BatchSize`].
    pub fn send_batch(
        &mut self,
        url: &str,
        messages: &[OutgoingMessage],
    ) -> Result<Vec<BatchFailure>, Error> {
        self.batch("SendMessageBatch", url, messages.iter())
    }

    /// Receives messages, waiting for the first one if so asked.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn receive(&mut self, url: &str, how: &Receive) -> Result<Vec<Message>, Error> {
        // Should the answer be lost, the second try gets the same messages (FIFO queues only).
        let attempt_id = url.ends_with(".fifo").then(|| unique_id(&mut self.random));
        let call = ReceiveCall {
            queue_url: url,
            max_number_of_messages: how.max,
            wait_time_seconds: how.wait_seconds,
            attribute_names: ["All"],
            message_system_attribute_names: ["All"],
            visibility_timeout: how.visibility_timeout_seconds,
            receive_request_attempt_id: attempt_id,
        };
        let patience = self.patience() + Duration::from_secs(how.wait_seconds.into());
        let answer: ReceiveAnswer = self.ask_patiently("ReceiveMessage", &call, patience)?;
        Ok(answer.messages)
    }

    /// Deletes a message that was received.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn delete(&mut self, url: &str, receipt_handle: &str) -> Result<(), Error> {
        self.command("DeleteMessage", &json!({ "QueueUrl": url, "ReceiptHandle": receipt_handle }))
    }

    /// Deletes up to ten messages in one call; those that the service refused.
    ///
    /// # Errors
    /// As [`Self::create_queue`]; [`Error::BatchSize`].
    pub fn delete_batch(
        &mut self,
        url: &str,
        receipt_handles: &[&str],
    ) -> Result<Vec<BatchFailure>, Error> {
        let entries = receipt_handles.iter().map(|receipt_handle| Handle { receipt_handle });
        self.batch("DeleteMessageBatch", url, entries)
    }

    /// Hides the message from everybody else for so many seconds from now; 0 gives it back at once.
    ///
    /// # Errors
    /// As [`Self::create_queue`].
    pub fn change_visibility(
        &mut self,
        url: &str,
        receipt_handle: &str,
        seconds: u32,
    ) -> Result<(), Error> {
        let call = json!({
            "QueueUrl": url, "ReceiptHandle": receipt_handle, "VisibilityTimeout": seconds
        });
        self.command("ChangeMessageVisibility", &call)
    }

    /// Makes the same change as [`Self::change_visibility`] for up to ten messages in one call;
    /// returns those that the service refused.
    ///
    /// # Errors
    /// As [`Self::create_queue`]; [`Error::BatchSize`].
    pub fn change_visibility_batch(
        &mut self,
        url: &str,
        receipt_handles: &[&str],
        seconds: u32,
    ) -> Result<Vec<BatchFailure>, Error> {
        let entries = receipt_handles
            .iter()
            .map(|receipt_handle| Extension { receipt_handle, visibility_timeout: seconds });
        self.batch("ChangeMessageVisibilityBatch", url, entries)
    }

    fn batch<T: Serialize>(
        &mut self,
        action: &'static str,
        url: &str,
        entries: impl Iterator<Item = T>,
    ) -> Result<Vec<BatchFailure>, Error> {
        let numbered = entries.enumerate().map(|(at, entry)| Entry { id: at.to_string(), entry });
        let call = BatchCall { queue_url: url, entries: numbered.collect() };
        if !(1..=BATCH_MAX).contains(&call.entries.len()) {
            return Err(Error::BatchSize { entries: call.entries.len() });
        }
        self.ask::<BatchAnswer>(action, &call).map(|answer| answer.failed)
    }

    fn command(&mut self, action: &'static str, call: &impl Serialize) -> Result<(), Error> {
        self.call(action, &render(call)).map(drop)
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        action: &'static str,
        call: &impl Serialize,
    ) -> Result<T, Error> {
        self.ask_patiently(action, call, self.patience())
    }

    fn ask_patiently<T: DeserializeOwned>(
        &mut self,
        action: &'static str,
        call: &impl Serialize,
        patience: Duration,
    ) -> Result<T, Error> {
        let body = self.call_patiently(action, &render(call), patience)?;
        serde_json::from_slice(body).map_err(|source| Error::Answer { action, source })
    }
}

fn render(call: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(call).expect("a struct of strings and numbers always has a JSON form")
}

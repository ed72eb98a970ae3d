//! Messages as they are sent and received.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A message to send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OutgoingMessage {
    /// The text.
    #[serde(rename = "MessageBody")]
    pub body: String,
    /// Seconds before anybody may receive it; the queue's own delay if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u32>,
    /// Message group.
    #[serde(rename = "MessageGroupId", skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// What makes a second sending of the same message one that counts once, in a FIFO queue.
    #[serde(rename = "MessageDeduplicationId", skip_serializing_if = "Option::is_none")]
    pub deduplication_id: Option<String>,
}

impl OutgoingMessage {
    /// Returns a message with nothing but its text.
    #[must_use]
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Returns a message for a FIFO queue. It gets a deduplication id of its own, so that a sending
    /// that is repeated because its answer was lost counts once.
    #[must_use]
    pub fn fifo(group_id: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            group_id: Some(group_id.into()),
            deduplication_id: Some(unique_id(&mut fastrand::Rng::new())),
            ..Self::new(body)
        }
    }
}

/// What the service says of a message that it took: it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SentMessage {
    /// The message's id.
    #[serde(rename = "MessageId")]
    pub id: String,
    /// The body's MD5, hexadecimal.
    #[serde(rename = "MD5OfMessageBody")]
    pub body_md5: String,
    /// Its place in a FIFO queue.
    #[serde(rename = "SequenceNumber", default)]
    pub sequence_number: Option<String>,
}

/// An entry of a batch that the service refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BatchFailure {
    /// The entry's index in the call, in decimal.
    pub id: String,
    /// Such as `InvalidMessageContents`.
    pub code: String,
    /// The service's words.
    #[serde(default)]
    pub message: String,
    /// Whether the entry was wrong, and not the service.
    #[serde(default)]
    pub sender_fault: bool,
}

/// How to receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receive {
    /// At most so many messages, 1 to 10.
    pub max: u32,
    /// Seconds to wait for the first one, 0 to 20.
    pub wait_seconds: u32,
    /// Seconds for which nobody else gets them; the queue's own if not given.
    pub visibility_timeout_seconds: Option<u32>,
}

impl Default for Receive {
    /// Returns a request for one message, without waiting.
    fn default() -> Self {
        Self { max: 1, wait_seconds: 0, visibility_timeout_seconds: None }
    }
}

/// A message received.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Message {
    /// The same at each delivery.
    #[serde(rename = "MessageId")]
    pub id: String,
    /// What this delivery is deleted and extended by.
    #[serde(rename = "ReceiptHandle")]
    pub receipt_handle: String,
    /// The text.
    #[serde(rename = "Body")]
    pub body: String,
    /// System attributes: `ApproximateReceiveCount`, `SentTimestamp`, `MessageGroupId`, ….
    #[serde(rename = "Attributes", default)]
    pub attributes: BTreeMap<String, String>,
}

impl Message {
    /// Returns how often it has been received, this time included; 1 if the service does not say.
    #[must_use]
    pub fn receive_count(&self) -> u32 {
        let count = self.attributes.get("ApproximateReceiveCount");
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }
}

/// Returns 32 hexadecimal digits that nobody else has; they need not be unpredictable.
pub(crate) fn unique_id(random: &mut fastrand::Rng) -> String {
    format!("{:032x}", random.u128(..))
}

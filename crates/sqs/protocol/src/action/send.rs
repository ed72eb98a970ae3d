//! SendMessage and SendMessageBatch.

use std::collections::BTreeMap;

use super::batch::BatchResultErrorEntry;
use super::message_attribute::{MessageAttributeValue, MessageSystemAttributeValue};
use crate::shape::shapes;

shapes! {
    /// Sends one message.
    SendMessageRequest {
        /// Where to.
        queue_url: Option<String> = "QueueUrl",
        /// The message.
        message_body: Option<String> = "MessageBody",
        /// How long nobody is to see it, 0 to 900.
        delay_seconds: Option<i64> = "DelaySeconds",
        /// Its attributes by name.
        message_attributes: BTreeMap<String, MessageAttributeValue> =
            "MessageAttributes" / "MessageAttribute",
        /// Its system attributes by name; `AWSTraceHeader` is the only one.
        message_system_attributes: BTreeMap<String, MessageSystemAttributeValue> =
            "MessageSystemAttributes" / "MessageSystemAttribute",
        /// For FIFO queues: a second message with it is dropped for five minutes.
        message_deduplication_id: Option<String> = "MessageDeduplicationId",
        /// For FIFO queues, what is kept in order; for others, a tenant.
        message_group_id: Option<String> = "MessageGroupId",
    }

    /// What a sent message was called, with sums for the client to check.
    SendMessageResult {
        /// The MD5 of the body, in hexadecimal.
        md5_of_message_body: Option<String> = "MD5OfMessageBody",
        /// The MD5 of the attributes, if there are any.
        md5_of_message_attributes: Option<String> = "MD5OfMessageAttributes",
        /// The MD5 of the system attributes, if there are any.
        md5_of_message_system_attributes: Option<String> = "MD5OfMessageSystemAttributes",
        /// A UUID.
        message_id: Option<String> = "MessageId",
        /// The message's place in its FIFO queue.
        sequence_number: Option<String> = "SequenceNumber",
    }

    /// Sends up to ten messages.
    SendMessageBatchRequest {
        /// Where to.
        queue_url: Option<String> = "QueueUrl",
        /// The messages.
        entries: Vec<SendMessageBatchRequestEntry> = "Entries" / "SendMessageBatchRequestEntry",
    }

    /// One message of a batch.
    SendMessageBatchRequestEntry {
        /// What the result calls it.
        id: Option<String> = "Id",
        /// The message.
        message_body: Option<String> = "MessageBody",
        /// How long nobody is to see it, 0 to 900.
        delay_seconds: Option<i64> = "DelaySeconds",
        /// Its attributes by name.
        message_attributes: BTreeMap<String, MessageAttributeValue> =
            "MessageAttributes" / "MessageAttribute",
        /// Its system attributes by name; `AWSTraceHeader` is the only one.
        message_system_attributes: BTreeMap<String, MessageSystemAttributeValue> =
            "MessageSystemAttributes" / "MessageSystemAttribute",
        /// For FIFO queues: a second message with it is dropped for five minutes.
        message_deduplication_id: Option<String> = "MessageDeduplicationId",
        /// For FIFO queues, what is kept in order; for others, a tenant.
        message_group_id: Option<String> = "MessageGroupId",
    }

    /// What became of each message of a batch.
    SendMessageBatchResult {
        /// Those that were sent.
        successful: Vec<SendMessageBatchResultEntry> =
            always "Successful" / "SendMessageBatchResultEntry",
        /// Those that were not.
        failed: Vec<BatchResultErrorEntry> = "Failed" / "BatchResultErrorEntry",
    }

    /// What a message of a batch was called, with sums for the client to check.
    SendMessageBatchResultEntry {
        /// The entry's id in the request.
        id: String = "Id",
        /// A UUID.
        message_id: String = "MessageId",
        /// The MD5 of the body, in hexadecimal.
        md5_of_message_body: String = "MD5OfMessageBody",
        /// The MD5 of the attributes, if there are any.
        md5_of_message_attributes: Option<String> = "MD5OfMessageAttributes",
        /// The MD5 of the system attributes, if there are any.
        md5_of_message_system_attributes: Option<String> = "MD5OfMessageSystemAttributes",
        /// The message's place in its FIFO queue.
        sequence_number: Option<String> = "SequenceNumber",
    }
}

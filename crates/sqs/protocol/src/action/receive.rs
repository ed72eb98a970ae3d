//! ReceiveMessage.

use std::collections::BTreeMap;

use super::message_attribute::MessageAttributeValue;
use crate::shape::shapes;

shapes! {
    /// Receives messages, and waits for them if it has to.
    ReceiveMessageRequest {
        /// Where from.
        queue_url: Option<String> = "QueueUrl",
        /// Which system attributes to give, by the old name of the parameter.
        attribute_names: Vec<String> = "AttributeNames" / "AttributeName",
        /// Which system attributes to give; `All` for all of them.
        message_system_attribute_names: Vec<String> =
            "MessageSystemAttributeNames" / "MessageSystemAttributeName",
        /// Which attributes to give: names, `All`, `.*`, or what they begin with (`foo.*`).
        message_attribute_names: Vec<String> = "MessageAttributeNames" / "MessageAttributeName",
        /// At most so many, 1 to 10.
        max_number_of_messages: Option<i64> = "MaxNumberOfMessages",
        /// For how long the others will not see them, in seconds.
        visibility_timeout: Option<i64> = "VisibilityTimeout",
        /// How long to wait for the first, 0 to 20.
        wait_time_seconds: Option<i64> = "WaitTimeSeconds",
        /// For FIFO queues: a second receive with it gives the same messages.
        receive_request_attempt_id: Option<String> = "ReceiveRequestAttemptId",
    }

    /// The messages, if there are any.
    ReceiveMessageResult {
        /// The messages.
        messages: Vec<Message> = "Messages" / "Message",
    }

    /// A message that was received.
    Message {
        /// A UUID.
        message_id: Option<String> = "MessageId",
        /// What deletes this delivery, or changes its visibility.
        receipt_handle: Option<String> = "ReceiptHandle",
        /// The MD5 of the body, in hexadecimal.
        md5_of_body: Option<String> = "MD5OfBody",
        /// The message.
        body: Option<String> = "Body",
        /// The system attributes that were asked for.
        attributes: BTreeMap<String, String> = "Attributes" / "Attribute",
        /// The MD5 of the attributes that are given, if there are any.
        md5_of_message_attributes: Option<String> = "MD5OfMessageAttributes",
        /// The attributes that were asked for.
        message_attributes: BTreeMap<String, MessageAttributeValue> =
            "MessageAttributes" / "MessageAttribute",
    }
}

//! ChangeMessageVisibility and ChangeMessageVisibilityBatch.

use super::batch::BatchResultErrorEntry;
use crate::shape::shapes;

shapes! {
    /// Says anew for how long nobody else is to see a message.
    ChangeMessageVisibilityRequest {
        /// Where it was received from.
        queue_url: Option<String> = "QueueUrl",
        /// Which delivery of which message.
        receipt_handle: Option<String> = "ReceiptHandle",
        /// How long from now, in seconds.
        visibility_timeout: Option<i64> = "VisibilityTimeout",
    }

    /// The same for up to ten messages.
    ChangeMessageVisibilityBatchRequest {
        /// Where they were received from.
        queue_url: Option<String> = "QueueUrl",
        /// The messages.
        entries: Vec<ChangeMessageVisibilityBatchRequestEntry> =
            "Entries" / "ChangeMessageVisibilityBatchRequestEntry",
    }

    /// One message of a batch.
    ChangeMessageVisibilityBatchRequestEntry {
        /// What the result calls it.
        id: Option<String> = "Id",
        /// Which delivery of which message.
        receipt_handle: Option<String> = "ReceiptHandle",
        /// How long from now, in seconds.
        visibility_timeout: Option<i64> = "VisibilityTimeout",
    }

    /// What became of each message of a batch.
    ChangeMessageVisibilityBatchResult {
        /// Those whose visibility was changed.
        successful: Vec<ChangeMessageVisibilityBatchResultEntry> =
            always "Successful" / "ChangeMessageVisibilityBatchResultEntry",
        /// Those whose was not.
        failed: Vec<BatchResultErrorEntry> = "Failed" / "BatchResultErrorEntry",
    }

    /// A message of a batch whose visibility was changed.
    ChangeMessageVisibilityBatchResultEntry {
        /// The entry's id in the request.
        id: String = "Id",
    }
}

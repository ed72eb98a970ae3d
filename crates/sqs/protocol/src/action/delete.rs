//! DeleteMessage and DeleteMessageBatch.

use super::batch::BatchResultErrorEntry;
use crate::shape::shapes;

shapes! {
    /// Deletes a message that was received.
    DeleteMessageRequest {
        /// Where from.
        queue_url: Option<String> = "QueueUrl",
        /// Which delivery of which message.
        receipt_handle: Option<String> = "ReceiptHandle",
    }

    /// Deletes up to ten messages that were received.
    DeleteMessageBatchRequest {
        /// Where from.
        queue_url: Option<String> = "QueueUrl",
        /// The messages.
        entries: Vec<DeleteMessageBatchRequestEntry> =
            "Entries" / "DeleteMessageBatchRequestEntry",
    }

    /// One message to delete.
    DeleteMessageBatchRequestEntry {
        /// What the result calls it.
        id: Option<String> = "Id",
        /// Which delivery of which message.
        receipt_handle: Option<String> = "ReceiptHandle",
    }

    /// What became of each message of a batch.
    DeleteMessageBatchResult {
        /// Those that are deleted.
        successful: Vec<DeleteMessageBatchResultEntry> =
            always "Successful" / "DeleteMessageBatchResultEntry",
        /// Those that are not.
        failed: Vec<BatchResultErrorEntry> = "Failed" / "BatchResultErrorEntry",
    }

    /// A message of a batch that is deleted.
    DeleteMessageBatchResultEntry {
        /// The entry's id in the request.
        id: String = "Id",
    }
}

//! CreateQueue, DeleteQueue, GetQueueUrl, ListQueues and PurgeQueue.

use std::collections::BTreeMap;

use crate::shape::shapes;

shapes! {
    /// Makes a queue, unless there is just that one.
    CreateQueueRequest {
        /// Its name; that of a FIFO queue ends in `.fifo`.
        queue_name: Option<String> = "QueueName",
        /// Its attributes.
        attributes: BTreeMap<String, String> = "Attributes" / "Attribute",
        /// Its tags. Their name in JSON begins with a small letter.
        tags: BTreeMap<String, String> = "tags" / "Tag" by "Key",
    }

    /// Where the queue is.
    CreateQueueResult {
        /// Its URL.
        queue_url: Option<String> = "QueueUrl",
    }

    /// Deletes a queue with its messages.
    DeleteQueueRequest {
        /// Which one.
        queue_url: Option<String> = "QueueUrl",
    }

    /// Asks for a queue's URL.
    GetQueueUrlRequest {
        /// Its name.
        queue_name: Option<String> = "QueueName",
        /// Whose it is, if it is another account's.
        queue_owner_aws_account_id: Option<String> = "QueueOwnerAWSAccountId",
    }

    /// Where the queue is.
    GetQueueUrlResult {
        /// Its URL.
        queue_url: Option<String> = "QueueUrl",
    }

    /// Lists queues.
    ListQueuesRequest {
        /// What their names begin with.
        queue_name_prefix: Option<String> = "QueueNamePrefix",
        /// Where the last list ended.
        next_token: Option<String> = "NextToken",
        /// At most so many, 1 to 1000.
        max_results: Option<i64> = "MaxResults",
    }

    /// Queues.
    ListQueuesResult {
        /// Their URLs.
        queue_urls: Vec<String> = "QueueUrls" / "QueueUrl",
        /// To go on with, if there are more.
        next_token: Option<String> = "NextToken",
    }

    /// Deletes a queue's messages.
    PurgeQueueRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
    }
}

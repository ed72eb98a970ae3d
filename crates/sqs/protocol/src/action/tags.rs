//! TagQueue, UntagQueue and ListQueueTags.

use std::collections::BTreeMap;

use crate::shape::shapes;

shapes! {
    /// Sets some of a queue's tags.
    TagQueueRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// The tags.
        tags: BTreeMap<String, String> = "Tags" / "Tag" by "Key",
    }

    /// Removes some of a queue's tags.
    UntagQueueRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// The tags' keys.
        tag_keys: Vec<String> = "TagKeys" / "TagKey",
    }

    /// Asks for a queue's tags.
    ListQueueTagsRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
    }

    /// A queue's tags.
    ListQueueTagsResult {
        /// All of them.
        tags: BTreeMap<String, String> = "Tags" / "Tag" by "Key",
    }
}

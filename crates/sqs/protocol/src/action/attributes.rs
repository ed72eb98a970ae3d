//! GetQueueAttributes and SetQueueAttributes.

use std::collections::BTreeMap;

use crate::shape::shapes;

shapes! {
    /// Asks for a queue's attributes.
    GetQueueAttributesRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// Which ones; `All` for all of them.
        attribute_names: Vec<String> = "AttributeNames" / "AttributeName",
    }

    /// A queue's attributes.
    GetQueueAttributesResult {
        /// Those that were asked for and have a value.
        attributes: BTreeMap<String, String> = "Attributes" / "Attribute",
    }

    /// Sets some of a queue's attributes.
    SetQueueAttributesRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// The new values.
        attributes: BTreeMap<String, String> = "Attributes" / "Attribute",
    }
}

//! What the service knows of a queue that exists, and of one that is to be made.

use std::collections::BTreeMap;

use crate::{QueueClass, QueueKey, QueueRef, QueueSettings};

/// A queue, as far as requests need it; the same for every user.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueFacts {
    /// The store's name of it.
    pub key: QueueKey,
    /// What clients call it.
    pub queue: QueueRef,
    /// Changes whenever the attributes or the tags do: two facts of one key with the same revision say
    /// the same. It may be a count, a time or a hash, so revisions are not in order.
    pub revision: u64,
    /// What follows from the attributes, read once.
    pub settings: QueueSettings,
    /// Its attributes as they were set, by their names in the API. Those that were never set, those
    /// that are counted (`ApproximateNumberOfMessages`, …) and `Class` are not among them.
    pub attributes: BTreeMap<String, String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// When it was made, in ms since 1970.
    pub created_at_ms: u64,
    /// When its attributes were last set, in ms since 1970.
    pub modified_at_ms: u64,
}

/// A queue to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// Which store is to hold it.
    pub class: QueueClass,
    /// Its attributes, complete and valid for the class; `Class` is not among them.
    pub attributes: BTreeMap<String, String>,
    /// Its tags, which were checked.
    pub tags: BTreeMap<String, String>,
}

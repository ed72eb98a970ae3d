//! What the management API asks of the elastic queues' directory, which is somebody else's: the program
//! joins the two.

use std::pin::Pin;

use bytes::Bytes;
use serde_json::Value as Json;

/// A directory that answers.
pub trait Elastic: Send + Sync {
    /// Answers one request.
    fn call(&self, request: ElasticRequest) -> ElasticAnswer<'_>;
}

/// See [`Elastic::call`].
pub type ElasticAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<Json, ElasticRefusal>> + Send + 'a>>;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElasticRequest {
    /// All queues, those of other directories by name.
    Queues {
        /// Which of them.
        page: ElasticPage,
    },
    /// The directories that share the queues.
    Directories,
    /// One queue with its relays.
    Queue {
        /// Which.
        queue: String,
    },
    /// Makes a queue, or defines it anew; `definition` is JSON.
    Define {
        /// Which.
        queue: String,
        /// Over what it is now, or the default.
        definition: Bytes,
    },
    /// Removes a queue.
    Delete {
        /// Which.
        queue: String,
    },
    /// The relays of a queue.
    Relays {
        /// Which.
        queue: String,
        /// Which of them.
        page: ElasticPage,
    },
    /// The relays of all queues.
    AllRelays {
        /// Which of them.
        page: ElasticPage,
    },
    /// A queue's producers.
    Producers {
        /// Which.
        queue: String,
        /// Which of them.
        page: ElasticPage,
    },
    /// A queue's listeners.
    Listeners {
        /// Which.
        queue: String,
        /// Which of them.
        page: ElasticPage,
    },
    /// What was decided and why, above a number.
    Events {
        /// Of one queue or of all.
        queue: Option<String>,
        /// The last number that is known.
        after: u64,
    },
    /// Has a producer moved; answered when that has begun.
    Move {
        /// Which queue.
        queue: String,
        /// JSON: `producer` and `to`, both optional.
        wanted: Bytes,
    },
    /// What the planner would do now.
    Plan {
        /// Which.
        queue: String,
    },
}

/// Which part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticPage {
    /// Only what comes after this name or id.
    pub after: Option<String>,
    /// At most so many; as many as the directory answers at once if it is not said.
    pub limit: Option<usize>,
}

/// Why there is no answer; each in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElasticRefusal {
    /// No such queue.
    NotFound(String),
    /// Names the field, the limit and the value.
    Bad(String),
    /// Another directory owns it: names which.
    Elsewhere(String),
    /// It cannot be done in this state.
    Conflict(String),
    /// Not now.
    Unavailable(String),
}

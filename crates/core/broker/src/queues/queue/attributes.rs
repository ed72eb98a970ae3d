//! What may be changed of a queue while it lives, unlike the arguments of its declaration: attributes
//! in SQS's sense. The broker acts on [`QueueSettings`]; the rest it only keeps.

use quelea_model::Timestamp;
use quelea_store::Durability;

use super::groups::Ordering;

/// What the broker itself acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Delay of messages that are sent without one of their own, in ms.
    pub delay_ms: u64,
    /// Messages go after so long, without being dead-lettered, in ms; `None`: they stay.
    pub retention_ms: Option<u64>,
    /// A receive takes one at random of so many oldest messages (BDQS §III-B.2: K); 1 to
    /// [`quelea_model::limits::ORDER_HINT_MAX`].
    pub order_hint: u16,
    /// Where messages go that were received too often.
    pub redrive: Option<Redrive>,
    /// A FIFO queue, and how it deduplicates.
    pub fifo: Option<Fifo>,
    /// Messages with groups have been sent to it, so groups are treated fairly.
    pub fair: bool,
    /// What a promise means; `None`: as declared.
    pub durability: Option<Durability>,
}

/// Where messages go that were received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// Receptions that a message may have, at least 1.
    pub receives_max: u16,
    /// The queue, in the same virtual host.
    pub target: Box<str>,
}

/// How a FIFO queue deduplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    /// An id counts within its group only.
    pub deduplicates_by_group: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl QueueSettings {
    /// Those of a queue of which nothing was set.
    pub const DEFAULT: Self = Self {
        delay_ms: 0,
        retention_ms: None,
        order_hint: 1,
        redrive: None,
        fifo: None,
        fair: false,
        durability: None,
    };

    /// Returns whether, and how, groups of messages matter.
    pub(crate) const fn ordering(&self) -> Option<Ordering> {
        match (self.fifo, self.fair) {
            (Some(_), _) => Some(Ordering::Fifo),
            (None, true) => Some(Ordering::Fair),
            (None, false) => None,
        }
    }
}

/// All attributes of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueAttributes {
    /// What the broker acts on.
    pub settings: QueueSettings,
    /// Names and values as a front set them, sorted by name.
    pub attributes: Vec<(Box<str>, Box<str>)>,
    /// Tags, sorted by key.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// When attributes were last set.
    pub modified_at: Timestamp,
}

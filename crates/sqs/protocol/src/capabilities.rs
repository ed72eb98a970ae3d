//! In what stores differ by design. Each difference is declared here, and the suite that every store
//! has to pass checks that a store is as it says.

/// What a store of queues is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// In what order messages are received with order hint 1 by one receiver.
    pub order: Order,
    /// Where a message stands whose visibility timeout is over.
    pub reappearance: Reappearance,
    /// What the receipt of an earlier reception deletes in a standard queue.
    pub old_receipts: OldReceipts,
    /// What [`Backlog`](crate::Backlog) counts.
    pub counts: Counts,
    /// Whether queues have the order hint `auto`.
    pub order_hint_auto: bool,
    /// Whether queues have the attribute `Durability`.
    pub durability: bool,
    /// The consistency of queues that have none set; `None`: they have no attribute `Consistency`.
    pub consistency: Option<Consistency>,
    /// For how long facts that [`Queues::facts`](crate::Queues::facts) returns may be older than what
    /// another front-end did, whatever fails; 0: never.
    pub facts_age_ms_max: u64,
    /// Whether it has [`Queues::peek`](crate::Queues::peek).
    pub peeks: bool,
}

/// In what order messages are received with order hint 1 by one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In that in which they were sent.
    Strict,
    /// In that in which they were sent, but for those sent at almost the same time by several.
    Almost,
}

/// Where a message stands whose visibility timeout is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reappearance {
    /// Where it was, before all that were sent after it.
    OldPlace,
    /// Behind those that were sent before it became visible (BDQS §III-B.3).
    ByNewTime,
}

/// What the receipt of an earlier reception deletes, when the message has been received again since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldReceipts {
    /// Nothing: only the last receipt deletes.
    Ignored,
    /// The message.
    Delete,
}

/// What a backlog's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// What there is.
    Exact,
    /// About what there is. Nothing sent and nothing received gives 0 after a while.
    Approximate,
}

/// How many replicas take part in each read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// One, as in BDQS's paper.
    One,
    /// More than half of those in the front-end's data centre.
    LocalQuorum,
}

impl Consistency {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::One, Self::LocalQuorum];
    /// Their names, in the same order.
    pub(crate) const NAMES: [&'static str; Self::ALL.len()] =
        [Self::ALL[0].name(), Self::ALL[1].name()];

    /// Returns the attribute's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "ONE",
            Self::LocalQuorum => "LOCAL_QUORUM",
        }
    }

    /// Returns the consistency of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|consistency| consistency.name() == name)
    }
}

/// When a message counts as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDurability {
    /// When the operating system has it.
    Os,
    /// When the disk has it.
    Fsync,
}

impl QueueDurability {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Os, Self::Fsync];
    /// Their names, in the same order.
    pub(crate) const NAMES: [&'static str; Self::ALL.len()] =
        [Self::ALL[0].name(), Self::ALL[1].name()];

    /// Returns the attribute's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Os => "os",
            Self::Fsync => "fsync",
        }
    }

    /// Returns the durability of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|durability| durability.name() == name)
    }
}

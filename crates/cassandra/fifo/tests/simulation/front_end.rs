//! A front-end: whether it owns the queue, or what it does to own it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_cassandra_fifo::{
    Batch, CallId, Now, Observation, Owner, OwnerRow, SegmentKey, SegmentRow,
};

/// What an answer is for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    Row,
    Directory(Option<OwnerRow>),
    Tail(Option<OwnerRow>, Vec<SegmentRow>),
    Claim { asked_at: Now, take: quelea_cassandra_fifo::TakeOver, holder: u128 },
    Renew { asked_at: Now },
    Release,
    Begin(Arc<Batch>),
    Batch(Arc<Batch>),
    Discard(Arc<Batch>),
    Part { group: u64, key: SegmentKey },
    DeletePart { group: u64, numbers: Vec<u64> },
}

/// Requests that belong together.
#[derive(Debug)]
pub(crate) enum Group {
    Load {
        wanted: Vec<(SegmentKey, u64, u64)>,
        rows: Vec<(SegmentKey, crate::replicas::Rows)>,
        open: usize,
    },
    Noted {
        wanted: Vec<(SegmentKey, u64)>,
        rows: Vec<(SegmentKey, crate::replicas::Rows)>,
        open: usize,
    },
    Contents {
        id: u64,
        rows: Vec<quelea_cassandra_fifo::RowKey>,
        read: Vec<(SegmentKey, crate::replicas::Rows)>,
        open: usize,
        is_failed: bool,
    },
    Delete {
        id: u64,
        rows: Vec<quelea_cassandra_fifo::RowKey>,
        failed: Vec<u64>,
        open: usize,
    },
}

#[derive(Debug, Default)]
pub(crate) struct FrontEnd {
    /// Grows with each crash and each end of an owner: answers to an earlier one are dropped.
    pub(crate) life: u64,
    pub(crate) is_paused: bool,
    pub(crate) wall_skew_ms: i64,
    pub(crate) steady_offset_ms: u64,
    pub(crate) observation: Observation,
    pub(crate) owner: Option<Owner>,
    pub(crate) holder: u128,
    pub(crate) row: Option<OwnerRow>,
    pub(crate) is_asking: bool,
    pub(crate) groups: BTreeMap<u64, Group>,
    /// Calls in the owner's hands: which client's, and which of its calls.
    pub(crate) calls: BTreeMap<CallId, (usize, u64)>,
}

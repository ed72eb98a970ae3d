//! What can happen, and what is remembered of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_cassandra_fifo::{Batch, OwnerRow, SegmentKey, Settings};

use crate::front_end::Purpose;
use crate::replicas::{Mutation, Partition, Rows};

pub(crate) const FRONT_ENDS: usize = 3;
pub(crate) const PRODUCERS: usize = 3;
pub(crate) const CONSUMERS: usize = 3;
pub(crate) const GROUPS: u32 = 4;
pub(crate) const TICK_US: u64 = 50_000;
pub(crate) const ACTIVE_US: u64 = 60_000_000;
pub(crate) const END_US: u64 = 240_000_000;
pub(crate) const TIMEOUT_US: u64 = 2_000_000;
pub(crate) const CALL_TIMEOUT_US: u64 = 4_000_000;
pub(crate) const START_MS: u64 = 1_700_000_000_000;
pub(crate) const SETTINGS: Settings = Settings { retention_ms: 86_400_000, receives_max: None };

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chaos {
    pub(crate) pauses: bool,
    pub(crate) crashes: bool,
    pub(crate) late_writes: bool,
    pub(crate) lost_answers: bool,
    /// Whether Cassandra refuses some batches, which it may have taken in an attempt before.
    pub(crate) refusals: bool,
    /// Whether what was refused is deleted before what is behind it is written.
    pub(crate) discards: bool,
    /// Whether owners watch their leases.
    pub(crate) is_fenced: bool,
    /// Whether what comes late into an earlier epoch is dropped.
    pub(crate) is_sealed: bool,
}

impl Chaos {
    pub(crate) const NONE: Self = Self {
        pauses: false,
        crashes: false,
        late_writes: false,
        lost_answers: false,
        refusals: false,
        discards: true,
        is_fenced: true,
        is_sealed: true,
    };
    pub(crate) const ALL: Self = Self {
        pauses: true,
        crashes: true,
        late_writes: true,
        lost_answers: true,
        refusals: true,
        discards: true,
        is_fenced: true,
        is_sealed: true,
    };
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) faults: Vec<String>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) take_overs: u64,
    /// Writes of messages that came to a replica after another owner had begun.
    pub(crate) late_writes: u64,
    /// Messages that were refused.
    pub(crate) refused: u64,
    /// Owners that let go.
    pub(crate) releases: u64,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.take_overs += other.take_overs;
        self.late_writes += other.late_writes;
        self.refused += other.refused;
        self.releases += other.releases;
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Written,
    Read(Rows),
    Row(Option<OwnerRow>),
    Applied(bool),
    Failed,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) front_end: usize,
    pub(crate) life: u64,
    pub(crate) purpose: Purpose,
    pub(crate) acknowledged: usize,
    pub(crate) said: Vec<(usize, Rows)>,
    pub(crate) is_done: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Tick(usize),
    Pause(usize),
    Wake(usize),
    Crash(usize),
    Apply {
        request: u64,
        replica: usize,
        mutation: Arc<Mutation>,
        epoch: u64,
    },
    Snapshot {
        request: u64,
        replica: usize,
        partition: Partition,
    },
    ReadOwner {
        request: u64,
    },
    ChangeOwner {
        request: u64,
        from: Option<(u64, u128, Option<i64>)>,
        to: OwnerRow,
        is_heard: bool,
    },
    Timeout {
        request: u64,
    },
    Answer {
        request: u64,
        answer: Answer,
    },
    Retry {
        front_end: usize,
        life: u64,
        effect: RetriedEffect,
    },
    Call {
        client: usize,
        call: u64,
        front_end: usize,
    },
    CallTimeout {
        client: usize,
        call: u64,
    },
    Next(usize),
    Delete {
        client: usize,
        delivery: Vec<u8>,
        number: u64,
        tries: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum RetriedEffect {
    Write(Arc<Batch>),
    Discard(Arc<Batch>),
    Load(Vec<(SegmentKey, u64, u64)>),
    Noted(Vec<(SegmentKey, u64)>),
}

#[derive(Clone, Debug)]
pub(crate) enum ClientCommand {
    Send { group: String, id: String },
    Receive { max: usize },
    Delete { delivery: Vec<u8>, number: u64 },
}

#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) call: u64,
    pub(crate) wish: Option<ClientCommand>,
    pub(crate) sent: u32,
    pub(crate) front_end: usize,
    /// Deletions under way, by their calls.
    pub(crate) deleting: BTreeMap<u64, ClientCommand>,
}

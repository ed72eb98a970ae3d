//! Who is connected: a native client, which may produce and listen, or a peer of another protocol's edge.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_proto::{ClientId, Slot, Time};

use crate::relay::ledger::EntryNumber;
use crate::relay::ring::Ring;
use crate::relay::spill::Spill;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has to say HELLO.
    Greeting,
    Open,
    /// It was sent why it must go; nothing more is taken from it, and it has until then to read it.
    Closing(Time),
}

/// How a client gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As frames, written from its ring.
    Native,
    /// Its edge takes them from the ring, without frames.
    Edge,
}

#[derive(Debug)]
pub(crate) struct Client {
    /// Tells it from a later one with the same index.
    pub(crate) generation: u32,
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    /// For people.
    pub(crate) name: Box<str>,
    pub(crate) last_read_at: Time,
    /// PINGs that nothing came after.
    pub(crate) pings: u32,
    pub(crate) ring: Ring,
    /// It is on the list of those that have something to write.
    pub(crate) dirty: bool,
    /// Its socket takes no more.
    pub(crate) blocked: bool,
    /// Its producers: slots with their indexes.
    pub(crate) slots: Vec<(Slot, u32)>,
    pub(crate) listener: Option<Listener>,
}

impl Client {
    pub(crate) fn new(generation: u32, kind: Kind, now: Time) -> Self {
        Self {
            generation,
            kind,
            phase: if kind == Kind::Native { Phase::Greeting } else { Phase::Open },
            name: "".into(),
            last_read_at: now,
            pings: 0,
            ring: Ring::default(),
            dirty: false,
            blocked: false,
            slots: Vec::new(),
            listener: None,
        }
    }

    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing(_))
    }

    /// Returns how many bytes of messages wait for it in its ring, and of all that is away at the policy Spill.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let spill = self.listener.as_ref().and_then(|listener| listener.spill.as_deref());
        self.ring.bytes() as u64 + spill.map_or(0, Spill::bytes)
    }
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: ClientId,
    pub(crate) slow: SlowPolicy,
    /// Its subscriptions, counted; the empty prefix is not among them.
    pub(crate) prefixes: BTreeMap<Bytes, u32>,
    /// Subscriptions to everything.
    pub(crate) everything: u32,
    /// Its ring was full, and has not enough room yet: ended by `offer`, and by `make_room` when the ring was read.
    pub(crate) dropping: bool,
    /// It is so far behind the others that producers do not wait for it.
    pub(crate) lagging: bool,
    /// Messages written to it.
    pub(crate) sent: u64,
    /// The highest RECEIVED, and when it last grew.
    pub(crate) received: u64,
    pub(crate) received_at: Time,
    /// It has said no RECEIVED for so long that nothing waits for that.
    pub(crate) left_behind: bool,
    /// Written, and waiting for RECEIVED.
    pub(crate) awaiting: VecDeque<Awaiting>,
    /// Bytes written since the last look at who lags, and the same before, fading.
    pub(crate) written_bytes: u64,
    pub(crate) pace: u64,
    /// Deliveries dropped.
    pub(crate) dropped: u64,
    /// Some of them were: it may miss what is acknowledged.
    pub(crate) missing: bool,
    /// It has said BYE: nobody has to know what it misses.
    pub(crate) leaves: bool,
    /// Its last filtered_run of the run that is being looked through.
    pub(crate) filtered_run: Option<usize>,
    /// What is not in its ring, at the policy Spill.
    pub(crate) spill: Option<Box<Spill>>,
}

/// A run that the listener has not said it received.
#[derive(Debug)]
pub(crate) struct Awaiting {
    /// Messages sent to it, these included.
    pub(crate) sent: u64,
    pub(crate) producer: u32,
    pub(crate) slot: Slot,
    pub(crate) entry: EntryNumber,
    /// When the relay read it.
    pub(crate) at: Time,
}

impl Listener {
    pub(crate) fn new(id: ClientId, slow: SlowPolicy, now: Time) -> Self {
        Self {
            id,
            slow,
            prefixes: BTreeMap::new(),
            everything: 0,
            dropping: false,
            lagging: false,
            sent: 0,
            received: 0,
            received_at: now,
            left_behind: false,
            awaiting: VecDeque::new(),
            written_bytes: 0,
            pace: 0,
            dropped: 0,
            missing: false,
            leaves: false,
            filtered_run: None,
            spill: None,
        }
    }
}

//! What goes into the directory's state machine, and what comes out.

use bytes::Bytes;
use quelea_elastic_proto::frame::{Frame, NoticeCode};
use quelea_elastic_proto::{ClientId, Fence, RelayId};

use crate::directory::Definition;
use crate::plan::Action;

/// A connection to a client or a relay, numbered by the driver; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub u64);

/// Where a connection comes from: an address as a number, or of a larger network its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u128);

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Someone connected (HELLO and WELCOME are the driver's).
    Connected {
        /// Which connection.
        peer: Peer,
        /// What it said in HELLO that it is.
        role: quelea_elastic_proto::frame::Role,
        /// Where it is; of IPv6 the network is enough.
        address: Address,
    },
    /// A frame came.
    Received {
        /// Which connection.
        peer: Peer,
        /// The frame.
        frame: Frame,
    },
    /// The connection ended.
    Disconnected {
        /// Which connection.
        peer: Peer,
    },
    /// This directory owns the queue from now on, under this fence; `record` is what the metadata store has
    /// of it (`None`: a new queue). `running` is what the provider says is running for it.
    Owned {
        /// The queue.
        queue: String,
        /// The term of this directory's ownership.
        fence: Fence,
        /// The queue's record, see [`crate::directory::limits::RECORD_BYTES_MAX`].
        record: Option<Bytes>,
        /// What the provider says is running for it.
        running: Vec<RelayHandle>,
    },
    /// It does not own the queue any more: it forgets it, redirects its clients, and does nothing more for it.
    Disowned {
        /// The queue.
        queue: String,
        /// Who owns it, as `host:port`, if that is known.
        owner: Option<String>,
    },
    /// A [`Effect::Save`] or [`Effect::Remove`] was done, or refused because the fence is old.
    Saved {
        /// The queue.
        queue: String,
        /// Names this one; counts up. 0: a removal.
        save: u64,
        /// How it went.
        result: Result<(), SaveError>,
    },
    /// A provider's answer to [`Effect::StartRelay`], [`Effect::StopRelay`].
    Provider {
        /// The queue.
        queue: String,
        /// The relay.
        relay: RelayId,
        /// What became of it.
        outcome: ProviderOutcome,
    },
    /// Directories have come or gone: these are left, this one first. It is announced to all relays and clients.
    Directories(
        /// `host:port` of each.
        Vec<String>,
    ),
    /// A queue's definition came from outside (API, configuration). Makes the queue if it is unknown, and anew if it is
    /// being deleted.
    Define {
        /// The queue.
        queue: String,
        /// What it is meant to be; checked.
        definition: Definition,
    },
    /// A queue is to be no more (API): its clients get a notice, its relays are stopped, its record removed.
    Delete {
        /// The queue.
        queue: String,
    },
    /// An operator has a producer moved (API). What would keep it, [`Directory::check_move`] says before.
    ///
    /// [`Directory::check_move`]: crate::directory::Directory::check_move
    Move {
        /// The queue.
        queue: String,
        /// Who; `None`: the next one that can be moved, in turn.
        producer: Option<ClientId>,
        /// Where to; `None`: the least loaded other relay.
        to: Option<RelayId>,
    },
    /// An operator has one of the planner's actions carried out (API): a move, a drain, a start.
    Act {
        /// The queue.
        queue: String,
        /// What to do. It is left alone if it makes no sense (any more).
        action: Action,
        /// For the event log.
        reason: String,
    },
    /// The directory stops, and the relays of its queues with it: their ends go on record, so that no later
    /// directory waits for them. Its connections were closed before. [`Directory::has_stopped`] says when it is done.
    ///
    /// [`Directory::has_stopped`]: crate::directory::Directory::has_stopped
    Stop,
    /// Time has passed: call it at the deadline that `next_deadline` gives.
    Tick,
}

impl Input {
    /// Returns whether it begins something, so that a directory that stops leaves it alone: it
    /// takes nothing over, and nobody is served.
    pub(super) const fn begins_something(&self) -> bool {
        matches!(
            self,
            Self::Connected { .. }
                | Self::Received { .. }
                | Self::Owned { .. }
                | Self::Define { .. }
                | Self::Delete { .. }
                | Self::Move { .. }
                | Self::Act { .. }
                | Self::Stop
        )
    }
}

/// Why a record was not saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// Another directory owns the queue.
    Fenced,
    /// The metadata store does not answer: try again.
    Unavailable,
}

/// What a provider says of one relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderOutcome {
    /// It runs (it has not registered yet).
    Started(RelayHandle),
    /// It could not be started, with the reason.
    Failed(String),
    /// It may have been started, or may be yet: the provider did not answer, with the reason.
    Unknown(String),
    /// It is gone, expectedly or not.
    Ended(String),
}

/// A running relay as its provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayHandle {
    /// Its number.
    pub relay: RelayId,
    /// The request that started it.
    pub request: String,
    /// The provider's own name of it (a process id with its start time, a pod).
    pub name: String,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaySpec {
    /// Its number.
    pub relay: RelayId,
    /// The queue.
    pub queue: String,
    /// Idempotence: the provider starts at most one relay for a request.
    pub request: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a frame.
    Send {
        /// Which connection.
        peer: Peer,
        /// The frame.
        frame: Frame,
    },
    /// Send an ERROR (already sent before this) and close.
    Close {
        /// Which connection.
        peer: Peer,
    },
    /// The directory needs the queue: claim it, then give [`Input::Owned`] or [`Input::Disowned`], however
    /// long that takes.
    Claim {
        /// The queue.
        queue: String,
    },
    /// Write the queue's record, if the fence still holds; answered by [`Input::Saved`].
    Save {
        /// The queue.
        queue: String,
        /// Names this one; counts up.
        save: u64,
        /// The term of this directory's ownership.
        fence: Fence,
        /// The queue's record, see [`crate::directory::limits::RECORD_BYTES_MAX`].
        record: Bytes,
    },
    /// Remove the queue's record, if the fence still holds; answered by [`Input::Saved`] with the number 0.
    Remove {
        /// The queue.
        queue: String,
        /// The term of this directory's ownership.
        fence: Fence,
    },
    /// Have a relay started; answered by [`Input::Provider`].
    StartRelay {
        /// The queue.
        queue: String,
        /// Which relay.
        spec: RelaySpec,
    },
    /// A relay is being drained, and is ended at the latest when this time is over: for providers that show it.
    /// Not answered.
    DrainRelay {
        /// The queue.
        queue: String,
        /// The relay.
        relay: RelayId,
        /// The provider's name of it, empty if it is not known.
        name: String,
        /// From now to its end, milliseconds.
        deadline_ms: u64,
    },
    /// The provider did not list this relay of the record: if it knows that the relay has ended, this is answered
    /// by [`Input::Provider`], else not at all.
    CheckRelay {
        /// The queue.
        queue: String,
        /// The relay.
        relay: RelayId,
        /// The provider's name of it.
        name: String,
    },
    /// Have a relay ended (it had its chance to drain); answered by [`Input::Provider`].
    StopRelay {
        /// The queue.
        queue: String,
        /// The relay.
        relay: RelayId,
        /// The provider's name of it, empty if it is not known.
        name: String,
    },
    /// For the event log, the API and the metrics.
    Event(Event),
}

/// A decision or an observation, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The queue.
    pub queue: String,
    /// The generation of the queue in which it was decided.
    pub generation: u64,
    /// What: `start`, `move`, `moved`, `drain`, `stop`, `failover`, `restart`, `notice`, `abort`...
    pub kind: &'static str,
    /// Whom it concerns, as text: `relay 3`, `producer 5f..`.
    pub subject: String,
    /// Why, with figures.
    pub reason: String,
    /// A notice to the users, if it is one.
    pub notice: Option<NoticeCode>,
}

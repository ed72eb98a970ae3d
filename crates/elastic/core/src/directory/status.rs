//! What the API, the commands and the metrics are shown of a directory. Only read, never kept.

use quelea_elastic_proto::{ClientId, Epoch, Fence, RelayId, Time};

use crate::directory::{Definition, Event};
use crate::plan::{Load, QueueKpi, RelayState};

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueStatus {
    /// Its name.
    pub name: String,
    /// `None` while this directory claims it.
    pub fence: Option<Fence>,
    /// Grows with each change of its relays or assignments.
    pub generation: u64,
    /// What it is meant to be.
    pub definition: Definition,
    /// Its relays, by id.
    pub relays: Vec<RelayStatus>,
    /// Producers.
    pub producers: usize,
    /// Listeners.
    pub listeners: usize,
    /// Moves under way.
    pub moves_under_way: usize,
    /// Moves that were carried out since this directory owns the queue.
    pub moves_done: u64,
    /// Moves that were given up since then.
    pub moves_aborted: u64,
    /// Rates of all relays together.
    pub load: Load,
    /// What it carries against the throughput that it promises; `None` if it promises none.
    pub kpi: Option<QueueKpi>,
    /// Spent in the current hour, in millionths.
    pub spent_this_hour_micros: u64,
    /// The budget is spent: the queue has its minimal service level.
    pub minimal: bool,
}

/// A relay.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayStatus {
    /// Its number.
    pub id: RelayId,
    /// Where it is in its lifecycle.
    pub state: RelayState,
    /// `host:port` of the native protocol; empty until it has registered.
    pub address: String,
    /// `host:port` of ZMTP's two sides (producers, listeners), empty if off.
    pub zmtp: (String, String),
    /// The provider's request.
    pub request: String,
    /// The provider's name of it, empty until it said so.
    pub handle: String,
    /// When it was asked for.
    pub started_at: Time,
    /// When its last report came.
    pub reported_at: Option<Time>,
    /// Its last rates.
    pub load: Load,
    /// Deliveries that it dropped, since its start.
    pub dropped: u64,
    /// Deliveries that had to wait in a file of it, since its start.
    pub spilled: u64,
    /// Times that producers stopped waiting there for a listener which took nothing, since its start.
    pub left_behind: u64,
    /// Memory that it uses and may use, bytes; 0 where it does not say.
    pub memory_bytes: u64,
    /// See [`Self::memory_bytes`].
    pub memory_bytes_max: u64,
    /// Producers assigned to it.
    pub producers: usize,
    /// Listeners attached, as it says itself.
    pub listeners: u32,
    /// It is connected to this directory.
    pub connected: bool,
    /// Second witnesses that say it is gone: clients (one, however many they are), its closed connection.
    pub witnesses: u32,
}

/// A producer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerStatus {
    /// Who.
    pub id: ClientId,
    /// Where it sends; `None` while it waits for a relay.
    pub relay: Option<RelayId>,
    /// Its epoch there.
    pub epoch: Epoch,
    /// Where it is being moved to.
    pub moving_to: Option<RelayId>,
    /// It is connected to this directory.
    pub connected: bool,
    /// It speaks ZMTP to the relay itself, so it cannot be moved.
    pub fixed: bool,
    /// Rates over 10 s.
    pub fast: Load,
    /// Rates over 200 s.
    pub slow: Load,
    /// When it last moved, zero if it never moved.
    pub moved_at: Time,
}

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerStatus {
    /// Who.
    pub id: ClientId,
    /// The generation of its relays that it was sent last.
    pub generation: u64,
    /// The generation that it has answered.
    pub listening: u64,
    /// Where it is attached, as it said.
    pub relays: Vec<RelayId>,
    /// It did not answer in time.
    pub lagging: bool,
    /// It is connected to this directory.
    pub connected: bool,
}

/// An event with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Counts the queue's events from 1, in this directory.
    pub number: u64,
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
}

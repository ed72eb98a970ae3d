//! The planner's input and its result.

use quelea_elastic_proto::{ClientId, RelayId, Time};

/// What is known of a queue at one moment. Immutable; made by the monitor, in a fixed order.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Grows with each change of the queue's relays or assignments.
    pub generation: u64,
    /// All relays that are not forgotten, by id.
    pub relays: Vec<RelayView>,
    /// All producers, by id.
    pub producers: Vec<ProducerView>,
    /// Listeners of the queue.
    pub listeners: u32,
    /// What one relay costs an hour, in millionths.
    pub relay_cost_per_hour_micros: u64,
    /// Spent in the current hour, in millionths.
    pub spent_this_hour_micros: u64,
}

/// A relay as the monitor sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayView {
    /// Which.
    pub id: RelayId,
    /// Where it is in its life.
    pub state: RelayState,
    /// When it was asked for.
    pub started_at: Time,
    /// When its last report came, `None` if none has.
    pub reported_at: Option<Time>,
    /// Its rates in the last samples, newest last (at most 16; one a report).
    pub samples: Vec<Load>,
    /// What it can carry by itself (from REGISTER), 0 where unknown.
    pub capacity: Load,
    /// Second witnesses that it is gone: clients' RELAY_LOST (one, however many they are), a closed connection.
    pub witnesses: u32,
    /// Moves planned and not finished from or to it.
    pub moves_under_way: u32,
}

/// Where a relay is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelayState {
    /// Asked for, has not registered.
    Starting,
    /// Serves.
    Up,
    /// Takes no new client, and is emptied.
    Draining,
    /// Declared dead; its clients are moved.
    Dead,
}

/// Rates, per second (but for `clients`, `latency_us`), and the same shape for capacities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Messages in.
    pub messages_in: f64,
    /// Bytes in.
    pub bytes_in: f64,
    /// Messages out.
    pub messages_out: f64,
    /// Bytes out.
    pub bytes_out: f64,
    /// Share of one processor core, 1.0 = one core.
    pub cpu: f64,
    /// Share of its host's memory that the relay uses, 1.0 = all; 0 where it is not known. No capacity has it.
    pub memory: f64,
    /// The same of its host's network, in the direction that is used more.
    pub network: f64,
    /// Connected clients.
    pub clients: f64,
    /// Mean latency in the relay, microseconds.
    pub latency_us: f64,
}

/// A producer as the monitor sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerView {
    /// Who.
    pub id: ClientId,
    /// Where it sends.
    pub relay: RelayId,
    /// Its rates, moving average over 10 s.
    pub fast: Load,
    /// Its rates, moving average over 200 s.
    pub slow: Load,
    /// When it last moved, zero if it never moved.
    pub moved_at: Time,
    /// A move of it is under way.
    pub moving: bool,
    /// It cannot be moved (speaks ZMTP to the relay itself).
    pub fixed: bool,
}

/// Which rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The default: the paper's aims without the defects of its printed algorithm.
    #[default]
    Steady,
    /// The algorithm of EQS §III-D as printed, for the reproduction.
    Paper,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start that many relays.
    Start {
        /// How many.
        count: u32,
    },
    /// Move a producer by the handshake.
    Move {
        /// Who.
        producer: ClientId,
        /// From where.
        from: RelayId,
        /// Where to.
        to: RelayId,
    },
    /// Give it no new client; its producers are moved by further actions; stop it when it is empty.
    Drain {
        /// Which.
        relay: RelayId,
    },
    /// It is dead: fence it, and assign its clients elsewhere.
    FailOver {
        /// Which.
        relay: RelayId,
    },
    /// It never registered, or is dead: have the provider end it and start another.
    Restart {
        /// Which.
        relay: RelayId,
    },
    /// A relay that drains is empty, or at its deadline: stop it.
    Stop {
        /// Which.
        relay: RelayId,
    },
    /// Send the queue's users a notice.
    Notify {
        /// What.
        code: quelea_elastic_proto::frame::NoticeCode,
    },
}

/// An action with its reason, in words with figures, for people and the event log.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What to do.
    pub action: Action,
    /// Why: names the KPI, its limit and its value.
    pub reason: String,
}

/// What `plan` returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order in which they are to be begun.
    pub actions: Vec<Planned>,
    /// What was looked at and left alone, and why: for the dry run.
    pub remarks: Vec<String>,
}

//! What a directory is made with: defaults of queues, deadlines, prices.

use crate::directory::{Definition, FirstUseLimits};

/// A directory's settings: the same for all of its queues.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Of queues that are made on first use.
    pub definition: Definition,
    /// `host:port` at which this directory keeps messages (its keeper), empty if it has none: relays of a
    /// queue that names a durable queue get it.
    pub keeper: String,
    /// Relays of all of this directory's queues together.
    pub relays_max: usize,
    /// How many queues clients may make by using them.
    pub first_use: FirstUseLimits,
    /// What one relay costs an hour, in millionths; 0 where it costs nothing.
    pub relay_cost_per_hour_micros: u64,
    /// Time between two REPORTs of a relay: its heartbeat.
    pub report_ms: u32,
    /// Heartbeats that may be missed before a relay counts as silent. With a second witness it is dead.
    pub reports_missed_max: u32,
    /// Heartbeats missed without any second witness after which a relay is dead all the same.
    pub reports_missed_alone_max: u32,
    /// From asking the provider to REGISTER; a relay that takes longer is given up.
    pub register_ms_max: u64,
    /// From LISTEN_AT to LISTENING, before a move goes on without a listener, or is given up.
    pub listening_ms_max: u64,
    /// From PRODUCE_AT to PRODUCING, before a move is given up.
    pub producing_ms_max: u64,
    /// From DRAIN to the relay's end, however many clients it still has.
    pub drain_ms_max: u64,
    /// How long a client that lost its connection to the directory still counts: it comes back within that.
    /// A new owner waits so long for the listeners that its relays report before it sends producers to
    /// relays where they are not yet.
    pub absent_ms: u64,
    /// Between two plans of a queue.
    pub plan_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            definition: Definition::default(),
            keeper: String::new(),
            relays_max: usize::MAX,
            first_use: FirstUseLimits::default(),
            relay_cost_per_hour_micros: 0,
            report_ms: 1_000,
            reports_missed_max: 3,
            reports_missed_alone_max: 10,
            register_ms_max: 15_000,
            listening_ms_max: 2_000,
            producing_ms_max: 5_000,
            drain_ms_max: 60_000,
            absent_ms: 5_000,
            plan_ms: 1_000,
        }
    }
}

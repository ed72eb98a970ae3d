//! What was sent, and every cause for which something was not.

use std::time::Duration;

/// Counters of the sending side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Messages that left, each once.
    pub messages: u64,
    /// Datagrams of data that left, each once.
    pub datagrams: u64,
    /// Their bytes, headers too.
    pub bytes: u64,
    /// Trains that left: calls of the kernel.
    pub trains: u64,
    /// Datagrams sent again.
    pub repeated: u64,
    /// Parity sent along.
    pub parities: u64,
    /// HELLOs for keys.
    pub hellos: u64,
    /// Messages dropped because their flow has sealed all that it may.
    pub unsealed_messages: u64,
    /// Questions to receivers.
    pub probes: u64,
    /// Messages dropped for want of room or credit, as their destination wanted it.
    pub dropped_messages: u64,
    /// Messages given up because their receiver was gone.
    pub abandoned_messages: u64,
    /// Messages that receivers counted as lost.
    pub lost_messages: u64,
    /// Trains that had to wait for credit.
    pub held_back: u64,
    /// Answers taken.
    pub statuses: u64,
    /// Answers that say what cannot be.
    pub impossible_statuses: u64,
    /// Answers that no flow here has asked for.
    pub stray_answers: u64,
    /// Receivers that have no such mailbox, or no room.
    pub refusals: u64,
    /// Receivers that were started anew, so that all that they had not acknowledged was repeated.
    pub restarts: u64,
    /// Events that nobody asked for in time.
    pub events_dropped: u64,
    /// Now: destinations.
    pub destinations: u64,
}

/// What an endpoint knows of one of its destinations. Of one whose receiver was started anew, it is
/// what has happened since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DestinationStats {
    /// Messages that left, each once.
    pub messages: u64,
    /// Datagrams that left, each once, parity among them.
    pub datagrams: u64,
    /// Datagrams that were repeated, whatever became of the receiver since.
    pub repeated: u64,
    /// Bytes under way, as credit is charged: 800 more for each datagram, as the receiver's kernel
    /// accounts for them. None where there is no credit.
    pub under_way_bytes: u64,
    /// Bytes that gather or wait for credit.
    pub waiting_bytes: usize,
    /// Bytes that are kept until they are acknowledged.
    pub kept_bytes: usize,
    /// Messages that left and are not known to have arrived (reliable only).
    pub missing_messages: u64,
    /// Messages that the receiver counts as lost.
    pub lost_messages: u64,
    /// The smoothed round trip, if it is known.
    pub round_trip: Option<Duration>,
    /// Whether the receiver was given up.
    pub is_dead: bool,
}

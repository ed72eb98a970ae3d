//! The options of a flight.

use std::time::Duration;

/// A receiver of a reliable flow is given up after so long without any answer.
pub const DEAD_PEER: Duration = Duration::from_secs(60);

/// What is under way to a receiver of a lossy flow is forgotten after so long without any answer.
pub const SILENT_PEER: Duration = Duration::from_secs(30);

/// Returns how long a receiver may be silent, as configured, or by default.
pub(crate) const fn patience(configured: Option<Duration>, reliable: bool) -> Duration {
    match configured {
        Some(configured) => configured,
        None if reliable => DEAD_PEER,
        None => SILENT_PEER,
    }
}

/// How a destination's datagrams are treated.
#[derive(Clone, Copy, Debug)]
pub struct FlightOptions {
    /// Whether what is lost is repeated.
    pub reliable: bool,
    /// Whether the path stays on this machine, where only the receiver's credit counts.
    pub loopback: bool,
    /// How long a peer may be silent: [`DEAD_PEER`] and [`SILENT_PEER`] are the defaults.
    pub dead_after: Duration,
}

impl FlightOptions {
    /// Returns the defaults for a mode.
    #[must_use]
    pub const fn new(reliable: bool, loopback: bool) -> Self {
        Self { reliable, loopback, dead_after: patience(None, reliable) }
    }
}

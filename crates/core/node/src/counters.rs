//! What the sockets did.

use quelea_model::LatencyHistogram;

/// Counts since the start of the process, for the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    /// Connections now, those in their handshake included.
    pub connections: u64,
    /// How many there may be.
    pub connections_max: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once because there were too many.
    pub refused: u64,
    /// Calls of accept that failed, for want of file descriptors or memory.
    pub accept_errors: u64,
    /// Bytes that were read.
    pub bytes_received: u64,
    /// Bytes that were written.
    pub bytes_sent: u64,
    /// How long publishers waited for their confirms.
    pub confirm_latencies: LatencyHistogram,
    /// Publishes that their clients know to be accepted.
    pub confirmed: u64,
    /// Turns of the core.
    pub turns: u64,
    /// How long they took, with the input before them: for so long nobody else was served.
    pub turn_times: LatencyHistogram,
    /// Pauses after turns, so that the next read finds several small messages.
    pub input_pauses: u64,
}

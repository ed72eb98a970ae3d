//! The one clock of a run: nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine
//! share, so that a consumer in one process can time what a producer in another one sent.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Returns the time now, in nanoseconds since an arbitrary point (boot). Some 25 ns a call: the hot
/// loops read it once per batch, never per message.
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Seconds since boot are not negative and fit by far.
    time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned()
}

/// Returns a whole number of nanoseconds for a number of seconds; negative and absurd values are
/// clamped.
pub(crate) fn seconds_to_ns(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e9) as u64
}

/// Returns the seconds between two readings; 0 if they are the wrong way round.
pub(crate) fn seconds_between(earlier: u64, later: u64) -> f64 {
    later.saturating_sub(earlier) as f64 / 1e9
}

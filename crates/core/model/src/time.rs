//! Time as state machines see it: an argument, never a clock that is read.

use std::time::Duration;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);

    /// Creates a time from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time `ms` milliseconds later; stays at the largest time instead of wrapping.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds from `earlier` to `self`; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Microseconds on a monotonic clock of the driver's choice; only differences mean anything, so a step of the wall
/// clock changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// Creates a time from microseconds since the origin.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Returns the microseconds since the origin.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time `us` microseconds later; stays at the largest time instead of wrapping.
    #[must_use]
    pub const fn plus_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }

    /// Returns the time `ms` milliseconds later; stays at the largest time instead of wrapping.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        self.plus_us(ms.saturating_mul(1_000))
    }

    /// Returns the time that is later by `duration`; stays at the largest time instead of wrapping.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        self.plus_us(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    /// Returns the microseconds from `earlier` to `self`; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since_us(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the whole milliseconds from `earlier` to `self`; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.since_us(earlier) / 1_000
    }
}

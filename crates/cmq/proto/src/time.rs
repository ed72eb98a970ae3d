//! Time as the machine sees it.

use std::time::Duration;

/// Microseconds on a monotonic clock of the caller's choice; only differences mean anything, so a
/// step of the wall clock changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// A time so many microseconds after the origin.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us)
    }

    /// Microseconds since the origin.
    #[must_use]
    pub const fn as_us(self) -> u64 {
        self.0
    }

    /// A later time; stays at the end of the clock if there is no such time.
    #[must_use]
    pub const fn after_us(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }

    /// A later time; stays at the end of the clock if there is no such time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        self.after_us(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds since `earlier`; zero if it is later.
    #[must_use]
    pub const fn us_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

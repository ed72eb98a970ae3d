//! Time as the state machines see it: an argument, never a clock that is read.

/// Microseconds since some moment that the driver chose; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The driver's moment.
    pub const ZERO: Self = Self(0);

    /// From microseconds since the driver's moment.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Microseconds since the driver's moment.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Later by `ms` milliseconds; stays at the largest time instead of wrapping.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000)))
    }

    /// Microseconds from `earlier` to `self`; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since_us(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole milliseconds from `earlier` to `self`; 0 if `earlier` is not earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.since_us(earlier) / 1_000
    }
}

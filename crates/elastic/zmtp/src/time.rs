//! Time as the state machine sees it: an argument, never a clock that is read.

/// Milliseconds since some moment that the driver chose; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZmtpTime(pub u64);

impl ZmtpTime {
    /// Returns the time that is later by `ms`; stays at the largest time instead of wrapping.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

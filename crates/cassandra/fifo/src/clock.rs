//! The two clocks: what clients see, and what leases are measured by.

/// The present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// In ms since 1970, as Cassandra's nodes have it. It may jump.
    pub wall_ms: u64,
    /// In ms since some moment in this process's past. It never jumps, and goes on while the process is stopped.
    pub steady_ms: u64,
}

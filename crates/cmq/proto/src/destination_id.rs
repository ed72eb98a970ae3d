//! What a handle to a destination holds.

/// A destination's place in its endpoint. Stale once the destination is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DestinationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

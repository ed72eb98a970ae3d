//! Why a client is disconnected that does not keep up.

/// The limit for which a client is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Messages in its ring.
    Ring,
    /// Other frames in its ring.
    Control,
    /// Written to it, and waiting for RECEIVED.
    Awaiting,
    /// It says RECEIVED for nothing.
    Stalled,
    /// What it has in the store of the policy Spill, frames that are no messages too.
    Spill,
}

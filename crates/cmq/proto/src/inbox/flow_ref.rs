//! What names a flow for longer than a call.

/// A flow's place. Stale once it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowRef {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

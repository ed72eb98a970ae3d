//! What the parts of a run are called: machines, their processes, connections.

/// A machine's place in the run. Never used twice.
pub(super) type NodeId = usize;

/// A machine from its boot to its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Incarnation {
    pub(super) node: NodeId,
    pub(super) number: u32,
}

/// A connection. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnId(pub(super) u64);

/// Who opened a connection has side 0.
pub(super) type Side = usize;

//! Every limit of a directory, with its reason.

/// Queues that a directory knows: each costs some kilobytes; beyond this another directory is due.
pub const QUEUES_MAX: usize = 100_000;
/// Connections.
pub const PEERS_MAX: usize = 1_000_000;
/// Connections to which directories that have come or gone are announced in one turn.
pub const ANNOUNCED_AT_ONCE_MAX: usize = 1_000;
/// Queues that one connection may open: bounds what a single faulty client can cause.
pub const QUEUES_PER_PEER_MAX: usize = 1_024;
/// Frames that wait for a queue's claim.
pub const WAITING_PER_QUEUE_MAX: usize = 10_000;
/// Events of one queue that are kept for the API: hours of a busy queue.
pub const EVENTS_PER_QUEUE_MAX: usize = 512;
/// Objects of one answer of the API, and how many it has unless the request says.
pub const PAGE_SIZE_MAX: usize = 1_000;
/// Events of one answer of the API.
pub const EVENTS_SHOWN_MAX: usize = 1_000;
/// Moves of one queue at one time: the frames of a failover or a scale out stay in bounds.
pub const MOVES_PER_QUEUE_MAX: usize = 1_024;
/// A record: what a metadata store takes in one value (etcd: 1.5 MB).
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// The smallest ring of a listener: some messages of the usual size.
pub const RING_BYTES_MIN: u64 = 64 << 10;
/// The largest ring of a listener.
pub const RING_BYTES_MAX: u64 = 4 << 30;

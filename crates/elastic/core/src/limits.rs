//! What both a queue's agreement and the directory hold a queue to.

/// Clients of one queue, producers and listeners together: bounds a plan's time and a failover's frames.
pub const CLIENTS_PER_QUEUE_MAX: usize = 200_000;

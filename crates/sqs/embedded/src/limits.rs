//! How much this crate keeps at most.

/// Queues, keys, and what users may do, that are remembered, of each kind; at the limit all are forgotten.
pub(crate) const CACHE_ENTRIES_MAX: usize = 65_536;

//! The limits of the store.

use std::time::Duration;

/// How long Cassandra may take to do one thing, its repetitions included.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(3);

/// How often what has changed is read.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Between two looks at all leases.
pub(crate) const LEASES_EVERY: Duration = Duration::from_millis(500);

/// The longest pause before a transaction that another one came before is tried again, in ms.
pub(crate) const PAUSE_MS_MAX: u64 = 40;

/// How long a change is kept for those that watch, in seconds.
pub(crate) const CHANGES_TTL_S: i32 = 600;

/// Rows that one request reads.
pub(crate) const PAGE_ROWS: i32 = 500;

/// Changes of one transaction.
pub(crate) const CHANGES_MAX: usize = 500;

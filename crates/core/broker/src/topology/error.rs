//! Why stored bytes are not an item of the topology.

use thiserror::Error;

/// Why stored bytes are not an item.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("stored topology: {what} at byte {at} of the {part}: {reason}")]
pub struct TopologyError {
    /// The field, such as `queue name`.
    pub what: &'static str,
    /// `key` or `value`.
    pub part: &'static str,
    /// Byte offset within that part.
    pub at: usize,
    /// What is wrong.
    pub reason: String,
}

//! Names of connections and channels within one run of the broker. Never persisted.

use std::fmt;

use crate::arena::Key;

/// A connection. A number is not given twice before four billion others came and went in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) Key);

/// A channel of some connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(crate) Key);

/// A consumer of some channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConsumerId(pub(crate) Key);

/// A receive that waits for its answer. Later ones have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(pub(crate) u64);

impl ConnectionId {
    /// As one number, for maps and logs.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        (self.0.generation as u64) << 32 | self.0.slot as u64
    }
}

impl ChannelId {
    /// As one number, for maps and logs.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        (self.0.generation as u64) << 32 | self.0.slot as u64
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.slot, self.0.generation)
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.slot, self.0.generation)
    }
}

//! Names of connections, channels, consumers and virtual hosts within one run of the broker. Never
//! persisted. A key of something that is gone finds nothing, and is not given twice before two
//! billion others came and went in its slot.

use std::fmt;

use slotmap::{Key, new_key_type};

new_key_type! {
    /// A connection.
    pub struct ConnectionId;

    /// A channel of some connection.
    pub struct ChannelId;

    /// A consumer of some channel.
    pub(crate) struct ConsumerId;

    /// A virtual host.
    pub struct VhostId;
}

/// An exchange. One that is made anew under an old name is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeId {
    pub(crate) vhost: VhostId,
    /// Counted in the virtual host.
    pub(crate) number: u64,
}

/// A receive that waits for its answer. Later ones have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(pub(crate) u64);

impl ConnectionId {
    /// Returns the id as one number, for maps and logs; the lower half is small and dense.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.data().as_ffi()
    }
}

impl ChannelId {
    /// Returns the id as one number, for maps and logs; the lower half is small and dense.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.data().as_ffi()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_slot_and_version(f, self.as_u64())
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_slot_and_version(f, self.as_u64())
    }
}

fn write_slot_and_version(f: &mut fmt::Formatter<'_>, id: u64) -> fmt::Result {
    write!(f, "{}.{}", id as u32, id >> 32)
}

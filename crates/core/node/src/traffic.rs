//! What went through the socket of one connection, and what its channels were told.

use quelea_broker::{ChannelSample, ConnectionId, ListKey};

use crate::core::Core;
use crate::counters::Traffic;

impl Core {
    /// What went through a connection's socket: nothing if it has none.
    #[must_use]
    pub fn traffic(&self, connection: ConnectionId) -> Traffic {
        let slot = self.connections.slot(connection);
        slot.map_or_else(Traffic::default, |slot| self.connections[slot].traffic)
    }

    /// Publishes that the client of a channel knows to be accepted.
    #[must_use]
    pub fn confirmed(&self, connection: ConnectionId, channel: u16) -> u64 {
        let slot = self.connections.slot(connection);
        slot.map_or(0, |slot| self.connections[slot].session.confirmed(channel))
    }

    /// The traffic of some of the connections that samples begin with. Returns how many of the keys it has looked at, too; 1
    /// at least.
    pub fn sample_traffic(&mut self, keys: &[ListKey]) -> (Vec<(ConnectionId, Traffic)>, usize) {
        let (connections, looked_at) = self.broker.sample_connections(keys);
        (connections.into_iter().map(|id| (id, self.traffic(id))).collect(), looked_at)
    }

    /// The counters of some of the channels, each with what was confirmed. Returns how many of the keys it has looked at,
    /// too; 1 at least.
    pub fn sample_channels(&mut self, keys: &[ListKey]) -> (Vec<(ChannelSample, u64)>, usize) {
        let (channels, looked_at) = self.broker.sample_channels(keys);
        let with_confirmed = |channel: ChannelSample| {
            let confirmed = self.confirmed(channel.connection, channel.number);
            (channel, confirmed)
        };
        (channels.into_iter().map(with_confirmed).collect(), looked_at)
    }
}

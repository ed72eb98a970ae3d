//! What went through the socket of one connection, and what its channels were told.

use quelea_amqp_session::PublisherState;
use quelea_broker::{ChannelSample, ConnectionId, ListKey};

use crate::core::Core;

/// Counts since the connection was accepted, its handshake included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Calls that read something.
    pub reads: u64,
    /// Bytes that were read.
    pub bytes_received: u64,
    /// Calls that wrote something.
    pub writes: u64,
    /// Bytes that were written.
    pub bytes_sent: u64,
}

impl Traffic {
    pub(crate) const fn count_read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes_received += bytes as u64;
    }

    pub(crate) const fn count_write(&mut self, bytes: usize) {
        self.writes += 1;
        self.bytes_sent += bytes as u64;
    }
}

impl Core {
    /// What went through a connection's socket: nothing if it has none.
    #[must_use]
    pub fn traffic(&self, connection: ConnectionId) -> Traffic {
        let slot = self.connections.slot(connection);
        slot.map_or_else(Traffic::default, |slot| self.connections[slot].traffic)
    }

    /// What the publisher on a channel has asked for, and knows: nothing if the channel has no socket.
    #[must_use]
    pub fn publisher_state(&self, connection: ConnectionId, channel: u16) -> PublisherState {
        let slot = self.connections.slot(connection);
        slot.map_or_else(PublisherState::default, |slot| {
            self.connections[slot].session.publisher_state(channel)
        })
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
            let confirmed = self.publisher_state(channel.connection, channel.number).confirmed;
            (channel, confirmed)
        };
        (channels.into_iter().map(with_confirmed).collect(), looked_at)
    }
}

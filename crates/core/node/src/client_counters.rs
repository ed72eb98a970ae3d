//! What is counted of connections and channels beside the broker: what went through sockets, and what publishers know.

use quelea_amqp_session::PublisherState;
use quelea_broker::{ChannelSample, ConnectionId, ListKey};

use crate::core::Core;
use crate::traffic::Traffic;

impl Core {
    /// Returns what went through a connection's socket: nothing if it has none.
    #[must_use]
    pub fn traffic(&self, connection: ConnectionId) -> Traffic {
        let slot = self.connections.slot(connection);
        slot.map_or_else(Traffic::default, |slot| self.connections[slot].traffic)
    }

    /// Returns what the publisher on a channel has asked for, and knows: nothing if the channel has no
    /// socket.
    #[must_use]
    pub fn publisher_state(&self, connection: ConnectionId, channel: u16) -> PublisherState {
        let slot = self.connections.slot(connection);
        slot.map_or_else(PublisherState::default, |slot| {
            self.connections[slot].session.publisher_state(channel)
        })
    }

    /// Returns the traffic of some of the connections that samples begin with, and how many of the
    /// keys it has looked at; 1 at least.
    pub fn sample_traffic(&mut self, keys: &[ListKey]) -> (Vec<(ConnectionId, Traffic)>, usize) {
        let (connections, looked_at) = self.broker.sample_connections(keys);
        (connections.into_iter().map(|id| (id, self.traffic(id))).collect(), looked_at)
    }

    /// Returns the counters of some of the channels, each with what was confirmed, and how many of
    /// the keys it has looked at; 1 at least.
    pub fn sample_channels(&mut self, keys: &[ListKey]) -> (Vec<(ChannelSample, u64)>, usize) {
        let (channels, looked_at) = self.broker.sample_channels(keys);
        let with_confirmed = |channel: ChannelSample| {
            let confirmed = self.publisher_state(channel.connection, channel.number).confirmed;
            (channel, confirmed)
        };
        (channels.into_iter().map(with_confirmed).collect(), looked_at)
    }
}

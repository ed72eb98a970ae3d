//! Connections of the broker that have no socket: clients inside this process, such as other fronts.

use quelea_broker::{Broker, ChannelId, ConnectionId, ConnectionInfo, Effect, OpenError};
use quelea_model::Timestamp;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Where effects for connections without a socket go. What waits there is bounded by the consumers'
/// prefetch and the connection's output budget, as for any client.
#[derive(Debug, Default)]
pub(crate) struct InternalConnections {
    effects: FxHashMap<ConnectionId, UnboundedSender<Effect>>,
}

impl InternalConnections {
    /// Opens a connection with one channel.
    pub(crate) fn open(
        &mut self,
        broker: &mut Broker,
        client: InternalClient<'_>,
        effects: UnboundedSender<Effect>,
        now: Timestamp,
    ) -> Result<(ConnectionId, ChannelId), OpenError> {
        let InternalClient { user, vhost, local, name, protocol } = client;
        let info = ConnectionInfo {
            user: user.to_owned(),
            vhost: vhost.to_owned(),
            local: local.to_owned(),
            loopback: true,
            name: name.to_owned(),
            protocol,
            ..ConnectionInfo::default()
        };
        let connection = broker.open_connection(now, info)?;
        let channel = broker.open_channel(connection, 1);
        self.attach(connection, effects);
        Ok((connection, channel.expect("the connection was opened a line above")))
    }

    pub(crate) fn attach(&mut self, connection: ConnectionId, effects: UnboundedSender<Effect>) {
        self.effects.insert(connection, effects);
    }

    pub(crate) fn detach(&mut self, broker: &mut Broker, connection: ConnectionId, now: Timestamp) {
        self.effects.remove(&connection);
        broker.close_connection(now, connection);
    }

    /// Hands an effect over, if the connection is one of these. Whoever has gone away without
    /// detaching is disconnected: what it had goes back to its queues.
    pub(crate) fn apply(
        &mut self,
        broker: &mut Broker,
        connection: ConnectionId,
        effect: Effect,
        now: Timestamp,
    ) {
        if let Some(effects) = self.effects.get(&connection)
            && effects.send(effect).is_err()
        {
            self.effects.remove(&connection);
            broker.close_connection(now, connection);
        }
    }
}

/// The way of such a client into the broker.
#[derive(Debug)]
pub struct InternalChannel {
    /// The connection.
    pub connection: ConnectionId,
    /// Its one channel.
    pub channel: ChannelId,
    /// What the broker has for it.
    pub effects: UnboundedReceiver<Effect>,
}

/// Who a connection inside this process is, for permissions and for people.
#[derive(Clone, Copy, Debug)]
pub struct InternalClient<'a> {
    /// With whose permissions.
    pub user: &'a str,
    /// In which virtual host.
    pub vhost: &'a str,
    /// The address to show for it.
    pub local: &'a str,
    /// What it is for.
    pub name: &'a str,
    /// The protocol that its own clients speak.
    pub protocol: &'static str,
}

//! Connections of the broker that have no socket of ours: other fronts' own clients.

use quelea_broker::{Broker, ConnectionId, Effect};
use quelea_model::Timestamp;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::core::Core;

/// Where effects for connections without a socket go. What waits there is bounded by the consumers'
/// prefetch and the connection's output budget, as for any client.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    effects: FxHashMap<ConnectionId, UnboundedSender<Effect>>,
}

impl Attached {
    /// Hands an effect over, if the connection is one of these. Whoever has gone away without
    /// detaching is disconnected: what it had goes back to its queues.
    pub(crate) fn effect(
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

impl Core {
    /// From now on the broker's effects for `connection` go to `effects`, until [`Core::detach`].
    pub fn attach(&mut self, connection: ConnectionId, effects: UnboundedSender<Effect>) {
        self.attached.effects.insert(connection, effects);
    }

    /// Ends that, and closes the connection.
    pub fn detach(&mut self, connection: ConnectionId) {
        self.attached.effects.remove(&connection);
        let now = self.now();
        self.broker.close_connection(now, connection);
    }
}

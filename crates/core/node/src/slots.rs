//! From the broker's number of a connection to its slot among those with a socket.

use quelea_broker::ConnectionId;

/// A table by the low half of the connection's number, which the broker keeps dense.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots {
    slots: Vec<Option<(ConnectionId, usize)>>,
}

impl ConnectionSlots {
    pub(crate) fn insert(&mut self, connection: ConnectionId, slot: usize) {
        let index = index(connection);
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some((connection, slot));
    }

    /// Forgets a connection, unless its place was given to another since.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        if let Some(entry) = self.slots.get_mut(index(connection))
            && entry.is_some_and(|(id, _)| id == connection)
        {
            *entry = None;
        }
    }

    #[inline]
    pub(crate) fn slot(&self, connection: ConnectionId) -> Option<usize> {
        match self.slots.get(index(connection)) {
            Some(Some((id, slot))) if *id == connection => Some(*slot),
            _ => None,
        }
    }
}

fn index(connection: ConnectionId) -> usize {
    connection.as_u64() as u32 as usize
}

//! Queues that clients have made by using them: how many one connection and one address may have at a time. Each of
//! them costs a relay, which is a process.

use std::collections::BTreeMap;

use crate::directory::{Address, Peer};

/// What may be made on first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstUseLimits {
    /// Queues that one connection may have made, of those that there are.
    pub per_connection_max: usize,
    /// The same of an address.
    pub per_address_max: usize,
    /// How long a queue lives that nobody uses; 0: for ever.
    pub unused_ms_max: u64,
}

impl Default for FirstUseLimits {
    fn default() -> Self {
        Self { per_connection_max: usize::MAX, per_address_max: usize::MAX, unused_ms_max: 0 }
    }
}

/// Who has made which of the queues that there are.
#[derive(Default)]
pub(super) struct FirstUses {
    makers: BTreeMap<String, (Peer, Address)>,
    by_connection: BTreeMap<Peer, usize>,
    by_address: BTreeMap<Address, usize>,
}

impl FirstUses {
    /// Returns why this connection may make no queue more, if it may not.
    pub(super) fn refusal(
        &self,
        peer: Peer,
        address: Address,
        limits: &FirstUseLimits,
    ) -> Option<String> {
        let made = self.by_connection.get(&peer).copied().unwrap_or_default();
        if made >= limits.per_connection_max {
            return Some(format!(
                "a connection may make {} queues by using them, this one has made {made}",
                limits.per_connection_max
            ));
        }
        let made = self.by_address.get(&address).copied().unwrap_or_default();
        (made >= limits.per_address_max).then(|| {
            format!(
                "an address may make {} queues by using them, this one has made {made}",
                limits.per_address_max
            )
        })
    }

    pub(super) fn made(&mut self, queue: &str, peer: Peer, address: Address) {
        self.forget(queue);
        self.makers.insert(queue.to_owned(), (peer, address));
        *self.by_connection.entry(peer).or_default() += 1;
        *self.by_address.entry(address).or_default() += 1;
    }

    /// The queue is no more, or not this directory's, or was defined since.
    pub(super) fn forget(&mut self, queue: &str) {
        let Some((peer, address)) = self.makers.remove(queue) else { return };
        decrement(&mut self.by_connection, &peer);
        decrement(&mut self.by_address, &address);
    }
}

fn decrement<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

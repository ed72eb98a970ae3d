//! Routes that were found, kept until the router changes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quelea_model::limits::{ROUTE_CACHE_BYTES_MAX, ROUTE_CACHE_ENTRIES_MAX};
use quelea_model::{QueueId, same_text};
use rustc_hash::{FxHashMap, FxHasher};

use super::exchange::targets::ExchangeKey;

/// Where a message goes.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The exchange that it was published to, while the router's epoch is what it was.
    pub(crate) exchange: ExchangeKey,
    /// The queues, each once, in ascending order. Shared with the route cache.
    pub(crate) queues: Arc<[QueueId]>,
}

/// Routes by exchange and routing key, of one epoch of the router. A hit allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct RouteCache {
    epoch: u64,
    bytes: usize,
    /// By a hash of exchange and key. Two pairs with one hash displace each other, which costs time
    /// and nothing else: a hit compares the texts.
    entries: FxHashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    exchange: Box<str>,
    key: Box<str>,
    route: Route,
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.exchange.len()
            + self.key.len()
            + size_of_val::<[QueueId]>(&self.route.queues)
    }
}

impl RouteCache {
    /// Returns the route that was found in this very epoch.
    pub(crate) fn get(&self, epoch: u64, exchange: &str, key: &str) -> Option<&Route> {
        if self.epoch != epoch {
            return None;
        }
        let entry = self.entries.get(&hash(exchange, key))?;
        (same_text(&entry.exchange, exchange) && same_text(&entry.key, key)).then_some(&entry.route)
    }

    /// Keeps a route. At a limit, or in a new epoch, all older ones go first.
    pub(crate) fn put(&mut self, epoch: u64, exchange: &str, key: &str, route: Route) {
        let entry = Entry { exchange: Box::from(exchange), key: Box::from(key), route };
        let bytes = entry.bytes();
        let full = self.entries.len() >= ROUTE_CACHE_ENTRIES_MAX
            || self.bytes + bytes > ROUTE_CACHE_BYTES_MAX;
        if full || self.epoch != epoch {
            self.entries.clear();
            self.bytes = 0;
            self.epoch = epoch;
        }
        if bytes > ROUTE_CACHE_BYTES_MAX {
            return;
        }
        self.bytes += bytes;
        if let Some(displaced) = self.entries.insert(hash(exchange, key), entry) {
            self.bytes -= displaced.bytes();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn hash(exchange: &str, key: &str) -> u64 {
    let mut hasher = FxHasher::default();
    exchange.hash(&mut hasher);
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(queues: &[u32]) -> Route {
        let exchange = ExchangeKey(0);
        Route { exchange, queues: queues.iter().map(|id| QueueId(*id)).collect() }
    }

    #[test]
    fn a_route_is_kept_until_the_epoch_moves() {
        let mut cache = RouteCache::default();
        cache.put(1, "x", "k", route(&[1]));
        assert_eq!(&cache.get(1, "x", "k").unwrap().queues[..], [QueueId(1)]);
        assert!(cache.get(1, "xk", "").is_none());
        assert!(cache.get(2, "x", "k").is_none());
        cache.put(2, "x", "other", route(&[2]));
        assert!(cache.get(2, "x", "k").is_none());
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn entries_and_bytes_stay_below_their_limits() {
        let mut cache = RouteCache::default();
        for n in 0..ROUTE_CACHE_ENTRIES_MAX + 10 {
            cache.put(0, "x", &n.to_string(), route(&[1]));
        }
        assert_eq!(cache.len(), 10);
        let wide = route(&(0..100_000).collect::<Vec<_>>());
        for n in 0..1_000 {
            cache.put(0, "x", &n.to_string(), wide.clone());
            assert!(cache.bytes <= ROUTE_CACHE_BYTES_MAX);
        }
        let same: usize = cache.entries.values().map(Entry::bytes).sum();
        assert_eq!(cache.bytes, same);
        cache.put(0, "x", "too wide", route(&vec![1; ROUTE_CACHE_BYTES_MAX]));
        assert_eq!(cache.len(), 0);
    }
}

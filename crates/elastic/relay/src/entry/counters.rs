//! What the entries of a process count, as metrics by queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quelea_elastic_core::relay::Relay;

/// One entry's counts. They are its thread's; whoever shows them reads.
#[derive(Debug, Default)]
pub struct EntryCounters {
    /// PUBs that are connected.
    pub(super) producers: AtomicU64,
    /// Messages of PUBs that were given to the queue.
    pub(super) messages_in: AtomicU64,
    /// Bytes of these.
    pub(super) bytes_in: AtomicU64,
    /// Messages of PUBs that no relay has acknowledged when their producer ended.
    pub(super) lost_in: AtomicU64,
    /// Connections that were turned away because there were too many, of PUBs or of all.
    pub(super) turned_away: Arc<AtomicU64>,
    /// Messages that a relay did not have for us: the entry was too slow, or a relay died with them.
    pub(super) lost_out: AtomicU64,
    listeners: AtomicU64,
    messages_out: AtomicU64,
    bytes_out: AtomicU64,
    dropped: AtomicU64,
    waiting_bytes: AtomicU64,
}

/// One number for whoever shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryCount {
    /// As it is called in `/metrics`, without the prefix.
    pub name: &'static str,
    /// For people.
    pub help: &'static str,
    /// It only grows.
    pub grows: bool,
    /// Now.
    pub value: u64,
}

impl EntryCounters {
    pub(super) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    /// What the relay core behind the SUBs has counted.
    pub(super) fn take_over(&self, relay: &Relay) {
        let counted = relay.counters();
        for (counter, value) in [
            (&self.listeners, relay.clients().1 as u64),
            (&self.messages_out, counted.messages_out),
            (&self.bytes_out, counted.bytes_out),
            (&self.dropped, counted.dropped()),
            (&self.waiting_bytes, relay.queued_bytes()),
        ] {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// Returns all counters.
    #[must_use]
    pub fn all(&self) -> [EntryCount; 11] {
        let count = |name, help, grows, counter: &AtomicU64| {
            let value = counter.load(Ordering::Relaxed);
            EntryCount { name, help, grows, value }
        };
        [
            count("producers", "PUBs at the entry", false, &self.producers),
            count("listeners", "SUBs at the entry", false, &self.listeners),
            count("waiting_bytes", "What waits for SUBs", false, &self.waiting_bytes),
            count("messages_in", "Messages of PUBs given to the queue", true, &self.messages_in),
            count("bytes_in", "Bytes of these", true, &self.bytes_in),
            count("lost_in", "Messages of PUBs that no relay acknowledged", true, &self.lost_in),
            count("turned_away", "Connections above the limit", true, &self.turned_away),
            count("messages_out", "Deliveries to SUBs", true, &self.messages_out),
            count("bytes_out", "Bytes of these", true, &self.bytes_out),
            count("dropped", "Deliveries that SUBs were too slow for", true, &self.dropped),
            count("lost_out", "Messages that relays did not have for SUBs", true, &self.lost_out),
        ]
    }
}

//! A broker as tests start it: over the store in memory, or over the log on a fake disk.

use std::any::Any;

use quelea_broker::{Broker, BrokerConfig};
use quelea_model::Timestamp;
use quelea_store::fake_disk::FakeDisk;
use quelea_store::{LogStore, MemStore, Options, Recovered, Store};

/// A store, and what a start finds in it.
pub type OpenedStore = (Box<dyn Store>, Recovered);

/// Opens the store in memory, as it is.
#[must_use]
pub fn open_memory(store: MemStore) -> OpenedStore {
    let recovered = store.recover();
    (Box::new(store), recovered)
}

/// Opens the log on this disk, in segments of so many bytes.
///
/// # Panics
/// If it does not open.
#[must_use]
pub fn open_log(disk: &FakeDisk, segment_bytes: u32, now: Timestamp) -> OpenedStore {
    let options = Options { segment_bytes, ..Options::default() };
    let (store, recovered) = LogStore::open(disk, options, now).expect("a log that opens");
    (Box::new(store), recovered)
}

/// Starts a broker over a store; `guest` is there.
///
/// # Panics
/// If what was recovered cannot be.
#[must_use]
pub fn start(config: BrokerConfig, (store, recovered): OpenedStore, now: Timestamp) -> Broker {
    let mut broker = Broker::new(config, store, recovered, 7, now).expect("what the store kept");
    broker.bootstrap("a hash");
    broker
}

/// Returns the broker's store in memory.
///
/// # Panics
/// If it stands on a log.
pub fn memory_of(broker: &mut Broker) -> &mut MemStore {
    let store: &mut dyn Any = broker.store_mut();
    store.downcast_mut().expect("the broker has no log")
}

//! The broker: everything that one shard owns, and how it is driven.

use quelea_model::Timestamp;
use quelea_store::{Recovered, Store};

use crate::config::BrokerConfig;
use crate::error::RecoveryError;

/// All virtual hosts, queues, connections and channels of one shard.
pub struct Broker {
    config: BrokerConfig,
    store: Box<dyn Store>,
}

impl Broker {
    /// A broker over what the store has recovered.
    ///
    /// `seed` feeds the generator of names; give a different one to each run.
    ///
    /// # Errors
    /// [`RecoveryError`] if the stored topology does not decode or is inconsistent.
    pub fn new(
        config: BrokerConfig,
        store: Box<dyn Store>,
        _recovered: Recovered,
        _seed: u64,
        _now: Timestamp,
    ) -> Result<Self, RecoveryError> {
        Ok(Self { config, store })
    }

    /// Creates vhost `/` and user `guest` (administrator, all permissions) if the topology is
    /// empty; gives whether it did.
    ///
    /// `guest_password_hash` is a PHC string.
    pub fn bootstrap(&mut self, _guest_password_hash: &str) -> bool {
        false
    }
}

//! The configuration of a relay process.

use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_core::relay::limits::CONNECTIONS_DEFAULT;
use quelea_elastic_core::relay::{RelayConfig, default_settings, limits};
use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::RelaySettings;
use quelea_elastic_proto::limits::{KEY_BYTES_MAX, QUEUE_NAME_BYTES_MAX};

use crate::config_error::ConfigError;
use crate::spill::SpillConfig;
use crate::zmtp::ZmtpConfig;

/// The configuration of a relay process; the fields are those of `quelea relay`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The queue that it serves.
    pub queue: String,
    /// `HOST:PORT` of the native protocol; port 0 takes a free one.
    pub listen: String,
    /// `HOST:PORT` that is announced to clients, if it is not where it listens.
    pub advertise: Option<String>,
    /// Clients must have this key; empty if none is asked for.
    pub key: Bytes,
    /// Most connections.
    pub connections_max: usize,
    /// Of a relay without a directory, or until that says otherwise.
    pub settings: RelaySettings,
    /// The directory to register at; a relay without one stands alone.
    pub directory: Option<Directory>,
    /// The edge for ZeroMQ's sockets, if it is on.
    pub zmtp: Option<ZmtpConfig>,
    /// Where listeners' messages go at the policy Spill; without it the policy is refused.
    pub spill: Option<SpillConfig>,
    /// Memory that the process may use, bytes; 0: the limit of its control group, else all that the machine has.
    pub memory_bytes_max: u64,
    /// Bytes a second that its host's network carries in each direction; 0 if nobody knows.
    pub network_bytes_per_s_max: u64,
    /// How long a stop by signal waits for clients to go and rings to empty.
    pub drain: Duration,
}

/// Where a relay registers, and as what.
#[derive(Clone, Debug)]
pub struct Directory {
    /// `HOST:PORT` of the directories, any of which will do.
    pub addresses: Vec<String>,
    /// The relay's number.
    pub relay: RelayId,
    /// The provider's request that started it, and behind `#` its token, if the provider gave it one.
    pub request: String,
    /// Without a directory and without a client for so long, it ends.
    pub orphan_timeout: Duration,
}

impl Config {
    /// Returns the configuration of a relay that stands alone, on a free port of loopback.
    #[must_use]
    pub fn standalone(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            listen: "127.0.0.1:0".to_owned(),
            advertise: None,
            key: Bytes::new(),
            connections_max: CONNECTIONS_DEFAULT,
            settings: default_settings(),
            directory: None,
            zmtp: None,
            spill: None,
            memory_bytes_max: 0,
            network_bytes_per_s_max: 0,
            drain: Duration::from_secs(10),
        }
    }

    /// Checks all fields.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, fault: String| Err(ConfigError { field, fault });
        if self.queue.is_empty() || self.queue.len() > QUEUE_NAME_BYTES_MAX {
            let bytes = self.queue.len();
            return wrong(
                "queue",
                format!("a name has 1 to {QUEUE_NAME_BYTES_MAX} bytes, this one {bytes}"),
            );
        }
        if self.key.len() > KEY_BYTES_MAX {
            return wrong("key", format!("{} bytes are more than {KEY_BYTES_MAX}", self.key.len()));
        }
        if self.settings.ring_bytes_max < limits::RING_BYTES_MIN {
            let (least, value) = (limits::RING_BYTES_MIN, self.settings.ring_bytes_max);
            return wrong("ring_bytes_max", format!("{value} is less than {least}"));
        }
        if self.connections_max == 0 {
            return wrong("connections_max", "0 would let nobody in".to_owned());
        }
        match &self.directory {
            Some(directory) if directory.addresses.is_empty() => {
                wrong("directory", "no address is given".to_owned())
            }
            Some(directory) if directory.relay.0 == 0 => {
                wrong("relay_id", "a registered relay's number is not 0".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn relay(&self) -> RelayConfig {
        RelayConfig {
            queue: self.queue.clone(),
            relay: self.directory.as_ref().map_or(RelayId(0), |directory| directory.relay),
            key: self.key.clone(),
            connections_max: self.connections_max,
            settings: self.settings.clone(),
        }
    }
}

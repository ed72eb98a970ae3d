//! The entry: from directories' addresses to producers and listeners.

use std::sync::Arc;

use bytes::Bytes;
use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::limits::{ADDRESS_BYTES_MAX, QUEUE_NAME_BYTES_MAX};
use quelea_elastic_proto::session::{ListenerConfig, ProducerConfig};

use crate::Error;
use crate::listener::Listener;
use crate::options::{Options, invalid};
use crate::producer::Producer;
use crate::site::Site;

/// Knows the directories of a site. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    site: Arc<Site>,
}

impl Client {
    /// Returns a client of the site with these directories (`host:port`; any of them will do).
    /// Connections are made when a queue is opened.
    ///
    /// # Errors
    /// If there is no address, or one or an option is none: [`Error::Invalid`] names it.
    pub fn connect<A: Into<String>>(
        directories: impl IntoIterator<Item = A>,
        options: Options,
    ) -> Result<Self, Error> {
        let directories: Vec<String> = directories.into_iter().map(Into::into).collect();
        if directories.is_empty() {
            return Err(Error::NoDirectory);
        }
        directories.iter().try_for_each(|address| check_address(address))?;
        options.check()?;
        Ok(Self { site: Arc::new(Site { directories, options }) })
    }

    /// Returns a producer of the queue, which is made if it is unknown. Waits until there is a
    /// relay.
    ///
    /// # Errors
    /// If the name is none, the directory refuses us for good, or it takes longer than
    /// [`Options::open_timeout`].
    pub async fn producer(&self, queue: impl Into<String>) -> Result<Producer, Error> {
        let options = &self.site.options;
        let config = ProducerConfig {
            queue: queue_name(queue.into())?,
            producer: identity()?,
            window_bytes: options.window_bytes,
            expected_bytes_per_s: options.expected_bytes_per_s,
        };
        let producer = Producer::start(Arc::clone(&self.site), config);
        producer.attached(options.open_timeout).await?;
        Ok(producer)
    }

    /// Returns a listener of the queue, which is made if it is unknown, for messages whose first
    /// part begins with one of the prefixes. Waits until it is attached to all relays.
    ///
    /// # Errors
    /// If the name is none, a prefix is too long, the directory or a relay refuses us for good, or it
    /// takes longer than [`Options::open_timeout`].
    pub async fn listener<P: AsRef<[u8]>>(
        &self,
        queue: impl Into<String>,
        prefixes: impl IntoIterator<Item = P>,
    ) -> Result<Listener, Error> {
        let prefixes = prefixes.into_iter();
        let config = ListenerConfig {
            queue: queue_name(queue.into())?,
            listener: identity()?,
            slow: self.site.options.slow,
            acknowledge_by_hand: self.site.options.acknowledge_by_hand,
            prefixes: prefixes.map(|prefix| Bytes::copy_from_slice(prefix.as_ref())).collect(),
        };
        let listener = Listener::start(Arc::clone(&self.site), config)?;
        listener.attached(self.site.options.open_timeout).await?;
        Ok(listener)
    }
}

fn check_address(address: &str) -> Result<(), Error> {
    let wrong = |reason: String| Err(invalid("directory", reason));
    if address.len() > ADDRESS_BYTES_MAX {
        let value = address.len();
        return wrong(format!("{value} bytes are more than the limit of {ADDRESS_BYTES_MAX}"));
    }
    let parts = address.rsplit_once(':');
    match parts.map(|(host, port)| (host.is_empty(), port.parse::<u16>())) {
        Some((false, Ok(1..))) => Ok(()),
        _ => wrong(format!("{address:?} is not HOST:PORT with a port from 1 to 65535")),
    }
}

fn queue_name(name: String) -> Result<String, Error> {
    match name.len() {
        1..=QUEUE_NAME_BYTES_MAX => Ok(name),
        bytes => {
            let limit = QUEUE_NAME_BYTES_MAX;
            Err(invalid("queue", format!("a name has from 1 to {limit} bytes, this one {bytes}")))
        }
    }
}

fn identity() -> Result<ClientId, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(ClientId(u128::from_le_bytes(bytes)))
}

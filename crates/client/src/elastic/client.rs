//! The entry: from directories' addresses to producers and listeners.

use std::sync::Arc;

use bytes::Bytes;
use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::session::{ListenerConfig, ProducerConfig};

use super::Error;
use super::listener::Listener;
use super::options::Options;
use super::producer::Producer;

/// Knows the directories of a site. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    site: Arc<Site>,
}

/// Where the directories are, and who we are to them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) directories: Vec<String>,
    pub(super) options: Options,
}

impl Client {
    /// A client of the site with these directories (`host:port`; any of them will do). Connections are
    /// made when a queue is opened.
    ///
    /// # Errors
    /// If there is no address.
    pub fn connect<A: Into<String>>(
        directories: impl IntoIterator<Item = A>,
        options: Options,
    ) -> Result<Self, Error> {
        let directories: Vec<String> = directories.into_iter().map(Into::into).collect();
        if directories.is_empty() {
            return Err(Error::NoDirectory);
        }
        Ok(Self { site: Arc::new(Site { directories, options }) })
    }

    /// A producer of the queue, which is made if it is unknown. Waits until there is a relay.
    ///
    /// # Errors
    /// If the directory refuses us for good.
    pub async fn producer(&self, queue: impl Into<String>) -> Result<Producer, Error> {
        let options = &self.site.options;
        let config = ProducerConfig {
            queue: queue.into(),
            producer: identity()?,
            window_bytes: options.window_bytes,
            expected_bytes_per_s: options.expected_bytes_per_s,
        };
        let producer = Producer::start(Arc::clone(&self.site), config);
        producer.attached().await?;
        Ok(producer)
    }

    /// A listener of the queue, which is made if it is unknown, for messages whose first part begins
    /// with one of the prefixes. Waits until it is attached to all relays.
    ///
    /// # Errors
    /// If a prefix is too long, or the directory refuses us for good.
    pub async fn listener<P: AsRef<[u8]>>(
        &self,
        queue: impl Into<String>,
        prefixes: impl IntoIterator<Item = P>,
    ) -> Result<Listener, Error> {
        let prefixes = prefixes.into_iter();
        let config = ListenerConfig {
            queue: queue.into(),
            listener: identity()?,
            slow: self.site.options.slow,
            acknowledge_by_hand: self.site.options.acknowledge_by_hand,
            prefixes: prefixes.map(|prefix| Bytes::copy_from_slice(prefix.as_ref())).collect(),
        };
        let listener = Listener::start(Arc::clone(&self.site), config)?;
        listener.attached().await?;
        Ok(listener)
    }
}

fn identity() -> Result<ClientId, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(ClientId(u128::from_le_bytes(bytes)))
}

//! The bridges between elastic queues and the broker, as `serve` starts and stops them.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use quelea_elastic_bridge::{
    BridgeCounters, BridgeFront, BridgeSettings, BridgeStartError, DeliverySettings, FeedSettings,
};
use quelea_elastic_proto::limits::RELAYS_MAX;
use quelea_net::{ListenError, SignInFailures};
use quelea_node::Node;

use super::elastic::{self, ElasticDirectory};
use crate::config::{Bridge, BridgeDelivery, BridgeFeed, Config};
use crate::key_file::KeyFileError;

/// The running bridges.
pub(crate) struct ElasticBridge {
    front: BridgeFront,
    counters: Arc<BridgeCounters>,
}

/// Why they do not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    #[error("bridge.keep_listen: {0}")]
    Listen(#[from] ListenError),
    #[error("bridge.keep_listen: {0}")]
    Listener(std::io::Error),
    #[error(
        "bridge.keep_advertise is empty: relays cannot reach bridge.keep_listen = {0:?}, which is \
         every address of this machine"
    )]
    EveryAddress(String),
    #[error("elastic.key_file: {0}")]
    Key(#[from] KeyFileError),
    #[error("{0} needs a directory: bridge.directories and elastic.listen are both empty")]
    NoDirectory(&'static str),
    #[error("bridge.feed.through = {through:?} of virtual host {vhost:?} is in more than one feed")]
    Through { through: String, vhost: String },
    #[error(transparent)]
    Start(#[from] BridgeStartError),
}

impl BridgeError {
    /// Returns whether the next start fails too, until the configuration is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        !matches!(self, Self::Listen(_) | Self::Listener(_) | Self::Start(_))
    }
}

/// Their settings, which are as they have to be.
pub(crate) struct Checked(BridgeSettings);

/// What has to be there before the log is opened: an address that is taken shows early.
pub(crate) struct Prepared {
    settings: BridgeSettings,
    /// The address that the directory of this process sends to relays; empty if there is no keeper.
    keeper: String,
}

/// Looks at the settings.
pub(crate) fn check(config: &Config) -> Result<Checked, BridgeError> {
    let bridge = &config.bridge;
    let feeds: Vec<_> = bridge.feed.iter().map(feed).collect();
    let deliveries: Vec<_> = bridge.delivery.iter().map(delivery).collect();
    for (index, feed) in feeds.iter().enumerate() {
        let same =
            |other: &FeedSettings| other.vhost == feed.vhost && other.through == feed.through;
        if feeds[..index].iter().any(same) {
            let (through, vhost) = (feed.through.to_string(), feed.vhost.to_string());
            return Err(BridgeError::Through { through, vhost });
        }
    }
    if bridge.directories.is_empty() && config.elastic.listen.is_empty() {
        let key = [("bridge.feed", feeds.len()), ("bridge.delivery", deliveries.len())];
        if let Some((key, _)) = key.into_iter().find(|(_, count)| *count > 0) {
            return Err(BridgeError::NoDirectory(key));
        }
    }
    if bridge.keep_advertise.is_empty()
        && !config.elastic.listen.is_empty()
        && config.has_own_keeper()
        && quelea_net::is_every_address(&bridge.keep_listen)
    {
        return Err(BridgeError::EveryAddress(bridge.keep_listen.clone()));
    }
    Ok(Checked(BridgeSettings {
        keep: None,
        keep_connections_max: RELAYS_MAX,
        failures: SignInFailures::default(),
        user: bridge.user.as_str().into(),
        loopback_only: config.access.loopback_users.contains(&bridge.user),
        vhost: bridge.vhost.as_str().into(),
        key: elastic::key(&config.elastic)?.into(),
        directories: bridge.directories.clone(),
        body_bytes_max: usize::try_from(config.limits.message_bytes_max).unwrap_or(usize::MAX),
        feeds,
        deliveries,
    }))
}

/// Returns whether what is to be kept is brought somewhere.
pub(crate) fn has_keeper(config: &Config) -> bool {
    !config.bridge.keep_advertise.is_empty() || config.has_own_keeper()
}

impl Checked {
    /// Listens for what is to be kept, if that is wanted.
    pub(crate) fn listen(self, config: &Config) -> Result<Prepared, BridgeError> {
        let Bridge { keep_listen, keep_advertise, .. } = &config.bridge;
        let Self(mut settings) = self;
        let mut keeper = keep_advertise.clone();
        if config.has_own_keeper() {
            let listener = quelea_net::listen(keep_listen)?;
            if keeper.is_empty() {
                keeper = listener.local_addr().map_err(BridgeError::Listener)?.to_string();
            }
            settings.keep = Some(listener);
        }
        Ok(Prepared { settings, keeper })
    }
}

fn feed(feed: &BridgeFeed) -> FeedSettings {
    FeedSettings {
        vhost: feed.vhost.as_str().into(),
        exchange: feed.exchange.as_str().into(),
        binding_keys: feed.binding_keys.iter().map(|key| key.as_str().into()).collect(),
        through: feed.through.as_str().into(),
        queue: feed.queue.as_str().into(),
        prefetch: feed.prefetch,
    }
}

fn delivery(delivery: &BridgeDelivery) -> DeliverySettings {
    let routing_key = Some(delivery.routing_key.as_str()).filter(|key| !key.is_empty());
    DeliverySettings {
        queue: delivery.queue.as_str().into(),
        prefixes: delivery.prefixes.iter().map(|prefix| prefix.as_str().into()).collect(),
        vhost: delivery.vhost.as_str().into(),
        exchange: delivery.exchange.as_str().into(),
        routing_key: routing_key.map(Into::into),
    }
}

impl Prepared {
    /// Returns the address for relays; empty if nothing is kept.
    pub(crate) fn keeper(&self) -> String {
        self.keeper.clone()
    }

    /// Returns where what is kept comes to, if that is here.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.settings.keep.as_ref()?.local_addr().ok()
    }

    /// Begins, unless there is nothing to do.
    pub(crate) fn start(
        self,
        node: &Node,
        directory: Option<&ElasticDirectory>,
        keep_connections_max: usize,
    ) -> Result<Option<ElasticBridge>, BridgeError> {
        let mut settings = self.settings;
        settings.keep_connections_max = keep_connections_max;
        settings.failures = node.authenticator().failures().clone();
        if settings.keep.is_none() && settings.feeds.is_empty() && settings.deliveries.is_empty() {
            return Ok(None);
        }
        if settings.directories.is_empty() {
            settings.directories.extend(directory.map(ElasticDirectory::address));
        }
        let counters = Arc::<BridgeCounters>::default();
        let front = BridgeFront::start(node.handle(), settings, &counters)?;
        Ok(Some(ElasticBridge { front, counters }))
    }
}

impl ElasticBridge {
    /// Returns where relays bring what is to be kept.
    pub(crate) fn keep_address(&self) -> Option<String> {
        self.front.keep_address().as_ref().map(SocketAddr::to_string)
    }

    /// Returns what it counts, for the metrics page.
    pub(crate) fn collector(&self) -> Arc<dyn Collector> {
        Arc::clone(&self.counters) as Arc<dyn Collector>
    }

    /// Stops it, while the broker and the elastic queues can still take what it returns.
    pub(crate) async fn stop(self) {
        super::stop_on_thread("the elastic queues' bridge", move || self.front.stop()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let mut config = Config::default();
        config.elastic.listen = "127.0.0.1:0".to_owned();
        config
    }

    fn prepare(config: &Config) -> Result<Prepared, BridgeError> {
        check(config)?.listen(config)
    }

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = config();
        change(&mut config);
        prepare(&config).err().map_or_else(String::new, |error| error.to_string())
    }

    fn a_feed() -> BridgeFeed {
        BridgeFeed {
            exchange: "amq.topic".to_owned(),
            binding_keys: vec!["#".to_owned()],
            vhost: "/".to_owned(),
            through: "prices-feed".to_owned(),
            queue: "prices".to_owned(),
            prefetch: 10,
        }
    }

    fn a_delivery() -> BridgeDelivery {
        BridgeDelivery {
            queue: "prices".to_owned(),
            prefixes: vec![String::new()],
            vhost: "/".to_owned(),
            exchange: String::new(),
            routing_key: "orders".to_owned(),
        }
    }

    #[test]
    fn relays_learn_where_messages_are_kept() {
        let prepared = prepare(&config()).unwrap();
        let address = prepared.settings.keep.unwrap().local_addr().unwrap();
        assert_eq!(prepared.keeper, address.to_string());
        let mut elsewhere = config();
        elsewhere.bridge.keep_listen = String::new();
        elsewhere.bridge.keep_advertise = "10.0.0.7:5669".to_owned();
        let prepared = prepare(&elsewhere).unwrap();
        assert!(prepared.settings.keep.is_none());
        assert_eq!(prepared.keeper, "10.0.0.7:5669");
    }

    #[test]
    fn nothing_listens_that_nobody_could_find() {
        let prepared = prepare(&{
            let mut alone = config();
            alone.elastic.listen = String::new();
            alone
        });
        let prepared = prepared.unwrap();
        assert!(prepared.settings.keep.is_none());
        assert_eq!(prepared.keeper, "");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_key() {
        for (refusal, expected) in [
            (
                refusal(|config| config.bridge.keep_listen = "192.0.2.1:5669".to_owned()),
                "bridge.keep_listen: cannot listen on 192.0.2.1:5669: ",
            ),
            (
                refusal(|config| config.bridge.keep_listen = "0.0.0.0:0".to_owned()),
                "bridge.keep_advertise is empty: ",
            ),
            (
                refusal(|config| {
                    config.elastic.listen = String::new();
                    config.bridge.delivery.push(a_delivery());
                }),
                "bridge.delivery needs a directory: ",
            ),
            (
                refusal(|config| config.bridge.feed.extend([a_feed(), a_feed()])),
                "bridge.feed.through = \"prices-feed\" of virtual host \"/\" is in more than one feed",
            ),
        ] {
            assert!(refusal.starts_with(expected), "{refusal:?} does not begin with {expected:?}");
        }
        let both = |config: &mut Config| {
            config.bridge.feed.push(a_feed());
            config.bridge.delivery.push(a_delivery());
        };
        assert_eq!(refusal(both), "");
    }
}

//! CMQ's front of the broker, as `serve` starts and stops it.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quelea_cmq::PreSharedKey;
use quelea_cmq_front::{
    DatagramCounters, DatagramFront, DatagramSettings, DatagramStartError, ForwardSettings,
    KeyTemplateError, Mailboxes, MailboxesError, PeerError, Route,
};
use quelea_node::Node;

use crate::config::{Cmq, CmqForward, CmqRoute, Config};
use crate::key_file::{self, KeyFileError};

/// The running front.
pub(crate) struct CmqFront {
    front: DatagramFront,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CmqError {
    #[error("cmq.listen = {address:?}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("cmq.key_file: {0}")]
    Key(#[from] KeyFileError),
    #[error("cmq.routing_key: {0}")]
    DefaultKey(KeyTemplateError),
    #[error("cmq.route.mailboxes: {0}")]
    Mailboxes(#[from] MailboxesError),
    #[error("cmq.route.routing_key: {0}")]
    RoutingKey(KeyTemplateError),
    #[error("cmq.forward.to: {0}")]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Start(#[from] DatagramStartError),
}

impl CmqError {
    /// Returns whether the next start fails too, until the configuration is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        !matches!(self, Self::Listen { .. } | Self::Start(_))
    }
}

/// Its settings, which are as they have to be.
pub(crate) struct Checked(DatagramSettings);

/// What has to be there before the log is opened: an address that is taken shows early.
pub(crate) struct Prepared {
    socket: Option<UdpSocket>,
    settings: DatagramSettings,
}

/// Looks at the settings, unless neither a listener nor a forward is wanted.
pub(crate) fn check(config: &Config) -> Result<Option<Checked>, CmqError> {
    let cmq = &config.cmq;
    if cmq.listen.is_empty() && cmq.forward.is_empty() {
        return Ok(None);
    }
    settings(config).map(Checked).map(Some)
}

impl Checked {
    /// Takes the address, if there is one.
    pub(crate) fn listen(self, config: &Cmq) -> Result<Prepared, CmqError> {
        let address = Some(&config.listen).filter(|address| !address.is_empty());
        let bind = |address: &String| {
            let refuse = |source| CmqError::Listen { address: address.clone(), source };
            UdpSocket::bind(address.as_str()).map_err(refuse)
        };
        Ok(Prepared { socket: address.map(bind).transpose()?, settings: self.0 })
    }
}

fn settings(config: &Config) -> Result<DatagramSettings, CmqError> {
    let cmq = &config.cmq;
    let key = Some(&cmq.key_file).filter(|path| !path.is_empty());
    let key = key.map(|path| key_file::read(Path::new(path))).transpose()?;
    let others = Route {
        mailboxes: Mailboxes::ALL,
        vhost: cmq.vhost.as_str().into(),
        exchange: cmq.exchange.as_str().into(),
        routing_key: cmq.routing_key.parse().map_err(CmqError::DefaultKey)?,
        persistent: true,
    };
    Ok(DatagramSettings {
        user: cmq.user.as_str().into(),
        loopback_only: config.access.loopback_users.contains(&cmq.user),
        pre_shared_key: key.map(PreSharedKey),
        message_bytes_max: cmq.message_bytes_max,
        body_bytes_max: usize::try_from(config.limits.message_bytes_max).unwrap_or(usize::MAX),
        waiting_bytes_max: cmq.waiting_bytes_max,
        routes: cmq.route.iter().map(route).collect::<Result<_, _>>()?,
        others,
        forwards: cmq.forward.iter().map(forward).collect::<Result<_, _>>()?,
    })
}

fn route(route: &CmqRoute) -> Result<Route, CmqError> {
    Ok(Route {
        mailboxes: route.mailboxes.parse()?,
        vhost: route.vhost.as_str().into(),
        exchange: route.exchange.as_str().into(),
        routing_key: route.routing_key.parse().map_err(CmqError::RoutingKey)?,
        persistent: route.persistent,
    })
}

fn forward(forward: &CmqForward) -> Result<ForwardSettings, CmqError> {
    Ok(ForwardSettings {
        queue: forward.queue.as_str().into(),
        vhost: forward.vhost.as_str().into(),
        to: forward.to.parse()?,
        mode: forward.mode.into(),
        prefetch: forward.prefetch,
        timeout: Duration::from_millis(forward.timeout_ms),
    })
}

impl Prepared {
    /// Returns where it will listen, if it does.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.as_ref()?.local_addr().ok()
    }

    /// Serves the node's exchanges and queues.
    pub(crate) fn start(
        self,
        node: &Node,
        counters: &Arc<DatagramCounters>,
    ) -> Result<CmqFront, CmqError> {
        let Self { socket, settings } = self;
        Ok(CmqFront { front: DatagramFront::start(node.handle(), socket, settings, counters)? })
    }
}

impl CmqFront {
    /// Returns where it listens; a dash if it only forwards.
    pub(crate) fn address(&self) -> String {
        self.front.address().map_or_else(|| "-".to_owned(), |address| address.to_string())
    }

    /// Stops it, while the broker can still take what it returns.
    pub(crate) async fn stop(self) {
        super::stop_on_thread("CMQ's front", move || self.front.stop()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ForwardMode;

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        config.cmq.listen = "127.0.0.1:0".to_owned();
        change(&mut config);
        let listened = check(&config)
            .and_then(|checked| checked.map(|checked| checked.listen(&config.cmq)).transpose());
        listened.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn it_is_off_unless_asked_for() {
        assert!(check(&Config::default()).unwrap().is_none());
        assert_eq!(refusal(|_| {}), "");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_key() {
        let route = CmqRoute {
            mailboxes: "7".to_owned(),
            vhost: "/".to_owned(),
            exchange: String::new(),
            routing_key: "k".to_owned(),
            persistent: true,
        };
        let forward = CmqForward {
            queue: "q".to_owned(),
            vhost: "/".to_owned(),
            to: "h".to_owned(),
            mode: ForwardMode::Reliable,
            prefetch: 1,
            timeout_ms: 100,
        };
        let with_route = |change: fn(&mut CmqRoute)| {
            let mut route = route.clone();
            change(&mut route);
            refusal(|config| config.cmq.route.push(route))
        };
        let with_forward = |change: fn(&mut CmqForward)| {
            let mut forward = forward.clone();
            change(&mut forward);
            refusal(|config| config.cmq.forward.push(forward))
        };
        for (refusal, expected) in [
            (refusal(|config| config.cmq.listen = "192.0.2.1:4711".to_owned()), "cmq.listen = "),
            (refusal(|config| config.cmq.key_file = "/nowhere".to_owned()), "cmq.key_file: "),
            (refusal(|config| config.cmq.routing_key = "{".to_owned()), "cmq.routing_key: "),
            (with_route(|route| route.mailboxes = "x".to_owned()), "cmq.route.mailboxes: \"x\""),
            (with_route(|route| route.routing_key = "{".to_owned()), "cmq.route.routing_key: "),
            (with_forward(|forward| forward.to = ":1".to_owned()), "cmq.forward.to: \":1\""),
        ] {
            assert!(refusal.starts_with(expected), "{refusal:?} does not begin with {expected:?}");
        }
        assert_eq!(with_route(|_| {}), "");
        assert_eq!(with_forward(|_| {}), "");
    }
}

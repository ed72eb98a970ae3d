//! The relay's ZMTP edge: any ZeroMQ PUB or XPUB may send here, any SUB or XSUB may listen. Best effort
//! as ZeroMQ is, on this relay only; but what a slow listener does not get is counted, for each peer.
//!
//! Producers connect to one address, where the relay is an XSUB: it forwards to them what anybody
//! subscribes to, and withdraws it. Listeners connect to another one, where it is an XPUB. A peer is one
//! task (`producer.rs`, `listener.rs`) over one `wire.rs`.

mod accept;
mod config;
pub(crate) mod listener;
mod outbox;
mod producer;
pub(crate) mod wire;

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use quelea_elastic_proto::ClientId;
use quelea_elastic_zmtp::{Peer, Settings, SocketType};
use quelea_net::{ListenError, SignInFailures};

pub(crate) use self::accept::{Admission, accept};
pub use self::config::{
    ZMTP_HEARTBEAT_MS, ZmtpConfig, ZmtpMechanism, ZmtpSecurity, zmtp_heartbeat,
};
use crate::listener::listen;
use crate::node::SharedNode;

/// Where the edge listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZmtpAddresses {
    /// For PUB and XPUB sockets, if that side is on.
    pub producers: Option<SocketAddr>,
    /// For SUB and XSUB sockets, if that side is on.
    pub listeners: Option<SocketAddr>,
}

/// Listens on both sides, and serves whoever connects, up to so many at once. Within the relay's runtime.
///
/// # Errors
/// If an address cannot be had.
pub(crate) fn start(
    node: &SharedNode,
    config: &ZmtpConfig,
    connections_max: usize,
) -> Result<ZmtpAddresses, ListenError> {
    let mut addresses = ZmtpAddresses::default();
    let admission = Admission::new(connections_max, SignInFailures::default());
    let config = Rc::new(config.clone());
    if !config.producers.is_empty() {
        let socket = listen(&config.producers)?;
        addresses.producers = socket.local_addr().ok();
        let node = node.clone();
        let serve = move |wire, peer| producer::serve(node.clone(), wire, peer);
        let (config, admission) = (Rc::clone(&config), admission.clone());
        tokio::task::spawn_local(accept(socket, config, SocketType::Xsub, admission, serve));
    }
    if !config.listeners.is_empty() {
        let socket = listen(&config.listeners)?;
        addresses.listeners = socket.local_addr().ok();
        let node = node.clone();
        let serve = move |wire, peer| listener::serve(node.clone(), wire, peer);
        tokio::task::spawn_local(accept(socket, config, SocketType::Xpub, admission, serve));
    }
    Ok(addresses)
}

/// Returns what we are to a peer. An identity is for sockets that are answered. A producer gets no
/// promise that it will hear us: whom we do not read, we send nothing.
pub(crate) const fn settings(config: &ZmtpConfig, socket_type: SocketType) -> Settings {
    let mut heartbeat = config.heartbeat;
    if matches!(socket_type, SocketType::Xsub) {
        heartbeat.ttl_ms = 0;
    }
    Settings { socket_type, identity: Bytes::new(), heartbeat }
}

/// Returns a random number by which the queue's other clients know a peer.
pub(crate) fn client_id() -> ClientId {
    let mut bytes = [0; 16];
    config::fill(&mut bytes);
    ClientId(u128::from_le_bytes(bytes))
}

/// Returns the name of a peer in a line of the log: its address, and who it proved to be.
pub(crate) fn name(address: SocketAddr, peer: &Peer) -> String {
    let who = match (&peer.user, &peer.key) {
        (Some(user), _) => format!(" user {user}"),
        (None, Some(key)) => format!(" key {key}"),
        (None, None) => String::new(),
    };
    let identity = String::from_utf8_lossy(&peer.identity);
    let identity = if identity.is_empty() { String::new() } else { format!(" {identity:?}") };
    format!("zmtp {} {address}{who}{identity}", peer.socket_type)
}

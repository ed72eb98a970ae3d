//! Where other front-ends reach this one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use scylla::client::session::Session;
use tokio::net::{UdpSocket, lookup_host};

use crate::database::connect_error::ConnectError;
use crate::database::settings::CassandraSettings;
use crate::fifo::PeerListener;

/// Listens where the settings say; else at the address from which Cassandra is reached, which others that reach it can
/// mostly reach, too.
pub(crate) async fn listen(
    settings: &CassandraSettings,
    session: &Session,
) -> Result<PeerListener, ConnectError> {
    let state = session.get_cluster_state();
    let cluster = state.get_nodes_info().iter().map(|node| node.address);
    let cluster: Vec<SocketAddr> =
        cluster.map(|address| SocketAddr::new(address.ip(), address.port())).collect();
    let address = match &settings.internal_listen {
        Some(address) => address.clone(),
        None => {
            let mut nodes = Vec::new();
            for node in &settings.nodes {
                nodes.extend(lookup_host(node).await.into_iter().flatten());
            }
            nodes.extend(&cluster);
            SocketAddr::new(local_address(&nodes).await, 0).to_string()
        }
    };
    let refused =
        |reason: String| ConnectError::InternalListen { address: address.clone(), reason };
    let listener =
        PeerListener::bind(&address).await.map_err(|error| refused(error.to_string()))?;
    let advertised = settings.internal_address.as_deref();
    check(listener.address, advertised).map_err(|reason| refused(reason.to_owned()))?;
    let is_alone = listener.address.ip().is_loopback() && advertised.is_none();
    if is_alone && cluster.iter().any(|node| !node.ip().is_loopback()) {
        tracing::warn!(address = %listener.address, "front-ends of other machines cannot reach this one's FIFO queues: cassandra.internal_listen or cassandra.internal_address should say where they can");
    }
    Ok(listener)
}

/// Checks that others may reach this front-end at the address that it announces.
fn check(listens_at: SocketAddr, advertised: Option<&str>) -> Result<(), &'static str> {
    let advertised = match advertised {
        Some(advertised) => advertised.parse().ok(),
        None => Some(listens_at),
    };
    match advertised {
        Some(advertised) if advertised.ip().is_unspecified() => Err(
            "no other front-end can call that address: cassandra.internal_address has to say where they reach this one",
        ),
        Some(advertised) if advertised.port() == 0 => {
            Err("cassandra.internal_address needs a port")
        }
        _ => Ok(()),
    }
}

/// Returns the address from which one of the nodes is reached; that of the machine itself only if
/// no node is elsewhere.
async fn local_address(nodes: &[SocketAddr]) -> IpAddr {
    let mut loopback = None;
    for to in nodes {
        match address_towards(*to).await {
            Ok(address) if address.is_loopback() => loopback = loopback.or(Some(address)),
            Ok(address) => return address,
            Err(_) => {}
        }
    }
    loopback.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Returns this machine's address from which `to` is reached. Nothing is sent: the system only
/// chooses an address.
async fn address_towards(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(to).await?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    fn is_taken(listens_at: &str, advertised: Option<&str>) -> bool {
        super::check(listens_at.parse().unwrap(), advertised).is_ok()
    }

    #[test]
    fn what_others_are_told_is_an_address() {
        assert!(is_taken("127.0.0.1:1", None) && is_taken("[::1]:1", None));
        assert!(!is_taken("0.0.0.0:1", None) && !is_taken("[::]:1", None));
        assert!(
            is_taken("0.0.0.0:1", Some("10.0.0.1:1")) && is_taken("0.0.0.0:1", Some("a.example:1"))
        );
        assert!(!is_taken("127.0.0.1:1", Some("0.0.0.0:1")));
        assert!(!is_taken("127.0.0.1:1", Some("10.0.0.1:0")));
    }
}

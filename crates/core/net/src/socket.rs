//! When the other end of a TCP socket counts as gone, although it has not said so.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use quelea_model::limits::STALLED_WRITE_MS_MAX;
use rustix::net::sockopt;

/// After so long without a byte either way the kernel asks whether the peer is still there.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// It asks again after this.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// And gives up after so many questions without an answer.
const KEEPALIVE_PROBES: u32 = 4;

/// How long a peer may take none of what is written to it, whether it is gone or does not read.
pub const STALLED_WRITE_MAX: Duration = Duration::from_millis(STALLED_WRITE_MS_MAX);

/// Sets up an accepted or connected socket: what is written leaves at once, and a peer that is dead, or takes
/// nothing any more, breaks it.
///
/// # Errors
/// If the socket is broken already, or is not one of TCP.
pub fn prepare_socket(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    let stalled_ms = u32::try_from(STALLED_WRITE_MAX.as_millis()).unwrap_or(u32::MAX);
    // Counts what is not acknowledged and what a closed window holds back (tcp(7)).
    sockopt::set_tcp_user_timeout(socket, stalled_ms)?;
    Ok(())
}

/// Allows a peer of this socket to take nothing for as long as it lives, since others wait for it
/// on purpose; whether it lives shows in a protocol's own heartbeat.
///
/// # Errors
/// As [`prepare_socket`].
pub fn allow_stalls(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_user_timeout(socket, 0)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_socket_notices_a_dead_peer_and_one_that_takes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        prepare_socket(&socket).unwrap();
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), KEEPALIVE_IDLE);
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 120_000);
        assert!(socket.nodelay().unwrap());
        allow_stalls(&socket).unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 0);
    }
}

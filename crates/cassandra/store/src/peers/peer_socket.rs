//! By what front-ends notify each other, which `cassandra/front` does by a socket of CMQ.

use std::net::SocketAddr;
use std::pin::Pin;

/// A future of a socket.
pub type Receiving<'a> = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send + 'a>>;

/// Datagrams between front-ends of one cluster, which nobody else can make or read. Any of them may be lost.
pub trait PeerSocket: Send + Sync + 'static {
    /// Returns where the others reach it.
    fn address(&self) -> SocketAddr;

    /// Sends without waiting; what cannot be sent is lost.
    fn send(&self, to: SocketAddr, datagram: &[u8]);

    /// Returns a datagram that has arrived, if there is one.
    fn try_receive(&self) -> Option<Vec<u8>>;

    /// Returns the next datagram; `None`: the socket is closed.
    fn receive(&self) -> Receiving<'_>;
}

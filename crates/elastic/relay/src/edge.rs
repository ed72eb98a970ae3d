//! How an edge of another protocol takes part: each of its peers is a port of the relay. The edge's own
//! tasks do all I/O; here they give messages, take messages, and are woken.
//!
//! All on the relay's thread. Messages are their parts as ZMTP frames, the same bytes as on a ZMTP
//! connection. A peer that is dropped has left.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quelea_elastic_core::relay::Port;
use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::frame::{SlowPolicy, WireError};

use crate::edge_peer::{Changes, EdgePeer};
use crate::node::{Outlet, SharedNode};

/// A peer, as its edge's task holds it.
pub struct EdgePort {
    node: SharedNode,
    port: Port,
}

impl EdgePort {
    /// Connects a peer to the relay.
    ///
    /// # Errors
    /// If the relay has too many connections.
    pub fn open(node: &SharedNode, name: &str) -> Result<Self, WireError> {
        node.with(|state| {
            state.read_clock();
            let port = state.relay.connect_edge(name)?;
            let waker = Waker::noop().clone();
            let peer = EdgePeer { waker, follows: false, changes: Changes::default() };
            state.add(port, Outlet::Edge(peer));
            Ok(Self { node: node.clone(), port })
        })
    }

    /// It sends messages from now on; native listeners know it by this random number.
    pub fn produce(&self, producer: ClientId) {
        self.node.with(|node| {
            node.relay.edge_produces(self.port, producer);
            node.want_turn();
        });
    }

    /// Messages, each with all its parts.
    pub fn publish<'a>(&self, messages: impl Iterator<Item = &'a [u8]> + Clone) {
        self.node.with(|node| {
            node.read_clock();
            node.relay.edge_publish(self.port, messages);
            node.want_turn();
        });
    }

    /// Returns `Ready` when the peer's socket should be read: not too much of what it sent waits
    /// here.
    pub fn poll_may_publish(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.node.with(|node| {
            if node.relay.edge_may_publish(self.port) {
                return Poll::Ready(());
            }
            self.park(node, cx);
            Poll::Pending
        })
    }

    /// Lets the peer listen from now on, without subscriptions yet.
    ///
    /// # Errors
    /// If the policy cannot be had.
    pub fn listen(&self, id: ClientId, slow: Option<SlowPolicy>) -> Result<(), WireError> {
        self.node.with(|node| node.relay.edge_listens(self.port, id, slow))
    }

    /// Subscribes to one prefix more; the empty prefix is everything.
    ///
    /// # Errors
    /// If it is too long, or there are too many.
    pub fn subscribe(&self, prefix: &Bytes) -> Result<(), WireError> {
        self.node.with(|node| {
            node.want_turn();
            node.relay.edge_subscribes(self.port, prefix)
        })
    }

    /// Unsubscribes from one prefix.
    ///
    /// # Errors
    /// If the peer does not have it.
    pub fn unsubscribe(&self, prefix: &Bytes) -> Result<(), WireError> {
        self.node.with(|node| {
            node.want_turn();
            node.relay.edge_unsubscribes(self.port, prefix)
        })
    }

    /// Takes messages for the peer, each with all its parts, into `out`; ready when there is at
    /// least one, or the relay lets the peer go (then `out` stays empty). Takes some `bytes_max`
    /// bytes: call it when the socket has taken what was taken before.
    pub fn poll_take(
        &self,
        cx: &mut Context<'_>,
        bytes_max: usize,
        out: &mut Vec<Bytes>,
    ) -> Poll<()> {
        self.node.with(|node| {
            node.read_clock();
            node.relay.edge_take(self.port, bytes_max, out);
            if !out.is_empty() {
                // Producers may have room again.
                node.want_turn();
                return Poll::Ready(());
            }
            if node.relay.is_closing(self.port) {
                return Poll::Ready(());
            }
            self.park(node, cx);
            Poll::Pending
        })
    }

    /// Has what is subscribed to reported by [`EdgePort::poll_subscription`]: first all that is there
    /// now, then what changes.
    pub fn follow_subscriptions(&self) {
        self.node.with(|node| {
            // What is still to be reported to the others is in what this one begins with.
            node.announce_subscriptions();
            let there: Vec<Bytes> = node.relay.subscriptions().collect();
            if let Some(peer) = node.edge(self.port) {
                peer.follows = true;
                peer.changes = Changes(there.into_iter().map(|prefix| (prefix, true)).collect());
            }
        });
    }

    /// Polls for the next change: a prefix, and whether somebody subscribes to it now.
    pub fn poll_subscription(&self, cx: &mut Context<'_>) -> Poll<(Bytes, bool)> {
        self.node.with(|node| {
            if let Some(change) = node.edge(self.port).and_then(|peer| peer.changes.take()) {
                return Poll::Ready(change);
            }
            self.park(node, cx);
            Poll::Pending
        })
    }

    /// Returns `Ready` when the relay lets the peer go (too slow, or the relay stops).
    pub fn poll_closing(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.node.with(|node| {
            if node.relay.is_closing(self.port) {
                return Poll::Ready(());
            }
            self.park(node, cx);
            Poll::Pending
        })
    }

    /// Returns how many messages it did not get because it was too slow.
    pub fn dropped(&self) -> u64 {
        self.node.with(|node| node.relay.edge_dropped(self.port))
    }

    fn park(&self, node: &mut crate::node::Node, cx: &Context<'_>) {
        if let Some(peer) = node.edge(self.port)
            && !peer.waker.will_wake(cx.waker())
        {
            peer.waker = cx.waker().clone();
        }
    }
}

impl Drop for EdgePort {
    fn drop(&mut self) {
        self.node.with(|node| node.remove(self.port));
    }
}

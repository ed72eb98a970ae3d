//! A PUB or XPUB that sends to this relay: it is sent the subscriptions, and its messages go to the core.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use quelea_elastic_zmtp::{Event, Peer};

use super::wire::{End, Step, Wire};
use super::{client_id, name};
use crate::edge::EdgePort;
use crate::node::SharedNode;

/// Serves a producer until it is gone.
pub(crate) async fn serve(node: SharedNode, wire: Wire, peer: Peer) {
    let name = name(wire.address(), &peer);
    let port = match EdgePort::open(&node, &name) {
        Ok(port) => port,
        Err(error) => {
            tracing::warn!(peer = %name, reason = %error.text, "a ZMTP producer is turned away");
            return wire.close().await;
        }
    };
    tracing::debug!(peer = %name, "a ZMTP producer is here");
    port.produce(client_id());
    let mut producer = Producer { port, wire, batch: Vec::new(), messages: 0 };
    let end = producer.run().await;
    tracing::info!(peer = %name, messages = producer.messages, reason = %end, "a ZMTP producer has left");
    // It is no longer at the relay while it reads the rest.
    drop(producer.port);
    producer.wire.close().await;
}

struct Producer {
    port: EdgePort,
    wire: Wire,
    /// The messages of one read.
    batch: Vec<Bytes>,
    /// All that came.
    messages: u64,
}

impl Producer {
    async fn run(&mut self) -> End {
        self.port.follow_subscriptions();
        // What came with the end of the handshake.
        let mut step = Ok(Step::Read);
        loop {
            match step {
                Ok(Step::Read) => {
                    if let Err(end) = self.publish() {
                        return end;
                    }
                    // Whoever sends a lot lets the others come first, and the relay's turn.
                    tokio::task::yield_now().await;
                }
                Ok(Step::Written) => {}
                Err(end) => return end,
            }
            step = self.next_step().await;
        }
    }

    /// Waits for the socket, for room at the relay, and for subscriptions to send.
    async fn next_step(&mut self) -> Result<Step, End> {
        loop {
            let (port, wire) = (&self.port, &mut self.wire);
            let has_room = wire.has_room();
            let may_read = poll_fn(|cx| Poll::Ready(port.poll_may_publish(cx).is_ready())).await;
            // Whom we do not read is sent nothing: see `Wire::step`.
            let may_write = has_room && may_read;
            tokio::select! {
                biased;
                change = poll_fn(|cx| poll_change(port, may_write, cx)) => match change {
                    Some((prefix, on)) => wire.subscribe(&prefix, on),
                    None => return Err(End::Dismissed("the relay has let it go".to_owned())),
                },
                () = poll_fn(|cx| port.poll_may_publish(cx)), if !may_read => {}
                step = wire.step(may_read) => return step,
            }
        }
    }

    /// Passes to the core all whole messages that were read.
    fn publish(&mut self) -> Result<(), End> {
        let result = loop {
            match self.wire.event() {
                Ok(Some(Event::Message(message))) => self.batch.push(message),
                // An XSUB gets nothing else.
                Ok(Some(Event::Ready(_) | Event::Subscribe(_) | Event::Cancel(_))) => {}
                Ok(None) => break Ok(()),
                Err(end) => break Err(end),
            }
        };
        self.messages += self.batch.len() as u64;
        if !self.batch.is_empty() {
            self.port.publish(self.batch.iter().map(|message| &message[..]));
            self.batch.clear();
        }
        result
    }
}

/// Polls for the next change of subscriptions; `None` if the relay lets the peer go. A peer that
/// reads nothing, or is not read, gets it later.
fn poll_change(
    port: &EdgePort,
    may_write: bool,
    cx: &mut Context<'_>,
) -> Poll<Option<(Bytes, bool)>> {
    if port.poll_closing(cx).is_ready() {
        return Poll::Ready(None);
    }
    if may_write { port.poll_subscription(cx).map(Some) } else { Poll::Pending }
}

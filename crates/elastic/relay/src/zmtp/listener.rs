//! A SUB or XSUB that listens at this relay: its subscriptions go to the core, and it gets what matches.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_proto::frame::{ErrorCode, WireError};
use quelea_elastic_zmtp::{Event, Peer};
use tokio::time::sleep;

use super::wire::{End, Step, Wire};
use super::{client_id, name};
use crate::edge::EdgePort;
use crate::node::SharedNode;

/// Taken from the ring at once.
const TAKE_BYTES: usize = 64 << 10;
/// A listener whose socket takes nothing for so long is looked at for what it loses.
const STALLED: Duration = Duration::from_secs(1);

/// Serves a listener until it is gone.
pub(crate) async fn serve(node: SharedNode, wire: Wire, peer: Peer) {
    let name = name(wire.address(), &peer);
    let port = EdgePort::open(&node, &name).and_then(|port| {
        port.listen(client_id(), None)?;
        Ok(port)
    });
    let port = match port {
        Ok(port) => port,
        Err(error) => {
            tracing::warn!(peer = %name, reason = %error.text, "a ZMTP listener is turned away");
            return wire.close().await;
        }
    };
    tracing::debug!(peer = %name, "a ZMTP listener is here");
    let mut listener = Listener { port, wire, batch: Vec::new(), counts: Counts::default(), name };
    let end = listener.run().await;
    let Listener { port, wire, counts, name, .. } = listener;
    let Counts { messages, ignored, .. } = counts;
    tracing::info!(
        peer = %name, messages, dropped = port.dropped(), ignored, reason = %end,
        "a ZMTP listener has left"
    );
    // Its subscriptions are withdrawn now, not when it has read the rest.
    drop(port);
    wire.close().await;
}

#[derive(Debug, Default)]
struct Counts {
    /// Given to the socket.
    messages: u64,
    /// Messages and cancellations of the peer that mean nothing here.
    ignored: u64,
    /// Dropped, as far as the log knows.
    dropped: u64,
}

struct Listener {
    port: EdgePort,
    wire: Wire,
    /// Messages from the ring.
    batch: Vec<Bytes>,
    counts: Counts,
    name: String,
}

impl Listener {
    async fn run(&mut self) -> End {
        // What came with the end of the handshake.
        if let Err(end) = self.subscriptions() {
            return end;
        }
        loop {
            let (port, wire, batch) = (&self.port, &mut self.wire, &mut self.batch);
            let has_room = wire.has_room();
            // Without room this only waits for the relay to let it go.
            let take_bytes = if has_room { TAKE_BYTES } else { 0 };
            let outcome = tokio::select! {
                biased;
                step = wire.step(true) => step,
                () = poll_fn(|cx| port.poll_take(cx, take_bytes, batch)) => self.send(),
                () = sleep(STALLED), if !has_room => {
                    self.note_drops();
                    Ok(Step::Written)
                }
            };
            let outcome = match outcome {
                Ok(Step::Read) => self.subscriptions(),
                Ok(Step::Written) => Ok(()),
                Err(end) => Err(end),
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Passes on the messages that were taken, to be written; without any the relay lets the peer
    /// go.
    fn send(&mut self) -> Result<Step, End> {
        if self.batch.is_empty() {
            return Err(End::Dismissed(
                "the relay has let it go: it was too slow, or the relay stops".to_owned(),
            ));
        }
        self.counts.messages += self.batch.len() as u64;
        for message in self.batch.drain(..) {
            self.wire.send(&message);
        }
        self.note_drops();
        Ok(Step::Written)
    }

    /// One line when a peer begins to lose messages, and one whenever it has lost ten times as many.
    fn note_drops(&mut self) {
        let dropped = self.port.dropped();
        if dropped > self.counts.dropped.saturating_mul(10) {
            self.counts.dropped = dropped;
            tracing::warn!(peer = %self.name, dropped, "a ZMTP listener is too slow and loses messages");
        }
    }

    fn subscriptions(&mut self) -> Result<(), End> {
        while let Some(event) = self.wire.event()? {
            match event {
                Event::Subscribe(prefix) => self.port.subscribe(&prefix).map_err(refused)?,
                Event::Cancel(prefix) => match self.port.unsubscribe(&prefix) {
                    // ZeroMQ cancels what it has not subscribed to silently.
                    Err(WireError { code: ErrorCode::Order, .. }) => self.counts.ignored += 1,
                    other => other.map_err(refused)?,
                },
                // ZMTP lets subscribers talk to an XPUB's user; here there is none.
                Event::Message(_) | Event::Ready(_) => self.counts.ignored += 1,
            }
        }
        Ok(())
    }
}

fn refused(error: WireError) -> End {
    End::Dismissed(format!("{}: {}", error.field, error.text))
}

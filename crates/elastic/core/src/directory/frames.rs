//! Frames from clients and relays: who may send what, and to which queue it goes.

use std::sync::Arc;

use quelea_elastic_proto::Time;
use quelea_elastic_proto::frame::{ErrorCode, Frame, OpenListener, OpenProducer, Register, Role};
use quelea_elastic_proto::limits::{ADDRESS_BYTES_MAX, QUEUE_NAME_BYTES_MAX, RELAYS_MAX};

use crate::directory::limits::{PEERS_MAX, QUEUES_PER_PEER_MAX};
use crate::directory::queue::lifecycle::Registration;
use crate::directory::queue::{Client, Queue};
use crate::directory::{Connection, Directory, Effect, Peer};

impl Directory {
    pub(super) fn connected(&mut self, now: Time, peer: Peer, connection: Connection) {
        if self.connections.len() >= PEERS_MAX {
            let text = format!("this directory has {PEERS_MAX} connections, the most it can");
            self.context(now).refuse_and_close(peer, ErrorCode::Limit, "", text);
            return;
        }
        self.connections.insert(peer, connection);
        if !self.directories.is_empty() {
            let frame = Frame::Directories(Arc::clone(&self.directories));
            self.context(now).send(peer, frame);
        }
    }

    pub(super) fn disconnected(&mut self, now: Time, peer: Peer) {
        let Some(connection) = self.connections.remove(&peer) else { return };
        for name in connection.queues {
            self.forget_waiting(&name, peer);
            self.step(now, &name, |queue, cx| queue.disconnected(cx, peer));
        }
        if let Some((name, relay)) = connection.relay {
            self.step(now, &name, |queue, cx| queue.relay_disconnected(cx, peer, relay));
        }
    }

    pub(super) fn received(&mut self, now: Time, peer: Peer, frame: Frame) {
        let Some(connection) = self.connections.get(&peer) else { return };
        match (&frame, connection.role) {
            (Frame::Ping(number), _) => {
                let number = *number;
                self.context(now).send(peer, Frame::Pong(number));
            }
            // An error that a peer found is for its own log and the driver's; nothing is answered.
            (Frame::Pong(_) | Frame::Bye(_) | Frame::Error(_), _) => {}
            (Frame::OpenProducer(OpenProducer { queue, .. }), Role::Client)
            | (Frame::OpenListener(OpenListener { queue, .. }), Role::Client)
            | (Frame::Register(Register { queue, .. }), Role::Relay) => {
                let name = queue.clone();
                self.open(now, peer, &name, frame);
            }
            (
                Frame::Producing { queue, .. }
                | Frame::ProduceFailed { queue, .. }
                | Frame::Listening { queue, .. }
                | Frame::RelayLost { queue, .. }
                | Frame::Close { queue, .. },
                Role::Client,
            ) => {
                let name = queue.clone();
                self.frame_of_open_queue(now, peer, &name, frame);
            }
            (Frame::Draining { .. }, Role::Relay) => {
                // Somebody else ends it (its pod was deleted): as if the planner had.
                if let Some((name, relay)) = connection.relay.clone() {
                    self.step(now, &name, |queue, cx| {
                        queue.drain_relay(cx, relay, "it announced that it will stop");
                    });
                }
            }
            (Frame::Report(_), Role::Relay) => {
                let Some((name, relay)) = connection.relay.clone() else {
                    let text = "REPORT before REGISTER was answered".to_owned();
                    self.context(now).refuse(peer, ErrorCode::Order, "", text);
                    return;
                };
                if let Frame::Report(report) = frame {
                    self.step(now, &name, |queue, cx| queue.report(cx, peer, relay, report));
                }
            }
            // Of a relay that has not registered it says nothing of any queue.
            (Frame::Host(host), Role::Relay) => {
                let host = *host;
                if let Some((name, relay)) = connection.relay.clone() {
                    self.step(now, &name, |queue, _| queue.host_reported(peer, relay, host));
                }
            }
            (_, role) => {
                let text = format!("a {role:?} may not send this to a directory: {}", kind(&frame));
                self.context(now).refuse_and_close(peer, ErrorCode::Order, "kind", text);
            }
        }
    }

    /// OPEN_PRODUCER, OPEN_LISTENER: may make the queue. REGISTER: only claims it.
    fn open(&mut self, now: Time, peer: Peer, name: &str, frame: Frame) {
        if let Some((field, text)) = fault(name, &frame) {
            let code = if field == "queue" { ErrorCode::Queue } else { ErrorCode::Value };
            self.context(now).refuse_and_close(peer, code, field, text);
            return;
        }
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        if connection.queues.len() >= QUEUES_PER_PEER_MAX && !connection.queues.contains(name) {
            let text = format!(
                "a connection may open {QUEUES_PER_PEER_MAX} queues, this would be one more"
            );
            self.context(now).refuse(peer, ErrorCode::Limit, "queue", text);
            return;
        }
        connection.queues.insert(name.to_owned());
        self.with_queue(now, name, peer, frame);
    }

    /// What a client says of a queue that it has opened.
    fn frame_of_open_queue(&mut self, now: Time, peer: Peer, name: &str, frame: Frame) {
        let opened = self.connections.get(&peer).is_some_and(|known| known.queues.contains(name));
        if opened {
            self.with_queue(now, name, peer, frame);
            return;
        }
        // Its queue may just have gone to another directory, and the client has been redirected.
        let text = format!("queue {name} is not open on this connection ({})", kind(&frame));
        self.context(now).refuse(peer, ErrorCode::Order, "queue", text);
    }

    /// A frame for an owned queue.
    pub(super) fn queue_received(&mut self, now: Time, name: &str, peer: Peer, frame: Frame) {
        match frame {
            Frame::Register(register) => {
                let id = register.relay;
                let result = self.step(now, name, |queue, cx| queue.register(cx, peer, &register));
                match result {
                    Some(Registration::Taken) => {
                        if let Some(connection) = self.connections.get_mut(&peer) {
                            connection.relay = Some((name.to_owned(), id));
                        }
                    }
                    Some(Registration::Fenced) => {
                        self.effects.push_back(Effect::Claim { queue: name.to_owned() });
                    }
                    Some(Registration::Refused) | None => {}
                }
            }
            frame => {
                self.step(now, name, |queue, cx| match frame {
                    Frame::OpenProducer(open) => queue.open_producer(cx, peer, &open),
                    Frame::OpenListener(open) => queue.open_listener(cx, peer, &open),
                    frame => queue.client_frame(cx, peer, frame),
                });
            }
        }
    }
}

impl Queue {
    fn client_frame(&mut self, cx: &mut super::context::Context<'_>, peer: Peer, frame: Frame) {
        let client = match &frame {
            Frame::Producing { producer, .. } | Frame::ProduceFailed { producer, .. } => {
                Some(Client::Producer(*producer))
            }
            Frame::Listening { listener, .. } => Some(Client::Listener(*listener)),
            _ => None,
        };
        if client.is_some_and(|client| !self.is_linked(peer, client)) {
            // It may have come over another connection since, or the queue was taken over.
            let text = format!(
                "the client did not open the queue over this connection ({})",
                kind(&frame)
            );
            cx.refuse(peer, ErrorCode::Order, "client", text);
            return;
        }
        match frame {
            Frame::Producing { producer, epoch, relay, first, .. } => {
                self.producing(cx, producer, epoch, relay, first);
            }
            Frame::ProduceFailed { producer, epoch, cause, .. } => {
                self.produce_failed(cx, producer, epoch, &cause);
            }
            Frame::Listening { listener, generation, relays, .. } => {
                self.listening(cx, listener, generation, &relays);
            }
            Frame::RelayLost { client, relay, .. } => self.relay_lost(cx, peer, client, relay),
            Frame::Close { client, .. } => self.close(cx, peer, client),
            _ => {}
        }
    }
}

/// Returns what is wrong with a frame that opens a queue: the field, and the text with limit and
/// value.
fn fault(name: &str, frame: &Frame) -> Option<(&'static str, String)> {
    if name.is_empty() || name.len() > QUEUE_NAME_BYTES_MAX {
        let text = format!(
            "a queue's name has 1 to {QUEUE_NAME_BYTES_MAX} bytes, this one {}",
            name.len()
        );
        return Some(("queue", text));
    }
    if let Some(odd) = name.chars().find(|odd| odd.is_control()) {
        return Some((
            "queue",
            format!("a queue's name has no control characters, this one {odd:?}"),
        ));
    }
    match frame {
        Frame::OpenListener(open) if open.attached.len() > RELAYS_MAX => Some((
            "attached",
            format!("at most {RELAYS_MAX} relays, these are {}", open.attached.len()),
        )),
        Frame::Register(register) => {
            let bytes = register.address.len();
            (bytes == 0 || bytes > ADDRESS_BYTES_MAX).then(|| {
                (
                    "address",
                    format!("an address has 1 to {ADDRESS_BYTES_MAX} bytes, this one {bytes}"),
                )
            })
        }
        _ => None,
    }
}

/// Returns a frame's name for people, without what is in it.
fn kind(frame: &Frame) -> String {
    let text = format!("{frame:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}

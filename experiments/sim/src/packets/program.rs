//! The programs at the ends: one publishes numbered messages, the other takes them.

use std::collections::VecDeque;

use bytes::Bytes;
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_proto::session::{
    Event, ListenerConfig, ListenerSession, ProducerConfig, ProducerSession, PublishError,
    Session as _,
};
use quelea_elastic_proto::{ClientId, Time};
use quelea_testkit::stream_network::SocketEvent;

use crate::packets::client::Client;
use crate::packets::context::Context;
use crate::packets::event::Signal;
use crate::packets::workload::{QUEUE, topic};

/// A producer's process.
pub(super) struct ProducerNode {
    pub(super) id: ClientId,
    pub(super) client: Client<ProducerSession>,
    body_bytes: usize,
    /// Messages that had no room yet.
    owed: u32,
    /// It has had a relay: programs wait for that before they publish.
    attached: bool,
}

impl ProducerNode {
    pub(super) fn new(
        id: ClientId,
        directories: &[String],
        body_bytes: usize,
        jitter: u64,
        now: Time,
    ) -> Self {
        let mut config = ProducerConfig::new(QUEUE.to_owned(), id);
        config.window_bytes = 256 << 10;
        let session = ProducerSession::new(config, now);
        let client = Client::new(session, directories, jitter, now);
        Self { id, client, body_bytes, owed: 0, attached: false }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.client.deadline()
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        match signal {
            Signal::Socket(SocketEvent::Connected(conn)) => self.client.connected(cx, conn),
            Signal::Socket(SocketEvent::Closed(conn)) => self.client.closed(cx, conn),
            Signal::Socket(SocketEvent::Bytes(conn, bytes)) => self.client.read(cx, conn, &bytes),
            Signal::Publish(messages) => self.owed += messages,
            _ => {}
        }
        self.publish(cx);
        self.client.turn(cx);
        while self.client.session.poll_event().is_some() {}
        cx.check.acknowledged(self.id, self.client.session.acknowledged().0);
    }

    /// Returns whether it has messages to publish, and no room.
    pub(super) const fn owes(&self) -> bool {
        self.owed > 0
    }

    fn publish(&mut self, cx: &mut Context<'_>) {
        self.attached |= self.client.session.relay().is_some();
        while self.owed > 0 && self.attached {
            let sequence = self.client.session.next_sequence().0;
            let mut body = format!("{:x}:{sequence}:", self.id.0).into_bytes();
            body.resize(body.len().max(self.body_bytes), b'.');
            match self.client.session.publish(&[topic(sequence).as_bytes(), body.as_slice()]) {
                Ok(_) => {
                    self.owed -= 1;
                    cx.check.published(self.id, sequence);
                }
                Err(PublishError::Full { .. }) => return,
                Err(error) => return cx.check.wrong(format!("{}: {error}", cx.participant)),
            }
        }
    }
}

/// A listener's process.
pub(super) struct ListenerNode {
    pub(super) id: ClientId,
    pub(super) client: Client<ListenerSession>,
    by_hand: bool,
    /// The program takes nothing.
    pub(super) stalled: bool,
    taken: VecDeque<Event>,
    /// Messages that it has and will acknowledge then.
    acknowledge: VecDeque<(Time, u64)>,
}

/// How long a program that acknowledges itself needs.
const WORK_MS: u64 = 15;

impl ListenerNode {
    pub(super) fn new(
        id: ClientId,
        directories: &[String],
        prefix: &'static str,
        by_hand: bool,
        slow: Option<SlowPolicy>,
        now: Time,
    ) -> Self {
        let config = ListenerConfig {
            queue: QUEUE.to_owned(),
            listener: id,
            slow,
            prefixes: vec![Bytes::from_static(prefix.as_bytes())],
            acknowledge_by_hand: by_hand,
        };
        let session = ListenerSession::new(config).expect("a short prefix is no error");
        let client = Client::new(session, directories, id.0 as u64, now);
        let (taken, acknowledge) = (VecDeque::new(), VecDeque::new());
        Self { id, client, by_hand, stalled: false, taken, acknowledge }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let by_hand = self.acknowledge.front().filter(|_| !self.stalled).map(|(at, _)| *at);
        self.client.deadline().into_iter().chain(by_hand).min()
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        match signal {
            Signal::Socket(SocketEvent::Connected(conn)) => self.client.connected(cx, conn),
            Signal::Socket(SocketEvent::Closed(conn)) => self.client.closed(cx, conn),
            Signal::Socket(SocketEvent::Bytes(conn, bytes)) => self.client.read(cx, conn, &bytes),
            _ => {}
        }
        self.client.turn(cx);
        if !self.stalled {
            self.take(cx);
        }
        while let Some((_, messages)) =
            self.acknowledge.pop_front_if(|(at, _)| *at <= cx.now && !self.stalled)
        {
            self.client.session.acknowledge(messages);
        }
        self.client.flush(cx);
        while self.client.session.poll_event().is_some() {}
    }

    fn take(&mut self, cx: &mut Context<'_>) {
        self.client.session.take_events(&mut self.taken);
        let mut messages = 0;
        for event in self.taken.drain(..) {
            messages += u64::from(matches!(event, Event::Message(_)));
            cx.check.took(self.id, &event);
        }
        if self.by_hand && messages > 0 {
            self.acknowledge.push_back((cx.now.plus_ms(WORK_MS), messages));
        }
    }
}

//! Two endpoints and the network between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quelea_cmq_proto::wire::{Header, Kind};
use quelea_cmq_proto::{
    Config, Delivery, DestinationId, DestinationOptions, Endpoint, Event, Key, Mailbox,
    MailboxOptions, PushError, Time,
};
use quelea_testkit::Agenda;

/// The mailbox that is open at the server.
pub(crate) const MAILBOX: Mailbox = Mailbox(7);

/// How long a datagram is under way.
const LATENCY_US: u64 = 50;

/// Steps that no test takes.
const STEPS_MAX: usize = 2_000_000;

/// A datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Bytes,
    /// Whether the sender allows IP fragments.
    pub(crate) may_fragment: bool,
}

impl Datagram {
    pub(crate) fn kind(&self) -> Option<Kind> {
        Header::parse(&self.bytes).ok().map(|header| header.kind)
    }
}

/// What the network does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Twice,
    /// Arrives later than others by so many microseconds.
    Late(u64),
}

type Network = Box<dyn FnMut(&Datagram) -> Fate>;
type Flips = Box<dyn FnMut(&mut [u8])>;

pub(crate) struct EndpointPair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) client_address: SocketAddr,
    pub(crate) server_address: SocketAddr,
    pub(crate) now: Time,
    pub(crate) network: Network,
    /// What the network does to the bytes that arrive.
    pub(crate) flips: Flips,
    /// Whether the server's application takes what is delivered.
    pub(crate) pops: bool,
    /// What it took, message by message.
    pub(crate) received: Vec<Vec<u8>>,
    /// What it has not taken yet.
    pub(crate) deliveries: VecDeque<Delivery>,
    pub(crate) events: Vec<Event>,
    pub(crate) client_events: Vec<Event>,
    /// Datagrams that either gave to the network, by kind.
    pub(crate) sent: BTreeMap<u8, u64>,
    /// Calls of the kernel.
    pub(crate) calls: u64,
    pub(crate) sent_by_server: u64,
    under_way: Agenda<Datagram>,
}

impl EndpointPair {
    pub(crate) fn new(config: Config) -> Self {
        Self::with(config.clone(), config)
    }

    pub(crate) fn with(client: Config, server: Config) -> Self {
        let mut pair = Self {
            client: Endpoint::new(client, [1; 32]),
            server: Endpoint::new(server, [2; 32]),
            client_address: "10.0.0.1:1000".parse().unwrap(),
            server_address: "10.0.0.2:2000".parse().unwrap(),
            now: Time::from_micros(1),
            network: Box::new(|_| Fate::Arrives),
            flips: Box::new(|_| {}),
            pops: true,
            received: Vec::new(),
            deliveries: VecDeque::new(),
            events: Vec::new(),
            client_events: Vec::new(),
            sent: BTreeMap::new(),
            calls: 0,
            sent_by_server: 0,
            under_way: Agenda::new(),
        };
        pair.server.open_mailbox(MAILBOX, MailboxOptions::default()).unwrap();
        pair
    }

    /// Returns the client's destination, which is made if there is none.
    pub(crate) fn destination(&mut self, options: DestinationOptions) -> DestinationId {
        let key = Key { address: self.server_address, mailbox: MAILBOX };
        self.client.destination(key, options).unwrap()
    }

    pub(crate) fn push(&mut self, to: DestinationId, message: &[u8]) -> Result<(), PushError> {
        let now = self.now;
        self.client.push(to, message, || now)
    }

    /// Pushes, and lets the network work while there is no room.
    pub(crate) fn push_all<M: AsRef<[u8]>>(
        &mut self,
        to: DestinationId,
        messages: impl IntoIterator<Item = M>,
    ) {
        for message in messages {
            let mut steps = 0;
            while let Err(refused) = self.push(to, message.as_ref()) {
                assert_eq!(refused, PushError::WouldBlock);
                assert!(self.step(), "the push waits for nothing");
                steps += 1;
                assert!(steps < STEPS_MAX, "the push waits for ever");
            }
        }
    }

    /// Runs everything that can happen at this time, or else goes to the next time at which
    /// something does. Returns false if nothing will.
    pub(crate) fn step(&mut self) -> bool {
        let acted = self.transmit() | self.take();
        if acted {
            return true;
        }
        let Some(next) = self.next_time() else { return false };
        self.now = self.now.max(next);
        self.arrive();
        for endpoint in [&mut self.client, &mut self.server] {
            let due = endpoint.next_deadline().is_some_and(|due| due <= self.now);
            if due {
                endpoint.on_timer(self.now);
                let again = endpoint.next_deadline().filter(|due| *due <= self.now);
                assert!(
                    again.is_none() || endpoint.has_transmit(),
                    "it is due for ever: {again:?}"
                );
            }
        }
        true
    }

    /// Until nothing is under way and nothing is due.
    pub(crate) fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Until this much later.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now.after(time);
        for _ in 0..STEPS_MAX {
            let acted = self.transmit() | self.take();
            if acted {
                continue;
            }
            if self.next_time().is_none_or(|next| next > end) {
                self.now = end;
                return;
            }
            self.step();
        }
        panic!("it does not come to rest");
    }

    /// The server's machine was switched off and on: it remembers nothing.
    pub(crate) fn restart_server(&mut self, config: Config) {
        self.server = Endpoint::new(config, [3; 32]);
        self.server.open_mailbox(MAILBOX, MailboxOptions::default()).unwrap();
        self.deliveries.clear();
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self.under_way.next_us().map(Time::from_micros);
        [arrival, self.client.next_deadline(), self.server.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Gives the network what the endpoints have to send.
    fn transmit(&mut self) -> bool {
        let mut acted = false;
        for (endpoint, from) in
            [(&mut self.client, self.client_address), (&mut self.server, self.server_address)]
        {
            while let Some(transmit) = endpoint.poll_transmit(self.now) {
                acted = true;
                self.calls += 1;
                self.sent_by_server += u64::from(from == self.server_address);
                let segment_bytes =
                    transmit.segment_bytes.unwrap_or_else(|| transmit.bytes.len().max(1));
                for start in (0..transmit.bytes.len()).step_by(segment_bytes) {
                    let end = (start + segment_bytes).min(transmit.bytes.len());
                    let bytes = transmit.bytes.slice(start..end);
                    *self.sent.entry(bytes[2]).or_default() += 1;
                    let may_fragment = transmit.may_fragment;
                    let datagram = Datagram { from, to: transmit.to, bytes, may_fragment };
                    let (copies, late_us) = match (self.network)(&datagram) {
                        Fate::Arrives => (1, 0),
                        Fate::Lost => (0, 0),
                        Fate::Twice => (2, 0),
                        Fate::Late(us) => (1, us),
                    };
                    for _ in 0..copies {
                        let at = self.now.plus_us(LATENCY_US + late_us);
                        self.under_way.at(at.as_micros(), datagram.clone());
                    }
                }
            }
        }
        acted
    }

    /// What arrives by now.
    fn arrive(&mut self) {
        while let Some(datagram) = self.under_way.next_until(self.now.as_micros()) {
            let segment_bytes = datagram.bytes.len();
            let mut bytes = BytesMut::from(&datagram.bytes[..]);
            (self.flips)(&mut bytes);
            let endpoint = match datagram.to {
                to if to == self.server_address => &mut self.server,
                to if to == self.client_address => &mut self.client,
                _ => continue,
            };
            endpoint.on_datagrams(datagram.from, bytes, segment_bytes, self.now);
        }
    }

    /// Takes what there is for the applications; returns whether they popped anything.
    fn take(&mut self) -> bool {
        while let Some(delivery) = self.server.poll_delivery() {
            self.deliveries.push_back(delivery);
        }
        while let Some(event) = self.server.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = self.client.poll_event() {
            self.client_events.push(event);
        }
        let mut acted = false;
        while self.pops
            && let Some(delivery) = self.deliveries.pop_front()
        {
            acted = true;
            self.received.extend(delivery.messages().map(<[u8]>::to_vec));
            assert_eq!(delivery.messages().count(), delivery.count as usize);
            self.server.popped(delivery.token, self.now);
        }
        acted
    }
}

/// Returns so many messages that differ, of `len` bytes each.
pub(crate) fn messages(count: usize, len: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|at| {
            let mut message = vec![at as u8; len];
            let number = (at as u32).to_le_bytes();
            let head = len.min(4);
            message[..head].copy_from_slice(&number[..head]);
            message
        })
        .collect()
}

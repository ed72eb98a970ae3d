//! Stories of an inbox: a sender's datagrams are made by hand, so that each can be lost, late or wrong.

mod credit;
mod fec_recovery;
mod fragments;
mod lossy;
mod peers;
mod reliable;

use core::net::SocketAddr;

use bytes::Bytes;

use crate::Time;
use crate::config::{Config, MailboxOptions};
use crate::delivery::Delivery;
use crate::event::Event;
use crate::inbox::{Answer, Arrived, Inbox};
use crate::key::Mailbox;
use crate::wire::data::{Fragment, write_message};
use crate::wire::flags::{self, FlowMode};
use crate::wire::handshake::COOKIE_BYTES;
use crate::wire::probe::Probe;
use crate::wire::status::Status;
use crate::wire::{HEADER_BYTES, Header, Kind, Malformed};

const BOX: Mailbox = Mailbox(7);

/// One datagram of a [`Sender`].
#[derive(Clone)]
struct Sent {
    header: Header,
    body: Bytes,
}

/// Pads a datagram to so many bytes that an answer to it may have them, too.
fn padded(mut sent: Sent, to: usize) -> Sent {
    let mut body = sent.body.to_vec();
    body.resize(to.max(body.len()), 0);
    sent.body = body.into();
    sent
}

/// Makes a flow's datagrams as an endpoint would.
#[derive(Clone)]
struct Sender {
    from: SocketAddr,
    session: u64,
    flow: u32,
    flags: u8,
    sequence: u64,
    message: u64,
    probes: u64,
}

impl Sender {
    fn new(mode: FlowMode) -> Self {
        Self {
            from: SocketAddr::from(([127, 0, 0, 1], 5_000)),
            session: 11,
            flow: 1,
            flags: mode as u8 | flags::CREDIT,
            sequence: 0,
            message: 0,
            probes: 0,
        }
    }

    fn header(&self, kind: Kind, sequence: u64, count: u16) -> Header {
        Header {
            kind,
            flags: self.flags,
            flow: self.flow,
            session: self.session,
            mailbox: BOX,
            sequence,
            count,
            first_message: self.message as u32,
        }
    }

    fn data(&mut self, messages: &[&[u8]]) -> Sent {
        let mut body = Vec::new();
        for message in messages {
            write_message(&mut body, message);
        }
        let count = messages.len() as u16;
        let header = self.header(Kind::Data, self.sequence, count);
        self.sequence += 1;
        self.message += u64::from(count);
        Sent { header, body: body.into() }
    }

    /// Returns a datagram with a message that says its own number.
    fn one(&mut self) -> Sent {
        let text = self.message.to_string();
        self.data(&[text.as_bytes()])
    }

    fn fragments(&mut self, message: &[u8], fragments: u32) -> Vec<Sent> {
        let total = message.len() as u32;
        (0..fragments)
            .map(|index| {
                let mut body = Vec::new();
                Fragment { index, fragments, total }.write(&mut body, message);
                let count = u16::from(index == 0);
                let mut header = self.header(Kind::Data, self.sequence, count);
                header.flags |= flags::FRAGMENT;
                self.sequence += 1;
                self.message += u64::from(count);
                Sent { header, body: body.into() }
            })
            .collect()
    }

    fn probe(&mut self, floor: u64) -> (Header, Probe) {
        let header = self.header(Kind::Probe, self.probes, 0);
        self.probes += 1;
        let probe =
            Probe { next: self.sequence, floor, next_message: self.message, sent_at_us: 77 };
        (header, probe)
    }
}

/// An inbox and what came out of it.
struct Receiver {
    inbox: Inbox,
    now: Time,
    deliveries: Vec<Delivery>,
}

impl Receiver {
    fn new() -> Self {
        Self::with(&Config::default(), &MailboxOptions::default())
    }

    fn with(config: &Config, options: &MailboxOptions) -> Self {
        let mut inbox = Inbox::new(config, 1_000, [5; 32]);
        inbox.open(BOX, options).unwrap();
        Self { inbox, now: Time::from_micros(1_000_000), deliveries: Vec::new() }
    }

    fn take(&mut self, sender: &Sender, sent: &Sent) {
        self.try_take(sender, sent).unwrap();
    }

    fn try_take(&mut self, sender: &Sender, sent: &Sent) -> Result<(), Malformed> {
        let arrived = Arrived {
            from: sender.from,
            header: &sent.header,
            buffer: &sent.body,
            body: 0..sent.body.len(),
            bytes: HEADER_BYTES + sent.body.len(),
            now: self.now,
        };
        self.inbox.on_data(&arrived).map(|_| ())
    }

    fn take_all<'a>(&mut self, sender: &Sender, sent: impl IntoIterator<Item = &'a Sent>) {
        for sent in sent {
            self.take(sender, sent);
        }
    }

    fn probe(&mut self, sender: &Sender, (header, probe): &(Header, Probe)) {
        let arrived = Arrived {
            from: sender.from,
            header,
            buffer: &Bytes::new(),
            body: 0..0,
            bytes: HEADER_BYTES + 32,
            now: self.now,
        };
        self.inbox.on_probe(&arrived, probe);
    }

    fn hello(&mut self, sender: &Sender, cookie: [u8; COOKIE_BYTES]) {
        let header = sender.header(Kind::Hello, 0, 0);
        let arrived = Arrived {
            from: sender.from,
            header: &header,
            buffer: &Bytes::new(),
            body: 0..0,
            bytes: HEADER_BYTES + COOKIE_BYTES,
            now: self.now,
        };
        self.inbox.on_hello(&arrived, cookie);
    }

    /// The sender answers the challenge that it got.
    fn prove(&mut self, sender: &Sender) {
        let cookie = self.answers().into_iter().find_map(|answer| match answer {
            Answer::Challenge { to, cookie, .. } if to == sender.from => Some(cookie),
            _ => None,
        });
        self.hello(sender, cookie.expect("a challenge"));
    }

    /// Returns a receiver that knows and has proven the sender, which has sent one message.
    fn proven(sender: &mut Sender) -> Self {
        let mut receiver = Self::new();
        receiver.meet(sender);
        receiver
    }

    fn meet(&mut self, sender: &mut Sender) {
        let mut first = sender.one();
        // Padded, so that a challenge is not larger.
        first.body = [&first.body[..], &[0; 32]].concat().into();
        self.take(sender, &first);
        self.prove(sender);
        self.messages();
        self.pop_all();
        self.wait(2_000);
        self.answers();
    }

    fn answers(&mut self) -> Vec<Answer> {
        core::iter::from_fn(|| self.inbox.poll_answer(self.now)).collect()
    }

    fn statuses(&mut self) -> Vec<Status> {
        self.answers()
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Status { status, .. } => Some(status),
                _ => None,
            })
            .collect()
    }

    /// Takes the only STATUS that is due.
    fn status(&mut self) -> Status {
        let mut statuses = self.statuses();
        assert_eq!(statuses.len(), 1, "{statuses:?}");
        statuses.remove(0)
    }

    /// Takes the messages delivered since the last call, as text.
    fn messages(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        while let Some(delivery) = self.inbox.poll_delivery() {
            messages.extend(
                delivery.messages().map(|message| String::from_utf8_lossy(message).into_owned()),
            );
            self.deliveries.push(delivery);
        }
        messages
    }

    fn numbers(&mut self) -> Vec<u64> {
        self.messages().iter().map(|message| message.parse().unwrap()).collect()
    }

    fn pop_all(&mut self) {
        for delivery in core::mem::take(&mut self.deliveries) {
            self.inbox.popped(delivery.token, self.now);
        }
    }

    /// Time passes, and what is due is done when it is.
    fn wait(&mut self, us: u64) {
        let end = self.now.plus_us(us);
        while let Some(due) = self.inbox.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.inbox.on_timer(self.now);
        }
        self.now = end;
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.inbox.poll_event()).collect()
    }
}

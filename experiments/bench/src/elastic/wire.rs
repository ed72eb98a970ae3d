//! The wires: how a raw client gets in, what a message looks like, and how what comes is cut. Each
//! is as little as its protocol allows, so that the clients' cost is the copy out of the socket.

pub(crate) mod dialogue;
pub(crate) mod native;
pub(crate) mod nats;
pub(crate) mod zmtp;

use std::net::TcpStream;

use crate::elastic::args::WireKind;
use crate::elastic::error::ElasticError;
use crate::elastic::wire::dialogue::Dialogue;

/// The part that all messages begin with, and that every listener's prefix matches.
pub(crate) const TOPIC: &str = "load";

/// A server as raw clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    pub kind: WireKind,
    pub producers_at: String,
    pub listeners_at: String,
    /// The queue, where the protocol has one.
    pub queue: String,
}

/// A client that is in.
#[derive(Debug)]
pub(crate) struct Opened {
    pub stream: TcpStream,
    /// What was read beyond the last answer.
    pub left: Vec<u8>,
}

/// A producer that is in.
#[derive(Debug)]
pub(crate) struct OpenedProducer {
    pub client: Opened,
    pub template: Template,
    /// Bytes that it may send in all, as far as it is known; `None` if the wire has no credit.
    pub credit: Option<u64>,
}

/// A whole message as it goes onto the wire, to be stamped.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub bytes: Vec<u8>,
    /// Where the body begins.
    pub body_at: usize,
    /// Where the wire wants the message's number, little-endian.
    pub sequence_at: Option<usize>,
}

/// A piece of what came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A message's body.
    Body(&'a [u8]),
    /// Has to be answered with these bytes.
    Question(Vec<u8>),
    /// Bytes of messages that the producer may send in all.
    Credit(u64),
    /// Nothing that a load generator minds.
    Other,
}

impl Wire {
    pub(crate) fn open_listener(&self, number: u32) -> Result<Opened, ElasticError> {
        let who = format!("listener {number}");
        let dialogue = Dialogue::connect(who, &self.listeners_at)?;
        match self.kind {
            WireKind::Native => native::listen(dialogue, &self.queue),
            WireKind::Zmtp => zmtp::listen(dialogue),
            WireKind::Nats => nats::listen(dialogue),
        }
    }

    pub(crate) fn open_producer(
        &self,
        number: u32,
        size: usize,
    ) -> Result<OpenedProducer, ElasticError> {
        let who = format!("producer {number}");
        let dialogue = Dialogue::connect(who, &self.producers_at)?;
        match self.kind {
            WireKind::Native => native::produce(dialogue, &self.queue, size),
            WireKind::Zmtp => zmtp::produce(dialogue, size),
            WireKind::Nats => nats::produce(dialogue, size),
        }
    }

    /// Returns the first piece of `input` with its length; `None` if it is not whole yet. The error
    /// is what the server said, or what is wrong with what it said.
    pub(crate) fn cut<'a>(&self, input: &'a [u8]) -> Result<Option<(usize, Piece<'a>)>, String> {
        match self.kind {
            WireKind::Native => native::cut(input),
            WireKind::Zmtp => zmtp::cut(input),
            WireKind::Nats => nats::cut(input),
        }
    }
}

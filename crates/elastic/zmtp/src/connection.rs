//! One connection, of either side: bytes in, events out, bytes out.

mod heartbeat;
mod inbound;

use bytes::{Bytes, BytesMut};

use self::heartbeat::Heart;
pub use self::heartbeat::Heartbeat;
use self::inbound::{Inbound, Item};
use crate::command::Command;
use crate::curve::PublicKey;
use crate::frame::put_command;
use crate::limits::HANDSHAKE_MS_MAX;
use crate::mechanism::session::CurveSession;
use crate::mechanism::{Mechanism, Outcome, Step};
use crate::message::Parts;
use crate::metadata::Metadata;
use crate::{Error, Security, SocketType, ZmtpTime, command, greeting};

/// What we are on this connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The kind of socket.
    pub socket_type: SocketType,
    /// Our name, if we have one; at most [`crate::limits::IDENTITY_BYTES_MAX`] bytes of it are sent.
    pub identity: Bytes,
    /// When to ask whether the peer is there.
    pub heartbeat: Heartbeat,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The kind of its socket.
    pub socket_type: SocketType,
    /// How it calls itself, empty if it does not.
    pub identity: Bytes,
    /// It speaks 3.1: subscriptions are commands, and there are heartbeats.
    pub speaks_3_1: bool,
    /// The user who was let in by PLAIN.
    pub user: Option<String>,
    /// The peer's key in CURVE.
    pub key: Option<PublicKey>,
}

/// What a connection brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over: messages may go both ways.
    Ready(Peer),
    /// A message, its parts framed as NULL and PLAIN have them on the wire: see [`Parts`].
    Message(Bytes),
    /// The peer wants messages whose first part begins with this.
    Subscribe(Bytes),
    /// The peer wants them no more.
    Cancel(Bytes),
}

/// The state machine of a connection.
///
/// A driver reads into [`Self::buffer`], says so by [`Self::mark_received`], takes events until there are none,
/// and writes what [`Self::take_output`] gives. It calls [`Self::handle_timeout`] at [`Self::next_deadline`].
#[derive(Debug)]
pub struct Connection {
    ours: Metadata,
    mechanism_name: &'static str,
    phase: Phase,
    inbound: Inbound,
    output: BytesMut,
    heart: Heart,
    started: ZmtpTime,
}

#[derive(Debug)]
enum Phase {
    /// The peer's greeting is not all there.
    Greeting(Mechanism),
    Handshake {
        mechanism: Mechanism,
        minor: u8,
    },
    Traffic {
        speaks_3_1: bool,
        session: Option<CurveSession>,
    },
    /// An error has ended it.
    Ended,
}

impl Connection {
    /// Returns a fresh connection, from which the greeting is to be written at once.
    #[must_use]
    pub fn new(settings: Settings, security: Security, now: ZmtpTime) -> Self {
        let Settings { socket_type, mut identity, heartbeat } = settings;
        identity.truncate(crate::limits::IDENTITY_BYTES_MAX);
        let mechanism_name = security.mechanism();
        Self {
            ours: Metadata { socket_type, identity },
            mechanism_name,
            output: BytesMut::from(&greeting::ours(mechanism_name, security.is_server())[..]),
            phase: Phase::Greeting(Mechanism::new(security)),
            inbound: Inbound::new(socket_type),
            heart: Heart::new(heartbeat),
            started: now,
        }
    }

    /// Returns the buffer to which the driver appends what it reads.
    pub const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.inbound.buffer
    }

    /// Something was appended to the buffer.
    pub const fn mark_received(&mut self, now: ZmtpTime) {
        self.heart.mark_received(now);
    }

    /// Takes bytes that were read elsewhere.
    pub fn receive(&mut self, now: ZmtpTime, bytes: &[u8]) {
        self.inbound.buffer.extend_from_slice(bytes);
        self.mark_received(now);
    }

    /// Takes the next event of what has been read, `None` if that needs more bytes.
    ///
    /// # Errors
    /// Whatever ends the connection. What is in the output then is still to be written, if it can be:
    /// it sends the peer the reason.
    pub fn poll_event(&mut self, now: ZmtpTime) -> Result<Option<Event>, Error> {
        let result = self.advance(now);
        if let Err(error) = &result {
            self.explain(error);
            self.phase = Phase::Ended;
            self.inbound.buffer.clear();
        }
        result
    }

    /// Returns the bytes of a message of framed parts, as they are to be written to this peer: the
    /// same bytes, unless CURVE seals them. What comes out must be written in the order in which it
    /// came out, and so must the output that was taken before or after it. `None` before
    /// [`Event::Ready`].
    #[must_use]
    pub fn seal(&mut self, message: &Bytes) -> Option<Bytes> {
        let Phase::Traffic { session, .. } = &mut self.phase else { return None };
        let Some(session) = session else { return Some(message.clone()) };
        let mut sealed = BytesMut::with_capacity(message.len() + 64);
        let mut parts = Parts::of(message.clone()).peekable();
        while let Some(part) = parts.next() {
            session.put(&mut sealed, parts.peek().is_some(), false, &part);
        }
        Some(sealed.freeze())
    }

    /// Asks the peer for messages with this prefix; without effect before [`Event::Ready`].
    pub fn subscribe(&mut self, prefix: &[u8]) {
        self.put_subscription("SUBSCRIBE", 1, prefix);
    }

    /// Asks for them no more; without effect before [`Event::Ready`].
    pub fn cancel(&mut self, prefix: &[u8]) {
        self.put_subscription("CANCEL", 0, prefix);
    }

    /// Takes what is to be written: greeting, handshake, commands. Never a part of a message.
    #[must_use]
    pub fn take_output(&mut self) -> Bytes {
        self.output.split().freeze()
    }

    /// Returns when [`Self::handle_timeout`] is to be called, if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<ZmtpTime> {
        match &self.phase {
            Phase::Greeting(_) | Phase::Handshake { .. } => {
                Some(self.started.plus_ms(HANDSHAKE_MS_MAX))
            }
            Phase::Traffic { .. } => self.heart.next_deadline(),
            Phase::Ended => None,
        }
    }

    /// Handles that time has passed: a PING may be due, or the peer may be given up.
    ///
    /// # Errors
    /// If the peer was not heard in time.
    pub fn handle_timeout(&mut self, now: ZmtpTime) -> Result<(), Error> {
        let result = match &self.phase {
            Phase::Ended => Ok(()),
            Phase::Greeting(_) | Phase::Handshake { .. } => {
                let late = self.started.plus_ms(HANDSHAKE_MS_MAX) <= now;
                if late { Err(Error::HandshakeTimeout { ms: HANDSHAKE_MS_MAX }) } else { Ok(()) }
            }
            Phase::Traffic { .. } => self.heart.handle_timeout(now).map(|ping| {
                if let Some(ttl_ms) = ping {
                    self.put(&command::ping(ttl_ms));
                }
            }),
        };
        if result.is_err() {
            self.phase = Phase::Ended;
        }
        result
    }

    fn advance(&mut self, now: ZmtpTime) -> Result<Option<Event>, Error> {
        loop {
            let event = match &mut self.phase {
                Phase::Ended => return Ok(None),
                Phase::Greeting(_) => {
                    if !self.greet()? {
                        return Ok(None);
                    }
                    None
                }
                Phase::Handshake { .. } => {
                    let Some(body) = self.inbound.next_of_handshake()? else { return Ok(None) };
                    self.shake_hands(now, body)?
                }
                Phase::Traffic { session, .. } => {
                    let Some(item) = self.inbound.next(session.as_mut())? else { return Ok(None) };
                    self.traffic(now, item)?
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Reads the peer's greeting; false if it is not all there.
    fn greet(&mut self) -> Result<bool, Error> {
        let Some(theirs) = greeting::parse(&self.inbound.buffer, self.mechanism_name)? else {
            return Ok(false);
        };
        let _ = self.inbound.buffer.split_to(greeting::BYTES);
        let Phase::Greeting(mut mechanism) = core::mem::replace(&mut self.phase, Phase::Ended)
        else {
            return Ok(false);
        };
        if let Some(first) = mechanism.start(&self.ours) {
            put_command(&mut self.output, &first);
        }
        self.phase = Phase::Handshake { mechanism, minor: theirs.minor };
        Ok(true)
    }

    fn shake_hands(&mut self, now: ZmtpTime, body: Bytes) -> Result<Option<Event>, Error> {
        let Phase::Handshake { mechanism, minor } = &mut self.phase else { return Ok(None) };
        let minor = *minor;
        match mechanism.receive(body, &self.ours)? {
            Step::Send(command) => {
                put_command(&mut self.output, &command);
                Ok(None)
            }
            Step::Done(last, outcome) => {
                if let Some(last) = last {
                    put_command(&mut self.output, &last);
                }
                Ok(Some(self.ready(now, outcome, minor > 0)))
            }
        }
    }

    fn ready(&mut self, now: ZmtpTime, outcome: Outcome, speaks_3_1: bool) -> Event {
        let Outcome { metadata, user, key, session } = outcome;
        self.phase = Phase::Traffic { speaks_3_1, session };
        self.heart.begin(now, speaks_3_1);
        let Metadata { socket_type, identity } = metadata;
        Event::Ready(Peer { socket_type, identity, speaks_3_1, user, key })
    }

    fn traffic(&mut self, now: ZmtpTime, item: Item) -> Result<Option<Event>, Error> {
        let publishes = self.ours.socket_type.publishes();
        let body = match item {
            Item::Message(message) if publishes => return Ok(Some(upstream(message))),
            Item::Message(message) => return Ok(Some(Event::Message(message))),
            Item::Command(body) => body,
        };
        match Command::parse(body)? {
            Command::Ping { ttl_ms, context } => {
                self.heart.pinged(now, ttl_ms);
                self.put(&command::of("PONG", &context));
            }
            Command::Subscribe(prefix) if publishes => return Ok(Some(Event::Subscribe(prefix))),
            Command::Cancel(prefix) if publishes => return Ok(Some(Event::Cancel(prefix))),
            Command::Error(reason) => return Err(Error::Refused { reason }),
            Command::Subscribe(_) | Command::Cancel(_) | Command::Pong | Command::Unknown => {}
        }
        Ok(None)
    }

    fn put_subscription(&mut self, name: &str, first_byte: u8, prefix: &[u8]) {
        let Phase::Traffic { speaks_3_1, session } = &mut self.phase else { return };
        if *speaks_3_1 {
            self.put(&command::of(name, prefix));
            return;
        }
        let message = [&[first_byte], prefix].concat();
        match session {
            Some(session) => session.put(&mut self.output, false, false, &message),
            None => crate::put_frame(&mut self.output, false, &message),
        }
    }

    fn put(&mut self, body: &[u8]) {
        match &mut self.phase {
            Phase::Traffic { session: Some(session), .. } => {
                session.put(&mut self.output, false, true, body)
            }
            _ => put_command(&mut self.output, body),
        }
    }

    /// Tells the peer what was wrong, while there is a handshake to end. Who does not know the server's
    /// key is sent nothing (rfc.zeromq.org/spec/26 §2.2).
    fn explain(&mut self, error: &Error) {
        if !matches!(self.phase, Phase::Handshake { .. }) {
            return;
        }
        match error {
            // ZAP's status: libzmq shows it to its user.
            Error::Denied { .. } => put_command(&mut self.output, &command::error("400")),
            Error::SocketType { .. } | Error::Malformed { .. } | Error::Unexpected { .. } => {
                put_command(&mut self.output, &command::error(&error.to_string()));
            }
            _ => {}
        }
    }
}

/// Returns the event of what a subscriber sends as a message: a subscription of ZMTP 3.0, or
/// something for an XPUB's user.
fn upstream(message: Bytes) -> Event {
    let mut parts = Parts::of(message.clone());
    match (parts.next(), parts.next()) {
        (Some(part), None) if part.first() == Some(&1) => Event::Subscribe(part.slice(1..)),
        (Some(part), None) if part.first() == Some(&0) => Event::Cancel(part.slice(1..)),
        _ => Event::Message(message),
    }
}

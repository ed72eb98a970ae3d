//! The server's side of a connection: state, input, output and time. What the client sends is judged
//! in `handshake`, `incoming` and `content`; how things end is in `closing`.

mod channel;
mod closing;
mod content;
mod handshake;
mod heartbeat;
mod incoming;
mod refusal;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use quelea_model::{Message, Table, Timestamp, Value};

use crate::config::ConnectionConfig;
use crate::encode::CONTENT_HEAD;
use crate::event::{CloseCause, Event};
use crate::frame::{FRAME_OVERHEAD, FrameError, FrameReader};
use crate::method::Method;
use crate::output::Output;
use crate::reply_code::ReplyCode;
use crate::sasl::Mechanism;
use channel::Channels;
use heartbeat::Heartbeat;
use refusal::Outcome;

pub use handshake::AuthFailure;

/// The server's side of one connection. How it is driven is the chapter "Driving a connection" of the crate's documentation.
///
/// What it holds is bounded: one frame that straddles two reads, an entry per channel up to
/// `channel_max`, and unfinished messages, together at most twice `message_bytes_max` or 32 MiB,
/// whichever is more. Output is bounded by its caller, who stops feeding.
#[derive(Debug)]
pub struct ServerConnection {
    config: Arc<ConnectionConfig>,
    phase: Phase,
    reader: FrameReader,
    output: Output,
    channels: Channels,
    /// Bytes of unfinished messages, of all channels: of [`channel::Assembly::bytes`] each.
    assembling_bytes: usize,
    heartbeat: Heartbeat,
    heartbeat_s: u16,
    frame_max: u32,
    channel_max: u16,
    /// The last time that came in.
    now: Timestamp,
    /// The end of the handshake, or of waiting for the client's close-ok.
    phase_ends: Timestamp,
    mechanism: Option<Mechanism>,
    client_properties: Table,
    /// Closed by us, not reported yet.
    channels_closed: VecDeque<u16>,
    /// [`Event::Closed`] is to be reported.
    closed_owed: bool,
    close_cause: Option<Box<CloseCause>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The protocol header is next.
    ProtocolHeader,
    /// `connection.start-ok` is next.
    StartOk,
    /// The caller checks the login.
    Authenticating,
    /// `connection.tune-ok` is next.
    TuneOk,
    /// `connection.open` is next.
    Open,
    /// The caller checks the virtual host.
    Opening,
    /// In use.
    Running,
    /// We sent close: all is swallowed until close-ok. A close of the client's that crossed ours is
    /// answered once, so that a client which repeats it cannot make the output grow.
    Closing { answered: bool },
    /// The client sent close; the caller owes the close-ok.
    ClosedByClient,
    /// Nothing is read any more; what is in the output is the last.
    Finished,
}

impl ServerConnection {
    /// Returns a connection that was just accepted.
    #[must_use]
    pub fn new(config: Arc<ConnectionConfig>, now: Timestamp) -> Self {
        Self {
            phase: Phase::ProtocolHeader,
            reader: FrameReader::new(handshake::FRAME_BYTES_MAX),
            output: Output::new(),
            channels: Channels::default(),
            assembling_bytes: 0,
            heartbeat: Heartbeat::off(),
            heartbeat_s: 0,
            frame_max: handshake::FRAME_BYTES_MAX,
            channel_max: 0,
            now,
            phase_ends: now.plus_ms(config.handshake_timeout_ms),
            mechanism: None,
            client_properties: Table::new(),
            channels_closed: VecDeque::new(),
            closed_owed: false,
            close_cause: None,
            config,
        }
    }

    /// Takes what was read. To be called when [`ServerConnection::has_input`] is false; otherwise
    /// what still waits is copied.
    pub fn receive(&mut self, data: Bytes, now: Timestamp) {
        self.now = now;
        self.heartbeat.received(now);
        if !matches!(self.phase, Phase::ClosedByClient | Phase::Finished) {
            self.reader.push(data);
        }
    }

    /// Returns the next event, if what was received holds one. Parses no further than that.
    pub fn poll(&mut self, now: Timestamp) -> Option<Event> {
        self.now = now;
        loop {
            if (self.closed_owed || !self.channels_closed.is_empty())
                && let Some(event) = self.owed_event()
            {
                return Some(event);
            }
            if self.phase == Phase::Running
                && let Some(event) = self.whole_publish()
            {
                return Some(event);
            }
            match self.phase {
                Phase::Authenticating
                | Phase::Opening
                | Phase::ClosedByClient
                | Phase::Finished => return None,
                Phase::ProtocolHeader => self.read_protocol_header()?,
                _ => match self.next_frame() {
                    Ok(None) => {
                        self.channels.detach();
                        return None;
                    }
                    Ok(Some(outcome)) => match outcome {
                        Ok(None) => {}
                        Ok(event) => return event,
                        Err(refusal) => self.refuse(&refusal),
                    },
                    Err(error) => self.lose_framing(error),
                },
            }
        }
    }

    /// Returns what came of the next frame, or of the next part of a large body frame whose end has not arrived;
    /// `None` when more must be read.
    #[inline]
    fn next_frame(&mut self) -> Result<Option<Outcome>, FrameError> {
        if let Some(channel) = self.reader.body_channel() {
            let part = self.reader.next_part()?;
            return Ok(part.map(|part| match self.phase {
                Phase::Running => self.content_part(channel, &part),
                _ => Ok(None),
            }));
        }
        if self.phase == Phase::Running
            && let Some((channel, bytes)) = self.reader.begun_body()
            && self.takes_parts(channel, bytes)
        {
            self.reader.begin_parts();
            return Ok(Some(Ok(None)));
        }
        let frame = self.reader.next()?;
        Ok(frame.map(|frame| self.frame(frame)))
    }

    /// Returns whether [`ServerConnection::poll`] has something to look at: bytes or events. False
    /// while only the beginning of a frame is there.
    #[must_use]
    pub fn has_input(&self) -> bool {
        self.closed_owed || !self.channels_closed.is_empty() || self.reader.has_input()
    }

    /// Takes back what was received and not looked at, while the caller checks a login and all waits for that. To go on,
    /// [`ServerConnection::receive`] it again.
    pub fn take_input(&mut self) -> Bytes {
        self.reader.take_input()
    }

    /// Returns whether more must be read of a large body frame before anything else can be. No event
    /// waits then.
    #[must_use]
    pub fn is_mid_body_frame(&self) -> bool {
        self.reader.is_mid_body_frame()
    }

    /// Returns whether another large body is likely to come soon, so that only its head should be
    /// read with what comes before: see [`ServerConnection::body_buffer`].
    #[must_use]
    pub fn expects_body(&self) -> bool {
        self.reader.expects_body()
    }

    /// The caller stops reading for its own reasons, or goes on. In between the client's silence
    /// does not count.
    pub const fn pause_input(&mut self, paused: bool, now: Timestamp) {
        self.now = now;
        self.heartbeat.pause(paused, now);
    }

    /// Queues a method without content. Channel 0 is the connection itself. Dropped if the channel,
    /// or the connection, is not open (any more).
    pub fn send(&mut self, channel: u16, method: &Method) {
        debug_assert!(!method.has_content(), "{} has content", method.name());
        if self.can_send(channel) {
            self.output.method(channel, method);
        }
    }

    /// Queues a method with content: `basic.return` or `basic.get-ok`. `properties` are wire-shaped.
    /// Dropped if the channel is not open; if the properties do not fit into a frame, the channel is
    /// closed with 311.
    pub fn send_content(&mut self, channel: u16, method: &Method, properties: &[u8], body: Bytes) {
        if self.can_send(channel) && self.properties_fit(channel, properties) {
            self.output.content(channel, method, properties, body, self.frame_max);
        }
    }

    /// Queues a `basic.deliver`. Dropped if the channel is not open; if the properties do not fit
    /// into a frame, the channel is closed with 311.
    ///
    /// # Panics
    /// If the tag is longer than a short string.
    #[inline]
    pub fn deliver(
        &mut self,
        channel: u16,
        consumer_tag: &str,
        delivery_tag: u64,
        redelivered: bool,
        message: &Message,
    ) {
        if self.can_send(channel) && self.properties_fit(channel, message.properties()) {
            let frame_max = self.frame_max;
            self.output.deliver(
                channel,
                consumer_tag,
                delivery_tag,
                redelivered,
                message,
                frame_max,
            );
        }
    }

    #[inline]
    fn can_send(&mut self, channel: u16) -> bool {
        self.phase == Phase::Running && (channel == 0 || self.channels.is_open(channel))
    }

    /// Returns whether a content header with these properties fits into a frame: it cannot be
    /// split, and the client need not take a larger frame than it said.
    #[inline]
    #[must_use]
    pub const fn fits(&self, properties: &[u8]) -> bool {
        properties.len() + CONTENT_HEAD + FRAME_OVERHEAD <= self.frame_max as usize
    }

    #[inline]
    fn properties_fit(&mut self, channel: u16, properties: &[u8]) -> bool {
        if self.fits(properties) {
            return true;
        }
        let frame_len = properties.len() + CONTENT_HEAD + FRAME_OVERHEAD;
        let text = format!(
            "message properties need a frame of {frame_len} bytes, frame_max is {}",
            self.frame_max
        );
        self.close_channel(channel, ReplyCode::ContentTooLarge, &text, 0, 0);
        false
    }

    /// Returns what waits to be written.
    pub const fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Returns when to call [`ServerConnection::handle_timeout`]; `None` if there is nothing to
    /// wait for. It changes with every other call.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Finished => None,
            Phase::Running | Phase::ClosedByClient => self.heartbeat.deadline(),
            Phase::Closing { .. } => Some(self.phase_ends),
            _ => {
                let heartbeat = self.heartbeat.deadline();
                Some(heartbeat.map_or(self.phase_ends, |at| at.min(self.phase_ends)))
            }
        }
    }

    /// Does what is due: sends a heartbeat, or gives up a client that is silent or too slow to shake
    /// hands or to close. Calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.now = now;
        match self.phase {
            Phase::Finished => return,
            Phase::Closing { .. } => {
                if now >= self.phase_ends {
                    self.finish();
                }
                return;
            }
            Phase::Running | Phase::ClosedByClient => {}
            _ if now >= self.phase_ends => {
                self.end(CloseCause::HandshakeTimeout);
                return;
            }
            _ => {}
        }
        if self.reader.has_input() {
            // It is we who do not look at what it sent.
            self.heartbeat.received(now);
        }
        if self.heartbeat.is_silent(now) {
            self.end(CloseCause::HeartbeatTimeout);
            return;
        }
        let (written, others_wait) = (self.output.written(), !self.output.is_empty());
        if self.heartbeat.is_due(written, others_wait, now) {
            self.output.heartbeat();
        }
    }

    /// Returns whether the connection is over: write the output, then close the socket.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Returns whether the handshake is done and nobody has closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Returns what the client says about itself; empty before `connection.start-ok`.
    #[must_use]
    pub const fn client_properties(&self) -> &Table {
        &self.client_properties
    }

    /// Returns whether the client named a capability, such as `connection.blocked`.
    #[must_use]
    pub fn capability(&self, name: &str) -> bool {
        match self.client_properties.get("capabilities") {
            Some(Value::Table(table)) => table.get(name) == Some(&Value::Bool(true)),
            _ => false,
        }
    }

    /// Returns the largest frame in bytes, as negotiated.
    #[must_use]
    pub const fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// Returns the largest channel number, as negotiated.
    #[must_use]
    pub const fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// Returns the seconds between heartbeats, as negotiated; 0 is none.
    #[must_use]
    pub const fn heartbeat_s(&self) -> u16 {
        self.heartbeat_s
    }

    /// Returns how the client logged in; `None` before `connection.start-ok`.
    #[must_use]
    pub const fn mechanism(&self) -> Option<Mechanism> {
        self.mechanism
    }

    /// Returns why the connection is over; `None` while it is not.
    #[must_use]
    pub fn close_cause(&self) -> Option<&CloseCause> {
        self.close_cause.as_deref()
    }
}

//! What a session says about itself, for `/api/connections`.

use quelea_amqp_codec::Mechanism;
use quelea_model::{Table, Timestamp};

use crate::channel::Mode;
use crate::session::{Phase, Session};

/// One connection as its session sees it. Plain facts; nothing here counts messages.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// `127.0.0.1:54321 -> 127.0.0.1:5672`.
    pub name: String,
    /// The client's address and port.
    pub peer: String,
    /// Our own.
    pub local: String,
    /// Who; empty before the login.
    pub user: String,
    /// Where; empty before connection.open.
    pub vhost: String,
    /// What it is doing.
    pub state: SessionState,
    /// Open channels.
    pub channels: usize,
    /// Channels that it may open.
    pub channel_max: u16,
    /// Bytes of a frame.
    pub frame_max: u32,
    /// Seconds between heartbeats; 0 is none.
    pub heartbeat_s: u16,
    /// The protocol.
    pub protocol: &'static str,
    /// The SASL mechanism; empty before the login.
    pub mechanism: &'static str,
    /// What the client says about itself.
    pub client_properties: Table,
    /// Since when.
    pub connected_at: Timestamp,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Reads of the socket.
    pub reads: u64,
    /// Writes to the socket.
    pub writes: u64,
    /// Bytes that wait to be written.
    pub output_bytes: usize,
    /// Publishes that wait for their confirm.
    pub unconfirmed: u64,
}

/// What a session is doing, by RabbitMQ's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// In the handshake.
    Starting,
    /// Open.
    Running,
    /// Open; its publishes wait until the store takes more.
    Flow,
    /// Open; its publishes wait until the broker's trouble is over.
    Blocked,
    /// Closed, with bytes left to write.
    Closing,
}

impl SessionState {
    /// The word in `/api/connections`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Flow => "flow",
            Self::Blocked => "blocked",
            Self::Closing => "closing",
        }
    }
}

impl Session {
    /// The connection's facts. Copies the client's properties.
    pub fn report(&mut self) -> SessionReport {
        SessionReport {
            name: self.peer.connection_name(),
            peer: self.peer.address.clone(),
            local: self.peer.local.clone(),
            user: self.user.clone(),
            vhost: self.vhost.clone(),
            state: self.state(),
            channels: self.channels.len(),
            channel_max: self.wire.channel_max(),
            frame_max: self.wire.frame_max(),
            heartbeat_s: self.wire.heartbeat_s(),
            protocol: crate::PROTOCOL,
            mechanism: self.wire.mechanism().map_or("", Mechanism::name),
            client_properties: self.wire.client_properties().clone(),
            connected_at: self.connected_at,
            bytes_in: self.traffic.bytes_in,
            bytes_out: self.traffic.bytes_out,
            reads: self.traffic.reads,
            writes: self.traffic.writes,
            output_bytes: self.wire.output().len(),
            unconfirmed: self.unconfirmed(),
        }
    }

    fn state(&self) -> SessionState {
        match self.phase {
            Phase::Starting | Phase::Authenticating | Phase::Opening => SessionState::Starting,
            Phase::Closed => SessionState::Closing,
            Phase::Open if self.notified_blocked => SessionState::Blocked,
            Phase::Open if self.stalled.is_some() => SessionState::Flow,
            Phase::Open => SessionState::Running,
        }
    }

    fn unconfirmed(&self) -> u64 {
        let unconfirmed = self.channels.values().map(|channel| match &channel.mode {
            Mode::Confirm(confirms) => confirms.unconfirmed(),
            Mode::Plain | Mode::Transactional(_) => 0,
        });
        unconfirmed.sum()
    }
}

//! A blocking AMQP client for what comes before and after the messages: handshake, declarations,
//! clean-up. When a connection is ready for load it becomes a [`Link`].

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, channel, connection};
use quelea_model::{Table, Value};

use crate::clock::{SECOND_NS, now_ns};
use crate::error::BenchError;
use crate::inbox::{ProtocolError, WHOLE_FRAME_BYTES_MAX};
use crate::link::Link;
use crate::template::{FRAME_END, FRAME_METHOD, FRAME_OVERHEAD, push_frame};
use crate::uri::BrokerUri;

/// A broker may take long to declare a replicated queue or to load a backlog, but not longer.
const ANSWER_TIMEOUT_S: u64 = 60;
const HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";
const FRAME_MAX: u32 = 131_072;
/// What the broker may tell a generator that knows it.
const CAPABILITIES: [&str; 5] = [
    "publisher_confirms",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "authentication_failure_close",
];

/// An open connection on which one call follows the other.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    received: BytesMut,
    frame_max: usize,
    product: String,
}

impl Client {
    /// Connects, logs in and enters the virtual host. Heartbeats are declined, so that an idle
    /// connection costs the broker nothing but its state.
    ///
    /// # Errors
    /// [`BenchError`], with what the broker says.
    pub fn connect(uri: &BrokerUri) -> Result<Self, BenchError> {
        let stream = connect_tcp(uri)
            .map_err(|source| BenchError::Connect { uri: uri.to_string(), source })?;
        let timeout = Some(Duration::from_secs(ANSWER_TIMEOUT_S));
        stream.set_read_timeout(timeout).map_err(BenchError::Socket)?;
        stream.set_nodelay(true).map_err(BenchError::Socket)?;
        let mut client = Self {
            stream,
            received: BytesMut::new(),
            frame_max: FRAME_MAX as usize,
            product: String::new(),
        };
        client.handshake(uri)?;
        Ok(client)
    }

    /// Connects as soon as the broker takes connections, within `patience_s` seconds: for a broker
    /// that is just starting.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_patiently(uri: &BrokerUri, patience_s: f64) -> Result<Self, BenchError> {
        let deadline = now_ns() + crate::clock::seconds_to_ns(patience_s);
        loop {
            match Self::connect(uri) {
                Err(BenchError::Connect { .. } | BenchError::Disconnected { .. })
                    if now_ns() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    fn handshake(&mut self, uri: &BrokerUri) -> Result<(), BenchError> {
        self.stream.write_all(HEADER).map_err(BenchError::Socket)?;
        let Method::ConnectionStart(start) = self.read_method("the protocol header")? else {
            return Err(unexpected("the protocol header"));
        };
        self.product = product(&start.server_properties);
        let start_ok = connection::StartOk {
            client_properties: client_properties(),
            mechanism: ShortStr::from_static("PLAIN"),
            response: Bytes::from(format!("\0{}\0{}", uri.user, uri.password)),
            locale: ShortStr::from_static("en_US"),
        };
        self.send(0, &start_ok.into())?;
        let Method::ConnectionTune(tune) = self.read_method("connection.start-ok")? else {
            return Err(unexpected("connection.start-ok"));
        };
        let frame_max = if tune.frame_max == 0 { FRAME_MAX } else { tune.frame_max.min(FRAME_MAX) };
        self.frame_max = frame_max as usize;
        let channel_max = tune.channel_max;
        self.send(0, &connection::TuneOk { channel_max, frame_max, heartbeat: 0 }.into())?;
        let virtual_host = short(&uri.vhost, "the virtual host")?;
        let open = connection::Open { virtual_host };
        let Method::ConnectionOpenOk(_) = self.call(0, &open.into())? else {
            return Err(unexpected("connection.open"));
        };
        Ok(())
    }

    /// Returns the negotiated frame limit, bytes.
    pub(crate) const fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Returns the broker's name and version, as it gives them.
    pub(crate) fn product(&self) -> &str {
        &self.product
    }

    /// Returns the broker's port, and whether it runs on this machine.
    pub(crate) fn broker_address(&self) -> Option<(u16, bool)> {
        let peer = self.stream.peer_addr().ok()?;
        let local = self.stream.local_addr().ok()?;
        Some((peer.port(), peer.ip().is_loopback() || peer.ip() == local.ip()))
    }

    /// Opens a channel of that number.
    ///
    /// # Errors
    /// [`BenchError`], with what the broker says.
    pub fn open_channel(&mut self, number: u16) -> Result<(), BenchError> {
        match self.call(number, &channel::Open::default().into())? {
            Method::ChannelOpenOk(_) => Ok(()),
            _ => Err(unexpected("channel.open")),
        }
    }

    /// Sends a method and waits for the next one of that channel. A close of the channel or the
    /// connection is an error; what the broker says unasked (`connection.blocked`) is passed over.
    ///
    /// # Errors
    /// [`BenchError`], with what the broker says.
    pub fn call(&mut self, channel: u16, method: &Method) -> Result<Method, BenchError> {
        self.send(channel, method)?;
        self.read_method(method.name())
    }

    /// Sends a method without waiting.
    pub(crate) fn send(&mut self, channel: u16, method: &Method) -> Result<(), BenchError> {
        let mut payload = BytesMut::new();
        method.encode(&mut payload);
        let mut frame = Vec::with_capacity(payload.len() + FRAME_OVERHEAD);
        push_frame(&mut frame, FRAME_METHOD, channel, &payload);
        self.stream.write_all(&frame).map_err(BenchError::Socket)
    }

    /// Sends methods in one write, without waiting.
    pub(crate) fn send_all(&mut self, channel: u16, methods: &[Method]) -> Result<(), BenchError> {
        let mut frames = Vec::new();
        for method in methods {
            let mut payload = BytesMut::new();
            method.encode(&mut payload);
            push_frame(&mut frames, FRAME_METHOD, channel, &payload);
        }
        self.stream.write_all(&frames).map_err(BenchError::Socket)
    }

    /// Waits for the next answer to what was sent without waiting, `asked`, and returns it.
    pub(crate) fn answer(&mut self, asked: &'static str) -> Result<Method, BenchError> {
        self.read_method(asked)
    }

    fn read_method(&mut self, asked: &'static str) -> Result<Method, BenchError> {
        let deadline = now_ns() + ANSWER_TIMEOUT_S * SECOND_NS;
        loop {
            if let Some((kind, channel, payload)) = self.take_frame()? {
                if kind != FRAME_METHOD {
                    continue;
                }
                match decode(&payload)? {
                    Method::ConnectionClose(close) => return Err(connection_closed(&close)),
                    Method::ChannelClose(close) => {
                        self.send(channel, &channel::CloseOk::default().into())?;
                        return Err(channel_closed(&close));
                    }
                    Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_) => {}
                    method => return Ok(method),
                }
            } else if now_ns() > deadline {
                return Err(BenchError::NoAnswer { method: asked, seconds: ANSWER_TIMEOUT_S });
            } else {
                self.read_more(asked)?;
            }
        }
    }

    fn read_more(&mut self, asked: &'static str) -> Result<(), BenchError> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(BenchError::Disconnected { doing: "a connection was being set up" }),
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(BenchError::NoAnswer { method: asked, seconds: ANSWER_TIMEOUT_S })
            }
            Err(error) => Err(BenchError::Socket(error)),
        }
    }

    fn take_frame(&mut self) -> Result<Option<(u8, u16, Bytes)>, BenchError> {
        let Some(head) = self.received.first_chunk::<7>() else { return Ok(None) };
        if head.starts_with(b"AMQP") {
            let words = "it does not speak AMQP 0-9-1".to_owned();
            return Err(ProtocolError(words).into());
        }
        let (kind, channel) = (head[0], u16::from_be_bytes([head[1], head[2]]));
        let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
        if size > WHOLE_FRAME_BYTES_MAX {
            return Err(ProtocolError(format!("a frame of {size} bytes")).into());
        }
        if self.received.len() < size + FRAME_OVERHEAD {
            return Ok(None);
        }
        let frame = self.received.split_to(size + FRAME_OVERHEAD).freeze();
        if frame[frame.len() - 1] != FRAME_END {
            return Err(ProtocolError("a frame without its end octet".to_owned()).into());
        }
        Ok(Some((kind, channel, frame.slice(7..frame.len() - 1))))
    }

    /// Makes it the connection for the hot path, with what has arrived already.
    pub(crate) fn into_link(self) -> Result<Link, BenchError> {
        Link::new(self.stream, &self.received)
    }

    /// Returns the socket, with what has been read of it beyond the last answer.
    #[must_use]
    pub fn into_parts(self) -> (TcpStream, BytesMut) {
        (self.stream, self.received)
    }

    /// Ends the connection in order.
    ///
    /// # Errors
    /// [`BenchError`] if it is broken already.
    pub fn close(mut self) -> Result<(), BenchError> {
        let reply_code = quelea_amqp_codec::ReplyCode::Success.code();
        let reply_text = ShortStr::from_static("done");
        let close = connection::Close { reply_code, reply_text, ..Default::default() };
        self.call(0, &close.into()).map(|_| ())
    }
}

fn connect_tcp(uri: &BrokerUri) -> std::io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (uri.host.as_str(), uri.port).to_socket_addrs()?.collect();
    TcpStream::connect(&addresses[..])
}

fn client_properties() -> Table {
    let mut capabilities = Table::new();
    for name in CAPABILITIES {
        capabilities.set(name, Value::Bool(true));
    }
    let mut properties = Table::new();
    properties.set("product", Value::text("quelea bench"));
    properties.set("version", Value::text(env!("CARGO_PKG_VERSION")));
    properties.set("capabilities", Value::Table(capabilities));
    properties
}

fn product(properties: &Table) -> String {
    let text = |name: &str| properties.get(name).and_then(Value::as_text).unwrap_or_default();
    format!("{} {}", text("product"), text("version")).trim().to_owned()
}

/// Decodes a method that is off the hot path.
pub(crate) fn decode(payload: &Bytes) -> Result<Method, ProtocolError> {
    Method::decode(payload).map_err(|error| ProtocolError(error.to_string()))
}

pub(crate) fn connection_closed(close: &connection::Close) -> BenchError {
    BenchError::ConnectionClosed { code: close.reply_code, text: close.reply_text.to_string() }
}

pub(crate) fn channel_closed(close: &channel::Close) -> BenchError {
    BenchError::ChannelClosed { code: close.reply_code, text: close.reply_text.to_string() }
}

/// Returns the error that the broker answered `asked` with something else than its `-ok`.
pub(crate) fn unexpected(asked: &'static str) -> BenchError {
    ProtocolError(format!("an unexpected answer to {asked}")).into()
}

/// Returns a name as a short string, or words about what is too long.
pub(crate) fn short(text: &str, what: &'static str) -> Result<ShortStr, BenchError> {
    ShortStr::from_bytes(Bytes::copy_from_slice(text.as_bytes()))
        .map_err(|error| BenchError::Arguments(format!("{what} '{text}': {error}")))
}

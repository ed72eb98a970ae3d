//! A small blocking AMQP client: it sends what a test says, and hands out what comes, in order.
//! The tests of `quelea-server` use it too.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{Method, basic, channel, confirm, connection, queue};
use quelea_amqp_codec::{FrameKind, FrameReader, Output, ShortStr};
use quelea_model::{Table, Value};

/// What any wait may take; far more than any step of a test needs, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Wire-shaped properties of a persistent message, and of a transient one.
pub(crate) const PERSISTENT: &[u8] = &[0x10, 0x00, 2];
pub(crate) const TRANSIENT: &[u8] = &[0, 0];

/// A method, with its content if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Incoming {
    pub(crate) channel: u16,
    pub(crate) method: Method,
    pub(crate) body: Bytes,
}

pub(crate) struct Client {
    stream: TcpStream,
    frames: FrameReader,
    frame_max: u32,
    output: Output,
    /// A method whose content is not complete, and the bytes of body still to come.
    partial: Option<(Incoming, BytesMut, Option<u64>)>,
    /// It does not answer connection.close.
    silent: bool,
    /// Came while something else was waited for.
    passed: VecDeque<Incoming>,
}

/// Why a client has no answer.
#[derive(Debug)]
pub(crate) enum Gone {
    /// The peer closed the socket, or it broke.
    Disconnected,
    /// The broker closed the connection or the channel, which the client answered with close-ok.
    Closed { code: u16, text: String },
}

impl Client {
    /// Logs in as guest on channel 1 of `/`.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("guest can log in")
    }

    pub(crate) fn try_connect(address: SocketAddr) -> Result<Self, Gone> {
        let mut client = Self::login(address, "guest", "guest")?;
        client.open_channel(1)?;
        Ok(client)
    }

    /// Logs in and enters `/`; opens no channel.
    pub(crate) fn login(address: SocketAddr, user: &str, password: &str) -> Result<Self, Gone> {
        Self::handshake(address, user, password, 0)
    }

    /// Promises heartbeats, which this client never sends.
    pub(crate) fn login_with_heartbeat(address: SocketAddr, seconds: u16) -> Result<Self, Gone> {
        Self::handshake(address, "guest", "guest", seconds)
    }

    fn handshake(
        address: SocketAddr,
        user: &str,
        password: &str,
        heartbeat: u16,
    ) -> Result<Self, Gone> {
        let mut client = Self::try_password(address, user, password)?;
        let Method::ConnectionTune(tune) = client.expect(0, "connection.tune")? else {
            unreachable!("expect checks the method");
        };
        let (channel_max, frame_max) = (tune.channel_max, tune.frame_max);
        client.frame_max = frame_max;
        client.send(0, connection::TuneOk { channel_max, frame_max, heartbeat });
        client.send(0, connection::Open { virtual_host: ShortStr::from("/") });
        client.expect(0, "connection.open-ok")?;
        Ok(client)
    }

    /// Sends a password, and reads no answer yet.
    pub(crate) fn try_password(
        address: SocketAddr,
        user: &str,
        password: &str,
    ) -> Result<Self, Gone> {
        Self::try_password_before(address, user, password, &[])
    }

    /// Sends a password and, in the same write, what does not wait for the answer.
    pub(crate) fn try_password_before(
        address: SocketAddr,
        user: &str,
        password: &str,
        early: &[u8],
    ) -> Result<Self, Gone> {
        let mut client = Self::raw(address)?;
        client.write(PROTOCOL_HEADER)?;
        client.expect(0, "connection.start")?;
        let capabilities = ["basic.nack", "connection.blocked", "authentication_failure_close"];
        let capabilities = capabilities.map(|name| (name, Value::Bool(true)));
        let start_ok = connection::StartOk {
            client_properties: Table::from_iter([(
                "capabilities",
                Value::Table(Table::from_iter(capabilities)),
            )]),
            mechanism: ShortStr::from("PLAIN"),
            response: Bytes::from(format!("\0{user}\0{password}")),
            locale: ShortStr::from("en_US"),
        };
        client.send(0, start_ok);
        client.output.put_slice(early);
        client.flush()?;
        Ok(client)
    }

    /// Connects a socket, on which nothing was said yet.
    pub(crate) fn raw(address: SocketAddr) -> Result<Self, Gone> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(gone)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(gone)?;
        Ok(Self {
            stream,
            frames: FrameReader::new(u32::MAX),
            frame_max: 4096,
            output: Output::new(),
            partial: None,
            silent: false,
            passed: VecDeque::new(),
        })
    }

    pub(crate) fn open_channel(&mut self, number: u16) -> Result<(), Gone> {
        self.send(number, channel::Open::default());
        self.expect(number, "channel.open-ok").map(drop)
    }

    /// Declares a queue; gives its ready messages and consumers.
    pub(crate) fn declare(&mut self, name: &str, durable: bool) -> Result<(u32, u32), Gone> {
        self.declare_with(queue::Declare {
            queue: ShortStr::from(name),
            durable,
            ..queue::Declare::default()
        })
    }

    pub(crate) fn declare_with(&mut self, declare: queue::Declare) -> Result<(u32, u32), Gone> {
        self.send(1, declare);
        match self.expect(1, "queue.declare-ok")? {
            Method::QueueDeclareOk(ok) => Ok((ok.message_count, ok.consumer_count)),
            _ => unreachable!("expect checks the method"),
        }
    }

    pub(crate) fn confirm_select(&mut self) -> Result<(), Gone> {
        self.send(1, confirm::Select::default());
        self.expect(1, "confirm.select-ok").map(drop)
    }

    pub(crate) fn qos(&mut self, prefetch_count: u16) -> Result<(), Gone> {
        self.send(1, basic::Qos { prefetch_count, ..basic::Qos::default() });
        self.expect(1, "basic.qos-ok").map(drop)
    }

    pub(crate) fn consume(&mut self, queue: &str, no_ack: bool) -> Result<(), Gone> {
        let queue = ShortStr::from(queue);
        self.send(1, basic::Consume { queue, no_ack, ..basic::Consume::default() });
        self.expect(1, "basic.consume-ok").map(drop)
    }

    /// Gets one message from a queue, acknowledged at once.
    pub(crate) fn get(&mut self, queue: &str) -> Result<Option<Bytes>, Gone> {
        let queue = ShortStr::from(queue);
        self.send(1, basic::Get { queue, no_ack: true });
        loop {
            let incoming = self.next()?;
            match incoming.method {
                Method::BasicGetOk(_) => return Ok(Some(incoming.body)),
                Method::BasicGetEmpty(_) => return Ok(None),
                _ => self.passed.push_back(incoming),
            }
        }
    }

    /// Queues a publish to the default exchange, without writing it.
    pub(crate) fn publish(&mut self, queue: &str, properties: &[u8], body: impl Into<Bytes>) {
        self.publish_to("", queue, properties, body);
    }

    /// Queues a publish, without writing it.
    pub(crate) fn publish_to(
        &mut self,
        exchange: &str,
        routing_key: &str,
        properties: &[u8],
        body: impl Into<Bytes>,
    ) {
        let body = body.into();
        self.output.publish(1, exchange, routing_key, false, properties, body, self.frame_max);
    }

    /// Waits until a confirm says that publish number `tag` of channel 1 is safe.
    pub(crate) fn until_confirmed(&mut self, tag: u64) -> Result<(), Gone> {
        loop {
            match self.expect(1, "basic.ack")? {
                Method::BasicAck(ack) if ack.delivery_tag >= tag => return Ok(()),
                _ => {}
            }
        }
    }

    pub(crate) fn ack(&mut self, delivery_tag: u64, multiple: bool) {
        self.send(1, basic::Ack { delivery_tag, multiple });
    }

    /// Queues a method, without writing it.
    pub(crate) fn send(&mut self, channel: u16, method: impl Into<Method>) {
        self.output.method(channel, &method.into());
    }

    /// Writes all that is queued.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        let bytes = self.output.to_bytes();
        self.output = Output::new();
        self.write(&bytes)
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).map_err(gone)
    }

    /// Returns what comes next, after writing what is queued.
    pub(crate) fn next(&mut self) -> Result<Incoming, Gone> {
        self.flush()?;
        match self.passed.pop_front() {
            Some(incoming) => Ok(incoming),
            None => self.receive(),
        }
    }

    /// Returns what has come already, or comes within `wait`.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Option<Incoming>, Gone> {
        self.flush()?;
        if let Some(incoming) = self.passed.pop_front() {
            return Ok(Some(incoming));
        }
        self.stream.set_read_timeout(Some(wait)).map_err(gone)?;
        let mut nothing = false;
        let incoming = self.receive_unless(&mut nothing);
        self.stream.set_read_timeout(Some(PATIENCE)).map_err(gone)?;
        if nothing { Ok(None) } else { incoming.map(Some) }
    }

    /// Waits for a method on a channel, unless it was passed over before. What comes in front of it
    /// is handed out by [`Client::next`] later.
    pub(crate) fn expect(&mut self, channel: u16, name: &str) -> Result<Method, Gone> {
        self.flush()?;
        let wanted = |i: &Incoming| i.channel == channel && i.method.name() == name;
        if let Some(at) = self.passed.iter().position(wanted)
            && let Some(incoming) = self.passed.remove(at)
        {
            return Ok(incoming.method);
        }
        loop {
            let incoming = self.receive()?;
            if wanted(&incoming) {
                return Ok(incoming.method);
            }
            self.passed.push_back(incoming);
        }
    }

    /// Waits until the broker has closed the connection.
    pub(crate) fn until_gone(&mut self) -> Gone {
        loop {
            if let Err(gone) = self.receive() {
                return gone;
            }
        }
    }

    /// Reads all that the broker sends until it closes the socket, as it is.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).expect("the broker closes its end in good order");
        bytes
    }

    /// Closes the connection in good order.
    pub(crate) fn close(mut self) -> Result<(), Gone> {
        let reply_text = ShortStr::from("bye");
        self.send(0, connection::Close { reply_code: 200, reply_text, class_id: 0, method_id: 0 });
        self.expect(0, "connection.close-ok").map(drop)
    }

    /// Waits for the broker's connection.close, which this client leaves without an answer; returns
    /// its code.
    pub(crate) fn until_told_to_close(&mut self) -> Result<u16, Gone> {
        self.silent = true;
        loop {
            if let Method::ConnectionClose(close) = self.receive()?.method {
                return Ok(close.reply_code);
            }
        }
    }

    fn receive(&mut self) -> Result<Incoming, Gone> {
        let started = Instant::now();
        let mut nothing = false;
        let incoming = self.receive_unless(&mut nothing);
        assert!(!nothing, "nothing came from the broker for {:?}", started.elapsed());
        incoming
    }

    /// Sets `nothing` if the socket's read timeout passes.
    fn receive_unless(&mut self, nothing: &mut bool) -> Result<Incoming, Gone> {
        loop {
            while let Some(frame) = self.frames.next().expect("the broker sends frames") {
                let (kind, channel) = (frame.kind, frame.channel);
                if let Some(incoming) = self.take(kind, channel, frame.payload) {
                    return self.notice_close(incoming);
                }
            }
            let mut buffer = BytesMut::zeroed(64 * 1024);
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Gone::Disconnected),
                Ok(count) => {
                    buffer.truncate(count);
                    self.frames.push(buffer.freeze());
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    *nothing = true;
                    return Err(Gone::Disconnected);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Gone::Disconnected),
            }
        }
    }

    fn take(&mut self, kind: FrameKind, channel: u16, payload: Bytes) -> Option<Incoming> {
        match kind {
            FrameKind::Heartbeat => None,
            FrameKind::Method => {
                let method = Method::decode(&payload).expect("the broker's methods decode");
                let incoming = Incoming { channel, method, body: Bytes::new() };
                if !incoming.method.has_content() {
                    return Some(incoming);
                }
                self.partial = Some((incoming, BytesMut::new(), None));
                None
            }
            FrameKind::Header => {
                let (_, _, size) = self.partial.as_mut().expect("a header follows its method");
                let bytes = payload[4..12].try_into().expect("eight bytes of size");
                *size = Some(u64::from_be_bytes(bytes));
                self.take_whole()
            }
            FrameKind::Body => {
                let (_, body, _) = self.partial.as_mut().expect("a body follows its header");
                body.extend_from_slice(&payload);
                self.take_whole()
            }
        }
    }

    fn take_whole(&mut self) -> Option<Incoming> {
        let (_, body, size) = self.partial.as_ref()?;
        if *size != Some(body.len() as u64) {
            return None;
        }
        let (mut incoming, body, _) = self.partial.take()?;
        incoming.body = body.freeze();
        Some(incoming)
    }

    fn notice_close(&mut self, incoming: Incoming) -> Result<Incoming, Gone> {
        let (code, text) = match &incoming.method {
            _ if self.silent => return Ok(incoming),
            Method::ConnectionClose(close) => (close.reply_code, &close.reply_text),
            Method::ChannelClose(close) => (close.reply_code, &close.reply_text),
            _ => return Ok(incoming),
        };
        let text = text.to_string();
        match incoming.channel {
            0 => self.send(0, connection::CloseOk {}),
            number => self.send(number, channel::CloseOk {}),
        }
        self.flush()?;
        Err(Gone::Closed { code, text })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn gone(_: io::Error) -> Gone {
    Gone::Disconnected
}

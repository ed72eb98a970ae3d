//! One TCP connection that speaks frames: greeting, heartbeats, reading and writing in batches.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use quelea_elastic_proto::frame::{Frame, Hello, Role, WireError};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{FrameBuffer, Time};
use tokio::net::TcpStream;

use crate::options::Options;

/// Slices in one call of `writev`.
const SLICES_MAX: usize = 64;
/// What one read may bring: as much as one wake-up should hand on.
const READ_BYTES: usize = 256 * 1024;
/// Heartbeats until WELCOME has set the period.
const HEARTBEAT_MS: u32 = 1_000;
/// Periods of silence after which a connection is dead.
const SILENT_PERIODS: u64 = 3;
/// A connection that is not made and greeted by then is given up.
const GREETING_MS_MAX: u64 = 2_000;
/// A connection that is to be closed is given up if what remains is not taken by then.
const CLOSING_MS_MAX: u64 = 5_000;

pub(super) struct Connection {
    stream: Stream,
    input: FrameBuffer,
    output: VecDeque<Bytes>,
    welcomed: bool,
    heartbeat_ms: u64,
    opened: Time,
    last_read: Time,
    last_write: Time,
    last_ping: Time,
    /// Since when it is to be closed, when all is written.
    closing: Option<Time>,
}

enum Stream {
    Connecting(Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>),
    Open(TcpStream),
}

/// What [`Connection::poll_read`] has read.
pub(super) enum ReadOutcome {
    /// Nothing.
    Nothing,
    /// The connection is made; WELCOME is not there yet.
    Connected,
    /// WELCOME.
    Greeted,
    /// Whole frames.
    Frames(Bytes),
    /// The peer refused us; the connection is over.
    Refused(WireError),
    /// The connection is over.
    Lost(String),
}

impl Connection {
    pub(super) fn open(address: String, options: &Options, now: Time) -> Self {
        let hello = Frame::Hello(Hello {
            version: VERSION,
            role: Role::Client,
            name: options.name.clone(),
            key: options.key.clone(),
        });
        let connect = async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let mut connection = Self {
            stream: Stream::Connecting(Box::pin(connect)),
            input: FrameBuffer::new(),
            output: VecDeque::new(),
            welcomed: false,
            heartbeat_ms: u64::from(HEARTBEAT_MS),
            opened: now,
            last_read: now,
            last_write: now,
            last_ping: now,
            closing: None,
        };
        connection.send(&hello);
        connection
    }

    /// Puts a frame behind what is to be written. One that is beyond its limits is left out: sessions
    /// check theirs.
    pub(super) fn send(&mut self, frame: &Frame) {
        let mut bytes = BytesMut::new();
        match frame.encode(&mut bytes) {
            Ok(()) => self.output.push_back(bytes.freeze()),
            Err(error) => tracing::warn!(%error, "a frame was not sent"),
        }
    }

    pub(super) fn send_bytes(&mut self, bytes: Bytes) {
        self.output.push_back(bytes);
    }

    /// Nothing more is handled; what is to be written still is.
    pub(super) fn close(&mut self, now: Time) {
        self.closing.get_or_insert(now);
    }

    /// It is dead: what is to be written is not.
    pub(super) fn abandon(&mut self, now: Time) {
        self.output.clear();
        self.close(now);
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    pub(super) const fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Returns whether it is a closing connection that has nothing to write, or is not allowed to
    /// wait longer.
    pub(super) fn is_over(&self, now: Time) -> bool {
        let Some(since) = self.closing else { return false };
        self.output.is_empty()
            || matches!(self.stream, Stream::Connecting(_))
            || now.since_ms(since) >= CLOSING_MS_MAX
    }

    /// Connects, greets, reads until there is something whole. After [`ReadOutcome::Nothing`] it wakes `cx`.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, now: Time) -> ReadOutcome {
        if let Stream::Connecting(connect) = &mut self.stream {
            return match connect.as_mut().poll(cx) {
                Poll::Pending => ReadOutcome::Nothing,
                Poll::Ready(Ok(stream)) => {
                    self.stream = Stream::Open(stream);
                    self.last_read = now;
                    ReadOutcome::Connected
                }
                Poll::Ready(Err(error)) => ReadOutcome::Lost(error.to_string()),
            };
        }
        // Until there is something whole, or the socket has no more and wakes us when it has.
        loop {
            let Stream::Open(stream) = &mut self.stream else { return ReadOutcome::Nothing };
            match stream.poll_read_ready(cx) {
                Poll::Pending => return ReadOutcome::Nothing,
                Poll::Ready(Err(error)) => return ReadOutcome::Lost(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            match stream.try_read_buf(self.input.room_of(READ_BYTES)) {
                Ok(0) => return ReadOutcome::Lost("closed by the peer".to_owned()),
                Ok(_) => self.last_read = now,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return ReadOutcome::Lost(error.to_string()),
            }
            let outcome = if self.welcomed { self.frames() } else { self.greeting() };
            if !matches!(outcome, ReadOutcome::Nothing) {
                return outcome;
            }
        }
    }

    /// Returns the whole frames that were read, as those that came together with WELCOME.
    pub(super) fn frames(&mut self) -> ReadOutcome {
        match self.input.take() {
            Ok(frames) if frames.is_empty() => ReadOutcome::Nothing,
            Ok(frames) => ReadOutcome::Frames(frames),
            Err(error) => ReadOutcome::Lost(error.to_string()),
        }
    }

    fn greeting(&mut self) -> ReadOutcome {
        match self.input.next_frame() {
            Ok(None) => ReadOutcome::Nothing,
            Ok(Some(Frame::Welcome(welcome))) => {
                self.welcomed = true;
                self.input.greeted();
                self.heartbeat_ms = u64::from(welcome.heartbeat_ms.max(1));
                ReadOutcome::Greeted
            }
            Ok(Some(Frame::Error(error))) => ReadOutcome::Refused(error),
            Ok(Some(other)) => {
                ReadOutcome::Lost(format!("{} came instead of WELCOME", other.kind().name()))
            }
            Err(error) => ReadOutcome::Lost(error.to_string()),
        }
    }

    /// Writes what the socket takes.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, now: Time) -> Result<(), String> {
        let Stream::Open(stream) = &mut self.stream else { return Ok(()) };
        while !self.output.is_empty() {
            match stream.poll_write_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.output.len().min(SLICES_MAX);
            for (slice, bytes) in slices.iter_mut().zip(&self.output) {
                *slice = IoSlice::new(bytes);
            }
            match stream.try_write_vectored(&slices[..count]) {
                Ok(written) => consume(&mut self.output, written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
            self.last_write = now;
        }
        Ok(())
    }

    /// Sends a PING if it is time; says why the connection is given up, if it is.
    pub(super) fn heartbeat(&mut self, now: Time) -> Option<String> {
        if !self.welcomed {
            let late = now.since_ms(self.opened) >= GREETING_MS_MAX;
            return late.then(|| format!("no WELCOME within {GREETING_MS_MAX} ms"));
        }
        let silent_ms = now.since_ms(self.last_read);
        if silent_ms >= SILENT_PERIODS * self.heartbeat_ms && self.closing.is_none() {
            return Some(format!("silent for {silent_ms} ms"));
        }
        if self.next_ping() <= now && self.closing.is_none() {
            self.last_ping = now;
            // What waits to be written shows as much.
            if self.output.is_empty() {
                self.send(&Frame::Ping(0));
            }
        }
        None
    }

    /// Nobody reads from it: its silence says nothing.
    pub(super) const fn pause_reading(&mut self, now: Time) {
        self.last_read = now;
    }

    fn next_ping(&self) -> Time {
        self.last_ping.max(self.last_write.min(self.last_read)).plus_ms(self.heartbeat_ms)
    }

    /// Returns when to call [`Connection::heartbeat`] again.
    pub(super) fn next_heartbeat(&self) -> Time {
        if let Some(since) = self.closing {
            return since.plus_ms(CLOSING_MS_MAX);
        }
        if !self.welcomed {
            return self.opened.plus_ms(GREETING_MS_MAX);
        }
        self.next_ping().min(self.last_read.plus_ms(SILENT_PERIODS * self.heartbeat_ms))
    }
}

/// Forgets what was written.
fn consume(output: &mut VecDeque<Bytes>, mut bytes: usize) {
    while let Some(front) = output.front_mut() {
        if bytes < front.len() {
            front.advance(bytes);
            return;
        }
        bytes -= front.len();
        output.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use quelea_elastic_proto::frame::Welcome;
    use quelea_elastic_proto::{MessageSeq, Slot, parts};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns what is read next; waits as the driver does, for the waker alone.
    async fn next_read(connection: &mut Connection) -> ReadOutcome {
        let next = poll_fn(|cx| match connection.poll_read(cx, Time::ZERO) {
            ReadOutcome::Nothing => Poll::Pending,
            outcome => Poll::Ready(outcome),
        });
        let read = tokio::time::timeout(Duration::from_secs(60), next).await;
        read.expect("the connection wakes who waits")
    }

    fn encoded(frame: &Frame) -> BytesMut {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes).expect("a frame within its limits");
        bytes
    }

    #[tokio::test]
    async fn a_frame_in_several_reads_wakes_the_reader() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let mut connection = Connection::open(address, &Options::default(), Time::ZERO);
        let accept = async { listener.accept().await.expect("a connection").0 };
        let (mut peer, first) = tokio::join!(accept, next_read(&mut connection));
        assert!(matches!(first, ReadOutcome::Connected));
        let body = vec![0; 3 * READ_BYTES];
        let parts = parts::encode(&[&body]).expect("a message");
        let data = encoded(&Frame::Data { slot: Slot(1), sequence: MessageSeq(0), parts });
        let welcome = encoded(&Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 1_000 }));
        let write = async {
            for bytes in [&welcome[..], &data[..]] {
                peer.write_all(bytes).await.expect("it is read");
            }
        };
        let read = async {
            assert!(matches!(next_read(&mut connection).await, ReadOutcome::Greeted));
            match next_read(&mut connection).await {
                ReadOutcome::Frames(frames) => assert_eq!(frames, data),
                _ => panic!("a frame was sent"),
            }
        };
        tokio::join!(write, read);
    }
}

//! A socket with its ZMTP connection: reads, writes, and keeps its times.

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes};
use quelea_elastic_zmtp::{Connection, Error, Event, Security, Settings, ZmtpTime};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until, timeout};

use super::outbox::Outbox;

/// The first buffer of a connection: listeners only ever say a few words.
const READ_BYTES_MIN: usize = 4 << 10;
/// One read at most: what it brings is given on before the next one.
const READ_BYTES_MAX: usize = 256 << 10;
/// How much of what was taken for a peer may wait for its socket: enough to fill it, the rest stays where
/// slowness is counted.
pub(crate) const WRITE_AHEAD_BYTES: usize = 256 << 10;
/// Answers to what the peer sends while it reads nothing: PONGs. Whoever causes more is cut off.
const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// How long a peer may take to read why it has to go.
const LINGER: Duration = Duration::from_secs(1);

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// It broke.
    #[error("{0}")]
    Broken(#[from] io::Error),
    /// The protocol was not kept, the peer may not be here, or was not heard in time.
    #[error("{0}")]
    Protocol(#[from] Error),
    /// The relay lets it go.
    #[error("{0}")]
    Dismissed(String),
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was read: take all events.
    Read,
    /// There is room again for what is to be written.
    Written,
}

pub(crate) struct Wire {
    stream: TcpStream,
    connection: Connection,
    outbox: Outbox,
    timer: Pin<Box<Sleep>>,
    timer_at: Option<ZmtpTime>,
    started: Instant,
    read_bytes: usize,
    address: SocketAddr,
    /// Nothing can be written to it any more.
    is_deaf: bool,
}

impl Wire {
    pub(crate) fn new(
        stream: TcpStream,
        address: SocketAddr,
        settings: Settings,
        security: Security,
    ) -> Self {
        let started = Instant::now();
        Self {
            stream,
            connection: Connection::new(settings, security, ZmtpTime(0)),
            outbox: Outbox::default(),
            timer: Box::pin(sleep_until(started.into())),
            timer_at: None,
            started,
            read_bytes: READ_BYTES_MIN,
            address,
            is_deaf: false,
        }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes what is to be written, and waits until something has happened. Reads, and keeps the times, only
    /// if `may_read`.
    /// Dropping the future loses nothing.
    pub(crate) async fn step(&mut self, may_read: bool) -> Result<Step, End> {
        poll_fn(|cx| self.poll_step(cx, may_read)).await
    }

    /// Takes the next event of what was read.
    pub(crate) fn event(&mut self) -> Result<Option<Event>, End> {
        let now = self.now();
        Ok(self.connection.poll_event(now)?)
    }

    /// Has a message of framed parts written.
    pub(crate) fn send(&mut self, message: &Bytes) {
        // Commands that were made before it go before it: under CURVE all is numbered.
        self.collect_output();
        if let Some(sealed) = self.connection.seal(message) {
            self.outbox.push(sealed);
        }
    }

    /// Returns whether more messages should be taken for the peer.
    pub(crate) const fn has_room(&self) -> bool {
        self.outbox.bytes() < WRITE_AHEAD_BYTES
    }

    pub(crate) fn subscribe(&mut self, prefix: &[u8], on: bool) {
        if on {
            self.connection.subscribe(prefix);
        } else {
            self.connection.cancel(prefix);
        }
        // It counts for whether there is room for more.
        self.collect_output();
    }

    /// Lets the peer read what is left for it, if it does so soon.
    pub(crate) async fn close(mut self) {
        self.collect_output();
        let left = async {
            while self.outbox.bytes() > 0 {
                let (slices, count) = self.outbox.slices();
                let bytes = self.stream.write_vectored(&slices[..count]).await?;
                if bytes == 0 {
                    break;
                }
                self.outbox.written(bytes);
            }
            self.stream.shutdown().await?;
            // Closing with unread input would destroy what is on its way.
            let mut nobody = [0; 4_096];
            while self.stream.read(&mut nobody).await? > 0 {}
            io::Result::Ok(())
        };
        // It had its chance: what it missed of it, it does not want.
        let _ = timeout(LINGER, left).await;
    }

    fn now(&self) -> ZmtpTime {
        ZmtpTime(self.started.elapsed().as_millis() as u64)
    }

    fn poll_step(&mut self, cx: &mut Context<'_>, may_read: bool) -> Poll<Result<Step, End>> {
        if self.poll_write(cx)? {
            return Poll::Ready(Ok(Step::Written));
        }
        if may_read {
            if self.poll_read(cx)?.is_ready() {
                return Poll::Ready(Ok(Step::Read));
            }
            self.poll_timer(cx)
        } else {
            // Whom we do not read is not silent. Nor is it sent a PING: it may have closed its end, and then
            // a reset would destroy what it has sent and we have not read.
            let now = self.now();
            self.connection.mark_received(now);
            Poll::Pending
        }
    }

    /// Writes what waits. Returns whether room has come of it. Where nothing can be written any
    /// more, what the peer has sent is read to its end: that says why.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.collect_output();
        if self.is_deaf {
            self.outbox = Outbox::default();
        }
        let had_room = self.has_room();
        while self.outbox.bytes() > 0 {
            let (slices, count) = self.outbox.slices();
            match Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0)) => return Err(End::Closed),
                Poll::Ready(Ok(bytes)) => self.outbox.written(bytes),
                Poll::Ready(Err(_)) => {
                    self.is_deaf = true;
                    self.outbox = Outbox::default();
                }
                Poll::Pending => break,
            }
        }
        if self.outbox.bytes() > OUTBOX_BYTES_MAX {
            let text = format!(
                "{} bytes of answers wait, the limit is {OUTBOX_BYTES_MAX}",
                self.outbox.bytes()
            );
            return Err(End::Dismissed(text));
        }
        Ok(!had_room && self.has_room())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, End> {
        let buffer = self.connection.buffer();
        buffer.reserve(self.read_bytes);
        // The future holds nothing between two polls, so that the buffer is only lent.
        match pin!(self.stream.read_buf(&mut buffer.limit(READ_BYTES_MAX))).poll(cx) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(Ok(0)) => Err(End::Closed),
            Poll::Ready(Err(error)) => Err(error.into()),
            Poll::Ready(Ok(bytes)) => {
                if bytes >= self.read_bytes {
                    self.read_bytes = READ_BYTES_MAX.min(self.read_bytes * 4);
                }
                let now = self.now();
                self.connection.mark_received(now);
                Ok(Poll::Ready(()))
            }
        }
    }

    /// Writes PINGs when it is time, and gives up who is not heard.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, End>> {
        loop {
            let deadline = self.connection.next_deadline();
            if deadline != self.timer_at {
                self.timer_at = deadline;
                if let Some(ZmtpTime(ms)) = deadline {
                    self.timer.as_mut().reset((self.started + Duration::from_millis(ms)).into());
                }
            }
            if deadline.is_none() || self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = self.now();
            self.connection.handle_timeout(now)?;
            self.timer_at = None;
            if self.poll_write(cx)? {
                return Poll::Ready(Ok(Step::Written));
            }
        }
    }

    fn collect_output(&mut self) {
        let output = self.connection.take_output();
        if !output.is_empty() {
            self.outbox.push(output);
        }
    }
}

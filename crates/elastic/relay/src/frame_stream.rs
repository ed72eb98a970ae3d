//! A connection that the relay makes, to its directory or its keeper: HELLO and WELCOME, then frames both
//! ways.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use quelea_elastic_proto::frame::{Frame, WireError};
use quelea_elastic_proto::{FrameBuffer, FrameError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// How long the peer may take to accept, and to answer what has an answer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Why such a connection ended, or was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("it closed the connection")]
    Closed,
    #[error("it says: {}", .0.text)]
    Refused(WireError),
    #[error("it sent what is no frame: {0}")]
    Malformed(#[from] FrameError),
    #[error("it has not answered {0} within {ANSWER_MAX:?}")]
    NoAnswer(&'static str),
}

/// Connects, sends `frames`, of which the first is HELLO, and waits for WELCOME. Reads up to `read_bytes` at
/// once.
pub(crate) async fn connect(
    address: &str,
    frames: &[Frame],
    read_bytes: usize,
) -> Result<(FrameReader, FrameWriter), StreamError> {
    let stream = answered("CONNECT", async {
        TcpStream::connect(address).await.map_err(StreamError::Connect)
    });
    let stream = stream.await?;
    quelea_net::prepare_socket(&stream)?;
    let (socket, writer) = stream.into_split();
    let mut writer = FrameWriter(writer);
    let mut reader = FrameReader { socket, buffer: FrameBuffer::new(), read_bytes };
    writer.send(frames).await?;
    match answered("HELLO", reader.next()).await? {
        Frame::Welcome(_) => reader.buffer.greeted(),
        Frame::Error(error) => return Err(StreamError::Refused(error)),
        _ => return Err(StreamError::NoAnswer("HELLO")),
    }
    Ok((reader, writer))
}

/// Waits for what answers `to`, for [`ANSWER_MAX`] at most.
pub(crate) async fn answered<T>(
    to: &'static str,
    answer: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, StreamError> {
    timeout(ANSWER_MAX, answer).await.map_err(|_| StreamError::NoAnswer(to))?
}

pub(crate) struct FrameReader {
    socket: OwnedReadHalf,
    buffer: FrameBuffer,
    read_bytes: usize,
}

impl FrameReader {
    /// Returns the next frame. Dropping the future loses nothing: what was read is in the buffer.
    pub(crate) async fn next(&mut self) -> Result<Frame, StreamError> {
        loop {
            if let Some(frame) = self.buffer.next_frame()? {
                return Ok(frame);
            }
            if self.socket.read_buf(self.buffer.room_of(self.read_bytes)).await? == 0 {
                return Err(StreamError::Closed);
            }
        }
    }
}

pub(crate) struct FrameWriter(OwnedWriteHalf);

impl FrameWriter {
    pub(crate) async fn send(&mut self, frames: &[Frame]) -> Result<(), StreamError> {
        let mut bytes = BytesMut::new();
        for frame in frames {
            frame.encode(&mut bytes)?;
        }
        self.send_bytes(&bytes).await
    }

    /// Sends whole frames.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        Ok(self.0.write_all(bytes).await?)
    }
}

//! A native client's connection: the task that reads it.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use quelea_elastic_core::relay::{Port, limits};
use quelea_elastic_proto::frame::{Frame, WireError};
use quelea_elastic_proto::wire::FrameBuffer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use crate::node::{READ_BYTES_MAX, SharedNode, SocketState};

/// The first buffer of a connection: most only ever say a few words.
const READ_BYTES_MIN: usize = 8 * 1024;

/// Serves one connection until it is gone.
pub(crate) async fn serve(node: SharedNode, stream: TcpStream) {
    let port = node.with(|node| {
        node.read_clock();
        node.relay.connect()
    });
    let port = match port {
        Ok(port) => port,
        Err(error) => return turn_away(stream, error).await,
    };
    let (reader, writer) = stream.into_split();
    node.with(|node| node.add_socket(port, writer));
    let mut connection =
        Connection { port, reader, buffer: FrameBuffer::new(), read_bytes: READ_BYTES_MIN };
    loop {
        match poll_fn(|cx| connection.poll(&node, cx)).await {
            Step::Read => {}
            // Whoever sends a lot lets the others come first, and the turn.
            Step::HasMore => tokio::task::yield_now().await,
            Step::Closed => {
                // The peer may be reading what is left for it. What it still sends is thrown away:
                // closing with unread input would destroy what is on its way.
                let left = discard(&mut connection.reader);
                let _ = timeout(Duration::from_millis(limits::LINGER_MS), left).await;
                break;
            }
            Step::End => break,
        }
    }
    node.with(|node| node.remove(port));
}

/// There is no room for this connection: it is sent an ERROR, if it takes it at once.
async fn turn_away(mut stream: TcpStream, error: WireError) {
    let mut bytes = BytesMut::new();
    if Frame::Error(error).encode(&mut bytes).is_ok() {
        let sent = stream.write_all(&bytes);
        let _ = timeout(Duration::from_millis(limits::LINGER_MS), sent).await;
    }
}

async fn discard(reader: &mut OwnedReadHalf) {
    let mut nobody = [0; 4_096];
    while matches!(reader.read(&mut nobody).await, Ok(1..)) {}
}

struct Connection {
    port: Port,
    reader: OwnedReadHalf,
    buffer: FrameBuffer,
    /// Grows while reads fill what they are given.
    read_bytes: usize,
}

/// What a step of a connection's task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// All that the socket had was read: the next step will wait.
    Read,
    /// The socket has more.
    HasMore,
    /// We have closed our end.
    Closed,
    /// The connection is gone.
    End,
}

impl Connection {
    fn poll(&mut self, node: &SharedNode, cx: &mut Context<'_>) -> Poll<Step> {
        match node.with(|node| node.polled(self.port, cx.waker())) {
            SocketState::Open => {}
            SocketState::Closed => return Poll::Ready(Step::Closed),
            SocketState::Broken => return Poll::Ready(Step::End),
        }
        let room = self.buffer.room_of(self.read_bytes);
        let bytes_max = READ_BYTES_MAX.min(room.capacity() - room.len());
        // The future holds nothing between two polls, so that the buffer is only lent.
        let read = pin!(self.reader.read_buf(&mut room.limit(bytes_max))).poll(cx);
        match read {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Step::End),
            Poll::Ready(Ok(bytes)) => {
                let filled = bytes == bytes_max;
                if filled {
                    self.read_bytes = READ_BYTES_MAX.min(self.read_bytes * 4);
                }
                self.take(node);
                Poll::Ready(if filled { Step::HasMore } else { Step::Read })
            }
        }
    }

    fn take(&mut self, node: &SharedNode) {
        let port = self.port;
        loop {
            match self.buffer.take() {
                Ok(frames) if frames.is_empty() => return,
                Ok(frames) => {
                    node.with(|node| node.received(port, frames));
                    if node.with(|node| node.relay.is_greeted(port)) {
                        self.buffer.greeted();
                    }
                }
                Err(error) => {
                    node.with(|node| {
                        node.relay.malformed(port, error);
                        node.want_turn();
                    });
                    // What comes next cannot be read; the connection ends when the ERROR is written.
                    self.buffer = FrameBuffer::new();
                    return;
                }
            }
        }
    }
}

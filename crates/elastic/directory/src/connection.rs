//! One connection: greeting, frames in, frames out, heartbeats. What the frames mean is decided
//! elsewhere.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use quelea_elastic_core::directory::{Address, Peer};
use quelea_elastic_proto::frame::{ErrorCode, Hello, Role, Welcome, WireError};
use quelea_elastic_proto::wire::FrameBuffer;
use quelea_elastic_proto::{Frame, limits};
use quelea_net::SignInFailures;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout, timeout_at};

use crate::driver::message::Message;
use crate::refusal::count_refusal;

/// From connecting to HELLO: a program sends it at once.
const HELLO_MAX: Duration = Duration::from_secs(10);
/// What WELCOME asks of clients and relays: a PING at least this often, if they have nothing else to say.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Without any frame for so many heartbeats a connection has ended.
const HEARTBEATS_MISSED_MAX: u32 = 3;
/// How long a write may take before the peer counts as gone.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// Frames that wait for a peer that does not read.
const WAITING_MAX: usize = 4_096;
/// Read at once from a peer: control frames are small.
const READ_BYTES: usize = 4_096;
/// Written at once.
const WRITE_BYTES: usize = 64 * 1024;

/// What every connection of a directory is checked against.
pub(crate) struct SiteKey {
    /// The site's key, empty if none is asked for.
    pub(crate) key: Vec<u8>,
    /// Who has not shown it.
    pub(crate) failures: SignInFailures,
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    mut socket: TcpStream,
    (peer, address): (Peer, Address),
    site_key: Arc<SiteKey>,
    inbox: Sender<Message>,
) {
    // A frame is small and waited for. It only fails on a socket that has ended.
    let _ = quelea_net::prepare_socket(&socket);
    let mut buffer = FrameBuffer::new();
    let role = match timeout(HELLO_MAX, greet(&mut socket, &mut buffer, &site_key)).await {
        Ok(Ok(role)) => role,
        Ok(Err(refusal)) => {
            if let Some(refusal) = &refusal {
                count_refusal(&site_key.failures, address, "key", refusal);
            }
            return refuse(socket, refusal.as_ref()).await;
        }
        Err(_) => {
            let text = format!("no HELLO within {} s", HELLO_MAX.as_secs());
            return refuse(socket, Some(&WireError::fatal(ErrorCode::Order, "", text))).await;
        }
    };
    let (sender, outgoing) = channel(WAITING_MAX);
    if inbox.send(Message::Connected { peer, role, address, sender }).await.is_err() {
        return;
    }
    let last = exchange(&mut socket, &mut buffer, peer, outgoing, &inbox).await;
    // The driver has stopped if it fails.
    let _ = inbox.send(Message::Gone { peer }).await;
    refuse(socket, last.as_ref()).await;
}

/// Reads HELLO and answers WELCOME. `Err(None)`: the connection broke.
async fn greet(
    socket: &mut TcpStream,
    buffer: &mut FrameBuffer,
    site_key: &SiteKey,
) -> Result<Role, Option<WireError>> {
    let frame = loop {
        if let Some(frame) = next(buffer)? {
            break frame;
        }
        if !matches!(socket.read_buf(buffer.room_of(READ_BYTES)).await, Ok(1..)) {
            return Err(None);
        }
    };
    let Frame::Hello(hello) = frame else {
        return Err(Some(WireError::fatal(ErrorCode::Order, "", "the first frame must be HELLO")));
    };
    let role = check(&hello, site_key)?;
    buffer.greeted();
    let heartbeat_ms = u32::try_from(HEARTBEAT.as_millis()).unwrap_or(u32::MAX);
    let welcome = Frame::Welcome(Welcome { version: limits::VERSION, heartbeat_ms });
    let mut out = BytesMut::new();
    encode(&welcome, &mut out);
    socket.write_all(&out).await.map_err(|_| None)?;
    Ok(role)
}

fn check(hello: &Hello, site_key: &SiteKey) -> Result<Role, WireError> {
    if hello.version != limits::VERSION {
        let text = format!("version must be {}, is {}", limits::VERSION, hello.version);
        return Err(WireError::fatal(ErrorCode::Version, "version", text));
    }
    if !site_key.key.is_empty() && !hello.has_key(&site_key.key) {
        let text = format!(
            "key is not the one of elastic.key_file here; it has {} bytes",
            hello.key.len()
        );
        return Err(WireError::fatal(ErrorCode::Key, "key", text));
    }
    match hello.role {
        Role::Keeper => {
            let text = "role must be client, relay or directory here, is keeper";
            Err(WireError::fatal(ErrorCode::Value, "role", text))
        }
        role => Ok(role),
    }
}

/// Carries frames both ways until either side ends it; gives the error to send at last.
async fn exchange(
    socket: &mut TcpStream,
    buffer: &mut FrameBuffer,
    peer: Peer,
    mut outgoing: Receiver<Frame>,
    inbox: &Sender<Message>,
) -> Option<WireError> {
    let silence = HEARTBEAT * HEARTBEATS_MISSED_MAX;
    let mut out = BytesMut::new();
    let mut heard = Instant::now();
    loop {
        // What came with the greeting, and then with each read.
        loop {
            match next(buffer) {
                Ok(None) => break,
                Ok(Some(Frame::Ping(number))) => encode(&Frame::Pong(number), &mut out),
                Ok(Some(Frame::Pong(_))) => {}
                Ok(Some(Frame::Bye(_))) => return None,
                Ok(Some(frame)) => {
                    inbox.send(Message::Received { peer, frame }).await.ok()?;
                }
                Err(refusal) => return Some(refusal),
            }
        }
        if !out.is_empty() {
            timeout(WRITE_MAX, socket.write_all(&out)).await.ok()?.ok()?;
            out.clear();
        }
        let (mut reader, _) = socket.split();
        tokio::select! {
            read = timeout_at(heard + silence, reader.read_buf(buffer.room_of(READ_BYTES))) => match read {
                Ok(Ok(1..)) => heard = Instant::now(),
                Ok(_) => return None,
                Err(_) => {
                    let text = format!("no frame for {} s: PING at least each {} s", silence.as_secs(), HEARTBEAT.as_secs());
                    return Some(WireError::fatal(ErrorCode::Order, "", text));
                }
            },
            frame = outgoing.recv() => {
                // `None`: the driver has closed it.
                encode(&frame?, &mut out);
                while out.len() < WRITE_BYTES {
                    match outgoing.try_recv() {
                        Ok(frame) => encode(&frame, &mut out),
                        Err(_) => break,
                    }
                }
            }
        }
    }
}

fn next(buffer: &mut FrameBuffer) -> Result<Option<Frame>, WireError> {
    buffer.next_frame().map_err(WireError::from)
}

fn encode(frame: &Frame, out: &mut BytesMut) {
    if let Err(error) = frame.encode(out) {
        tracing::error!(%error, "a frame of our own cannot be written");
    }
}

/// Sends the peer what was wrong, if anything was, and ends the connection.
async fn refuse(mut socket: TcpStream, refusal: Option<&WireError>) {
    if let Some(refusal) = refusal {
        tracing::debug!(field = refusal.field, text = refusal.text, "a peer is refused");
        let mut out = BytesMut::new();
        encode(&Frame::Error(refusal.clone()), &mut out);
        // The peer may be gone.
        let _ = timeout(WRITE_MAX, socket.write_all(&out)).await;
    }
    let _ = timeout(WRITE_MAX, socket.shutdown()).await;
}

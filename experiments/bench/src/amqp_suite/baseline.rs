//! The transport's own rate (section 4.2): a stream of bytes from publisher to consumer through the broker's host, by raw
//! sockets and a relay that costs as little as one can.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

use super::args::Role;
use super::conversation::Conversation;
use super::numbered_pieces::{PIECE_BYTES, PieceAudit, PieceWriter, stream_bytes};
use super::protocol::{Consumed, Order, Published, Word};
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::error::BenchError;
use crate::latency::Percentiles;
use crate::ledger::Audit;
use crate::process::own_cpu_us;

/// What the relay reads at once of the publisher's stream, and of the replies. The kernel's socket buffers grow by themselves:
/// fixed ones made no difference.
const RELAY_BYTES: usize = PIECE_BYTES;
const RELAY_REPLY_BYTES: usize = 64;
/// The first byte of a connection says who it is.
const PUBLISHER: u8 = b'p';
const CONSUMER: u8 = b'c';
/// The consumer's reply to the last byte.
const REPLY: u8 = b'.';

/// Runs the relay: for each case it takes one connection of each side and copies bytes both ways
/// until they end.
pub(super) fn relay(conversation: &mut Conversation) -> Result<(), BenchError> {
    loop {
        match conversation.next()? {
            Order::Quit => return Ok(()),
            Order::Begin { .. } => {
                let listener =
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(BenchError::Socket)?;
                let address = listener.local_addr().map_err(BenchError::Socket)?.to_string();
                conversation.say(&Word::Listening { address })?;
                thread::spawn(move || relay_case(&listener));
            }
            _ => {}
        }
    }
}

/// Ends, with both connections, if either does; then both roles see it.
fn relay_case(listener: &TcpListener) {
    let (mut publisher, mut consumer) = (None, None);
    while publisher.is_none() || consumer.is_none() {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut who = [0];
        if stream.set_nodelay(true).and_then(|()| stream.read_exact(&mut who)).is_err() {
            continue;
        }
        match who[0] {
            PUBLISHER => publisher = Some(stream),
            CONSUMER => consumer = Some(stream),
            _ => {}
        }
    }
    let (Some(publisher), Some(consumer)) = (publisher, consumer) else { return };
    thread::scope(|scope| {
        scope.spawn(|| copy(&publisher, &consumer, RELAY_BYTES));
        copy(&consumer, &publisher, RELAY_REPLY_BYTES);
    });
}

/// `io::copy` would take 8 KiB at a time.
fn copy(mut from: &TcpStream, mut to: &TcpStream, at_once_bytes: usize) {
    let mut room = vec![0; at_once_bytes];
    loop {
        match from.read(&mut room) {
            Ok(count @ 1..) if to.write_all(&room[..count]).is_ok() => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    // Either end may be gone; then both are.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Carries out a case of either side. Returns whether the coordinator has no more.
pub(super) fn serve(
    role: Role,
    relay: &str,
    conversation: &mut Conversation,
) -> Result<bool, BenchError> {
    let mut side = RawSide::connect(role, relay)?;
    conversation.say(&Word::Ready)?;
    loop {
        match conversation.next()? {
            Order::Quit => return Ok(true),
            Order::EndCase => {
                conversation.say(&Word::Ready)?;
                return Ok(false);
            }
            Order::Round { size, messages } => match &mut side {
                RawSide::Publisher { stream, writer } => {
                    let published = publish(stream, writer, (size, messages), conversation)?;
                    conversation.say(&Word::Published(published))?;
                }
                RawSide::Consumer { stream, audit } => {
                    conversation.say(&Word::Ready)?;
                    let cpu_us = consume(stream, audit, (size, messages), conversation)?;
                    // The publisher has the reply by then, so nothing is on its way that belongs to the stream.
                    if matches!(conversation.next()?, Order::Quit) {
                        return Ok(true);
                    }
                    let audits = vec![with_surplus(stream, audit).map_err(BenchError::Socket)?];
                    let latency = Percentiles::default();
                    conversation.say(&Word::Consumed(Consumed { cpu_us, audits, latency }))?;
                }
            },
            _ => {}
        }
    }
}

/// A side's connection to the relay, with what it sends or knows that it gets.
enum RawSide {
    Publisher { stream: TcpStream, writer: PieceWriter },
    Consumer { stream: TcpStream, audit: PieceAudit },
}

impl RawSide {
    fn connect(role: Role, relay: &str) -> Result<Self, BenchError> {
        let refused = |source| BenchError::Connect { uri: format!("the relay at {relay}"), source };
        let mut stream = TcpStream::connect(relay).map_err(refused)?;
        stream.set_nodelay(true).map_err(BenchError::Socket)?;
        let who = if role == Role::Publisher { PUBLISHER } else { CONSUMER };
        stream.write_all(&[who]).map_err(BenchError::Socket)?;
        Ok(match role {
            Role::Publisher => Self::Publisher { stream, writer: PieceWriter::new() },
            _ => Self::Consumer { stream, audit: PieceAudit::new() },
        })
    }
}

/// Says once a second how far a round is, in messages.
struct Pulse<'a> {
    conversation: &'a mut Conversation,
    size: usize,
    next_ns: u64,
}

impl<'a> Pulse<'a> {
    fn new(conversation: &'a mut Conversation, size: usize) -> Self {
        Self { conversation, size, next_ns: now_ns() + SECOND_NS }
    }

    fn moved(&mut self, bytes: u64) -> io::Result<()> {
        if now_ns() < self.next_ns {
            return Ok(());
        }
        self.next_ns += SECOND_NS;
        let messages = bytes / self.size.max(1) as u64;
        self.conversation.say(&Word::Moved { messages }).map_err(io::Error::other)
    }
}

/// Returns when the reply is there.
fn publish(
    stream: &mut TcpStream,
    writer: &mut PieceWriter,
    (size, messages): (usize, u64),
    conversation: &mut Conversation,
) -> Result<Published, BenchError> {
    let mut pulse = Pulse::new(conversation, size);
    let (before, started) = (own_cpu_us(), now_ns());
    let bytes = stream_bytes(size, messages);
    let sent = writer.write(stream, bytes, |sent| pulse.moved(sent)).map_err(BenchError::Socket)?;
    let mut reply = [0];
    stream.read_exact(&mut reply).map_err(BenchError::Socket)?;
    let seconds = seconds_between(started, now_ns()).max(1e-9);
    let cpu_us = own_cpu_us() - before;
    if reply != [REPLY] {
        let odd = io::Error::new(ErrorKind::InvalidData, "another reply than the consumer's came");
        return Err(BenchError::Socket(odd));
    }
    Ok(Published {
        seconds,
        cpu_us,
        ledgers: vec![sent],
        replies: Vec::new(),
        answer: Percentiles::default(),
    })
}

/// Takes the stream, looks at every byte and replies to the last. Returns the CPU time, µs.
fn consume(
    stream: &mut TcpStream,
    audit: &mut PieceAudit,
    (size, messages): (usize, u64),
    conversation: &mut Conversation,
) -> Result<u64, BenchError> {
    let mut pulse = Pulse::new(conversation, size);
    let mut room = vec![0; PIECE_BYTES];
    let before = own_cpu_us();
    let bytes = stream_bytes(size, messages);
    audit.begin(bytes);
    while audit.left_bytes() > 0 {
        let most = audit.left_bytes().min(room.len() as u64) as usize;
        match stream.read(&mut room[..most]) {
            Ok(0) => return Err(BenchError::Socket(ErrorKind::UnexpectedEof.into())),
            Ok(count) => audit.take(&room[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(BenchError::Socket(error)),
        }
        pulse.moved(bytes - audit.left_bytes()).map_err(BenchError::Socket)?;
    }
    stream.write_all(&[REPLY]).map_err(BenchError::Socket)?;
    Ok(own_cpu_us() - before)
}

/// Takes what has come beyond the stream's end. Returns what arrived, with that.
fn with_surplus(stream: &mut TcpStream, audit: &mut PieceAudit) -> io::Result<Audit> {
    let mut surplus = [0; 64];
    stream.set_nonblocking(true)?;
    match stream.read(&mut surplus) {
        Ok(count) => audit.take(&surplus[..count]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    stream.set_nonblocking(false)?;
    Ok(audit.audit())
}

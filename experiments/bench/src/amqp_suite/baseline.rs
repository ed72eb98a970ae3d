//! The transport's own rate (section 4.2): a stream of bytes from publisher to consumer through the broker's host, by
//! raw sockets, written in pieces as large as those of the AMQP generator.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::args::Role;
use super::conversation::Conversation;
use super::protocol::{Consumed, Order, Published, Word};
use crate::clock::{now_ns, seconds_between};
use crate::error::BenchError;
use crate::latency::Percentiles;
use crate::ledger::{Audit, Ledger};
use crate::process::own_cpu_us;

/// What the generator writes at once.
const PIECE_BYTES: usize = 64 * 1024;
/// The first byte of a connection says who it is.
const PUBLISHER: u8 = b'p';
const CONSUMER: u8 = b'c';
/// The consumer's reply to the last byte.
const REPLY: u8 = b'.';

/// The relay: for each case it takes one connection of each side and copies bytes both ways until they end.
pub(super) fn relay(conversation: &mut Conversation) -> Result<(), BenchError> {
    loop {
        match conversation.next() {
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
        scope.spawn(|| copy(&publisher, &consumer));
        copy(&consumer, &publisher);
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    // Either end may be gone; then both are.
    let _ = io::copy(&mut from, &mut to);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// A case of either side. Returns whether the coordinator has no more.
pub(super) fn serve(
    role: Role,
    relay: &str,
    conversation: &mut Conversation,
) -> Result<bool, BenchError> {
    let refused = |source| BenchError::Connect { uri: format!("the relay at {relay}"), source };
    let address: SocketAddr =
        relay.parse().map_err(|_| refused(io::Error::other("this is no address")))?;
    let mut stream = TcpStream::connect(address).map_err(refused)?;
    stream.set_nodelay(true).map_err(BenchError::Socket)?;
    let who = if role == Role::Publisher { PUBLISHER } else { CONSUMER };
    stream.write_all(&[who]).map_err(BenchError::Socket)?;
    conversation.say(&Word::Ready)?;
    loop {
        match conversation.next() {
            Order::Quit => return Ok(true),
            Order::EndCase => {
                conversation.say(&Word::Ready)?;
                return Ok(false);
            }
            Order::Round { size, messages } => {
                let bytes = size as u64 * messages;
                let (before, started) = (own_cpu_us(), now_ns());
                let word = if role == Role::Publisher {
                    send(&mut stream, size, bytes).map_err(BenchError::Socket)?;
                    let seconds = seconds_between(started, now_ns()).max(1e-9);
                    let ledgers = vec![Ledger { count: messages, sum: 0 }];
                    let cpu_us = own_cpu_us() - before;
                    Word::Published(Published {
                        seconds,
                        cpu_us,
                        ledgers,
                        answer: Percentiles::default(),
                    })
                } else {
                    conversation.say(&Word::Ready)?;
                    receive(&mut stream, bytes).map_err(BenchError::Socket)?;
                    let ledger = Ledger { count: messages, sum: 0 };
                    let audits = vec![Audit::of(ledger)];
                    let cpu_us = own_cpu_us() - before;
                    Word::Consumed(Consumed { cpu_us, audits, latency: Percentiles::default() })
                };
                conversation.say(&word)?;
            }
            _ => {}
        }
    }
}

/// Returns when the reply is there.
fn send(stream: &mut TcpStream, size: usize, mut bytes: u64) -> io::Result<()> {
    let piece = vec![0x5A; size.max(PIECE_BYTES)];
    while bytes > 0 {
        let count = piece.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        stream.write_all(&piece[..count])?;
        bytes -= count as u64;
    }
    let mut reply = [0];
    stream.read_exact(&mut reply)
}

fn receive(stream: &mut TcpStream, mut bytes: u64) -> io::Result<()> {
    let mut room = vec![0; 4 * PIECE_BYTES];
    while bytes > 0 {
        let most = room.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        match stream.read(&mut room[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes -= count as u64,
        }
    }
    stream.write_all(&[REPLY])
}

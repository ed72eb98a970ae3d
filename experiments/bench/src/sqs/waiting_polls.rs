//! Long polls that wait, all in one thread: a socket each, an epoll for all, no memory for those that
//! wait. HTTP is parsed here, because what is measured is the server with ten thousand sockets: no client library
//! holds so many without a buffer or a thread for each.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use quelea_sqs_client::Endpoint;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use socket2::{Domain, Socket, Type};

/// Connections from one source address, each from a port of its own.
const PER_SOURCE: u32 = 20_000;
/// The first of them. They are named, since a kernel that has to find a free one among thousands
/// takes milliseconds for each.
const FIRST_PORT: u32 = 20_000;
/// Source addresses that are tried where a port is taken.
const TRIES: u8 = 8;
/// Events of one look.
const EVENTS: usize = 1_024;
/// An answer to a poll has a message or none.
const ANSWER_MAX: usize = 64 * 1024;

/// The polls.
pub(crate) struct WaitingPolls {
    epoll: OwnedFd,
    address: SocketAddr,
    streams: Vec<TcpStream>,
    /// Beginnings of answers whose end is not there yet.
    partial: HashMap<usize, Vec<u8>>,
    /// A whole request for each queue.
    requests: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    events: Vec<epoll::Event>,
}

/// What the waiting cannot go on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PollError {
    #[error("cannot open poll {number}: {source}")]
    Open { number: usize, source: io::Error },
    #[error("a poll's connection broke: {0}")]
    Socket(#[from] io::Error),
    #[error("the service closed a waiting poll")]
    Closed,
    #[error("a poll was answered with: {0}")]
    Refused(String),
}

impl WaitingPolls {
    /// Returns polls without connections so far. `calls` are the bodies of the queues'
    /// `ReceiveMessage`.
    pub(crate) fn new(endpoint: &Endpoint, calls: &[Vec<u8>]) -> io::Result<Self> {
        let address = (endpoint.host.as_str(), endpoint.port)
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| io::Error::other("the endpoint's host has no address"))?;
        let request = |call: &Vec<u8>| {
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-amz-json-1.0\r\n\
                 X-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: {}\r\n\r\n",
                endpoint.path,
                endpoint.authority(),
                call.len()
            );
            [head.into_bytes(), call.clone()].concat()
        };
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            address,
            streams: Vec::new(),
            partial: HashMap::new(),
            requests: calls.iter().map(request).collect(),
            scratch: vec![0; ANSWER_MAX],
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Opens one more connection and lets it poll.
    pub(crate) fn open(&mut self) -> Result<(), PollError> {
        let number = self.streams.len();
        let error = |source| PollError::Open { number, source };
        let stream = connect(self.address, number).map_err(error)?;
        let event = epoll::EventData::new_u64(number as u64);
        epoll::add(&self.epoll, &stream, event, epoll::EventFlags::IN)
            .map_err(|errno| error(errno.into()))?;
        self.streams.push(stream);
        self.poll_again(number)
    }

    pub(crate) const fn len(&self) -> usize {
        self.streams.len()
    }

    /// Takes the answers that are there, waiting for the first one; each poll that was answered polls
    /// again. `answered` gets the bodies.
    pub(crate) fn turn(
        &mut self,
        timeout: Duration,
        mut answered: impl FnMut(&[u8]),
    ) -> Result<(), PollError> {
        let nanoseconds = i64::from(timeout.subsec_nanos());
        let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: nanoseconds };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(PollError::Socket(errno.into())),
        }
        for event in &events {
            let data = event.data; // The struct is packed.
            let number = usize::try_from(data.u64()).unwrap_or(usize::MAX);
            self.read(number, &mut answered)?;
        }
        self.events = events;
        Ok(())
    }

    fn read(&mut self, number: usize, answered: &mut impl FnMut(&[u8])) -> Result<(), PollError> {
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let length = match stream.read(&mut self.scratch) {
            Ok(0) => return Err(PollError::Closed),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let bytes = &self.scratch[..length];
        let is_whole = match self.partial.remove(&number) {
            None => take_answer(bytes, answered)? || self.keep(number, bytes.to_vec()),
            Some(mut earlier) => {
                earlier.extend_from_slice(bytes);
                take_answer(&earlier, answered)? || self.keep(number, earlier)
            }
        };
        if is_whole && !self.partial.contains_key(&number) {
            self.poll_again(number)?;
        }
        Ok(())
    }

    /// Keeps the beginning of an answer. Returns always false: the answer is not whole.
    fn keep(&mut self, number: usize, beginning: Vec<u8>) -> bool {
        self.partial.insert(number, beginning);
        false
    }

    fn poll_again(&mut self, number: usize) -> Result<(), PollError> {
        let request = &self.requests[number % self.requests.len()];
        // Some 250 bytes always fit into the send buffer of a socket that waits for an answer.
        match self.streams[number].write(request)? {
            written if written == request.len() => Ok(()),
            _ => Err(PollError::Socket(ErrorKind::WriteZero.into())),
        }
    }
}

/// Connects, on loopback from 127.0.x.y, so that ports do not run out.
fn connect(address: SocketAddr, number: usize) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), None)?;
    if address.ip().is_loopback() && address.is_ipv4() {
        bind(&socket, number)?;
    }
    socket.connect(&address.into())?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn bind(socket: &Socket, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).map_err(io::Error::other)?;
    let port = u16::try_from(FIRST_PORT + number % PER_SOURCE).map_err(io::Error::other)?;
    let host = u8::try_from(number / PER_SOURCE).map_err(io::Error::other)?;
    // What an earlier run left in TIME_WAIT is in nobody's way.
    socket.set_reuse_address(true)?;
    let mut bound = Ok(());
    for subnet in 1..=TRIES {
        let source = IpAddr::V4(Ipv4Addr::new(127, 0, subnet, host));
        bound = socket.bind(&SocketAddr::new(source, port).into());
        if !matches!(&bound, Err(error) if error.kind() == ErrorKind::AddrInUse) {
            break;
        }
    }
    bound
}

/// Hands on the body of an answer that is complete; false if it is not.
fn take_answer(bytes: &[u8], answered: &mut impl FnMut(&[u8])) -> Result<bool, PollError> {
    let refused = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        Err(PollError::Refused(text))
    };
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() < ANSWER_MAX { Ok(false) } else { refused(bytes) };
    };
    let (head, body) = (&bytes[..end], &bytes[end + 4..]);
    let head = str::from_utf8(head).unwrap_or_default();
    let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match length {
        Some(length) if length <= ANSWER_MAX && head.starts_with("HTTP/1.1 200") => {
            if body.len() < length {
                return Ok(false);
            }
            answered(&body[..length]);
            Ok(true)
        }
        _ => refused(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_when_it_is_whole() {
        let answer = b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 4\r\n\r\n{  }";
        let mut taken = Vec::new();
        for length in 0..answer.len() {
            let whole = take_answer(&answer[..length], &mut |_| panic!("not whole")).unwrap();
            assert!(!whole, "{length}");
        }
        assert!(take_answer(answer, &mut |body| taken.push(body.to_vec())).unwrap());
        assert_eq!(taken, [b"{  }"]);
    }

    #[test]
    fn a_refusal_is_an_error_with_its_text() {
        for answer in [
            &b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
        ] {
            let error = take_answer(answer, &mut |_| {}).unwrap_err().to_string();
            assert!(error.contains("HTTP/1.1"), "{error}");
        }
    }
}

//! A kept connection: one request at a time, blocking.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::response::{ResponseError, ResponseReader};

/// How long opening a connection may take at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    read_timeout: Duration,
    /// How many responses it has brought.
    pub served: u64,
}

impl Connection {
    /// Opens a connection to the first address that takes it.
    pub(crate) fn open(endpoint: &Endpoint, patience: Duration) -> io::Result<Self> {
        let mut refused = None;
        for address in (endpoint.host.as_str(), endpoint.port).to_socket_addrs()? {
            match Self::to(address, patience.min(CONNECT_TIMEOUT)) {
                Ok(connection) => return Ok(connection),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::other("the host has no address")))
    }

    fn to(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        // A request is one write; waiting for more to send would only delay it.
        stream.set_nodelay(true)?;
        Ok(Self { stream, read_timeout: Duration::ZERO, served: 0 })
    }

    /// Returns whether the service has closed it, as far as is known here. Three system calls, some
    /// 1 µs.
    pub(crate) fn has_ended(&self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_blocking = self.stream.set_nonblocking(false).is_ok();
        // Bytes that nobody asked for are no better than its end.
        !is_blocking || !matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn write(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Reads a response into `reader`; no byte for `patience` is an error.
    pub(crate) fn read(
        &mut self,
        reader: &mut ResponseReader,
        patience: Duration,
    ) -> Result<(u16, bool), ResponseError> {
        self.set_patience(patience)?;
        let found = reader.read(&mut self.stream)?;
        self.served += 1;
        Ok(found)
    }

    /// Waits until the response begins, and leaves it unread.
    pub(crate) fn await_response(&mut self, patience: Duration) -> Result<(), ResponseError> {
        self.set_patience(patience)?;
        match self.stream.peek(&mut [0]) {
            Ok(0) => Err(ResponseError::NoResponse),
            Ok(_) => Ok(()),
            Err(error) => Err(ResponseError::Socket(error)),
        }
    }

    /// Returns a second handle on the socket, to end a read from another thread.
    pub(crate) fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Sets for how long a read waits: one system call, where the patience changes.
    fn set_patience(&mut self, patience: Duration) -> Result<(), ResponseError> {
        if self.read_timeout != patience {
            self.stream.set_read_timeout(Some(patience)).map_err(ResponseError::Socket)?;
            self.read_timeout = patience;
        }
        Ok(())
    }
}

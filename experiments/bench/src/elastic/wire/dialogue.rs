//! A handshake over a blocking socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::elastic::error::ElasticError;
use crate::elastic::wire::Opened;

/// A server that is there answers a handshake within this.
const ANSWER: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 4 * 1024;

/// A connection during its handshake.
#[derive(Debug)]
pub(crate) struct Dialogue {
    who: String,
    stream: TcpStream,
    input: Vec<u8>,
}

impl Dialogue {
    pub(crate) fn connect(who: String, address: &str) -> Result<Self, ElasticError> {
        let error = |source| ElasticError::Connect { address: address.to_owned(), source };
        let place = address
            .to_socket_addrs()
            .map_err(error)?
            .next()
            .ok_or_else(|| error(ErrorKind::AddrNotAvailable.into()))?;
        let stream = TcpStream::connect_timeout(&place, ANSWER).map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(error)?;
        stream.set_write_timeout(Some(ANSWER)).map_err(error)?;
        Ok(Self { who, stream, input: Vec::new() })
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<(), ElasticError> {
        self.stream
            .write_all(bytes)
            .map_err(|source| ElasticError::Socket { who: self.who.clone(), source })
    }

    /// Hands what came to `look` until it knows what it wants: an answer and how much of the input
    /// it took. It returns `Err` for what the server should not have said.
    pub(crate) fn hear<T>(
        &mut self,
        mut look: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, String>,
    ) -> Result<T, ElasticError> {
        loop {
            if let Some((length, answer)) = look(&self.input).map_err(|text| self.wrong(text))? {
                self.input.drain(..length);
                return Ok(answer);
            }
            let end = self.input.len();
            self.input.resize(end + READ_BYTES, 0);
            let count = self.stream.read(&mut self.input[end..]);
            self.input.truncate(end + count.as_ref().map_or(0, |count| *count));
            match count {
                Ok(0) => return Err(ElasticError::Closed { who: self.who.clone() }),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(self.wrong(format!("no answer within {} s", ANSWER.as_secs())));
                }
                Err(source) => {
                    return Err(ElasticError::Socket { who: self.who.clone(), source });
                }
            }
        }
    }

    pub(crate) fn wrong(&self, text: impl Into<String>) -> ElasticError {
        ElasticError::Protocol { who: self.who.clone(), text: text.into() }
    }

    /// Ends the handshake: from here on the socket does not block.
    pub(crate) fn end(self) -> Result<Opened, ElasticError> {
        self.stream
            .set_nonblocking(true)
            .map_err(|source| ElasticError::Socket { who: self.who, source })?;
        Ok(Opened { stream: self.stream, left: self.input })
    }
}

//! A non-blocking socket with its buffers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::BytesMut;
use quelea_amqp_codec::method::connection;
use quelea_amqp_codec::{Method, ReplyCode, ShortStr};

use crate::error::BenchError;
use crate::inbox::{Confirm, Delivery, Inbox, Sink, WHOLE_FRAME_BYTES_MAX};
use crate::template::{FRAME_METHOD, push_frame};

/// One read takes as much: thousands of small deliveries.
const INPUT_BYTES: usize = 256 * 1024;
/// A frame that must be whole has to fit behind a partial read.
const _: () = assert!(WHOLE_FRAME_BYTES_MAX < INPUT_BYTES);
/// Reads per readiness, so that one busy connection does not starve the others of its thread.
const READS_MAX: usize = 4;

/// Class and method of `connection.close` and `connection.close-ok`.
const CONNECTION_CLOSE: [u8; 4] = [0, 10, 0, 50];
const CONNECTION_CLOSE_OK: [u8; 4] = [0, 10, 0, 51];

/// A connection after its set-up.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    input: Vec<u8>,
    input_end: usize,
    inbox: Inbox,
    /// Frames to be written; append, then [`Link::write`].
    pub output: Vec<u8>,
    written: usize,
}

impl Link {
    /// Makes the socket a link. `received` is what the set-up has read beyond its last answer.
    pub(crate) fn new(stream: TcpStream, received: &[u8]) -> Result<Self, BenchError> {
        stream.set_nonblocking(true).map_err(BenchError::Socket)?;
        stream.set_nodelay(true).map_err(BenchError::Socket)?;
        let mut input = vec![0; INPUT_BYTES.max(received.len())];
        input[..received.len()].copy_from_slice(received);
        Ok(Self {
            stream,
            input,
            input_end: received.len(),
            inbox: Inbox::default(),
            output: Vec::new(),
            written: 0,
        })
    }

    /// From now on each body is compared with this one, but for its stamp.
    pub(crate) fn expect(&mut self, body: Option<Arc<[u8]>>) {
        self.inbox.expect(body);
    }

    /// Hands everything that has arrived to `sink`.
    pub(crate) fn read<S>(&mut self, sink: &mut S) -> Result<(), BenchError>
    where
        S: Sink<Error = BenchError>,
    {
        // What the set-up left behind is parsed even if nothing more arrives.
        if self.input_end > 0 {
            self.parse(sink)?;
        }
        for _ in 0..READS_MAX {
            let room = &mut self.input[self.input_end..];
            let wanted = room.len();
            match self.stream.read(room) {
                Ok(0) => return Err(BenchError::Disconnected { doing: "messages were moving" }),
                Ok(count) => {
                    self.input_end += count;
                    self.parse(sink)?;
                    if count < wanted {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::Socket(error)),
            }
        }
        Ok(())
    }

    fn parse<S: Sink<Error = BenchError>>(&mut self, sink: &mut S) -> Result<(), BenchError> {
        sink.arrived();
        let taken = self.inbox.parse(&self.input[..self.input_end], sink)?;
        self.input.copy_within(taken..self.input_end, 0);
        self.input_end -= taken;
        Ok(())
    }

    /// Writes what the socket takes; true if nothing is left.
    pub(crate) fn write(&mut self) -> Result<bool, BenchError> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(BenchError::Disconnected { doing: "messages were moving" }),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::Socket(error)),
            }
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        Ok(self.output.is_empty())
    }

    /// Says goodbye; go on with [`Link::await_farewell`].
    pub(crate) fn say_goodbye(&mut self) {
        let mut goodbye = BytesMut::new();
        Method::from(connection::Close {
            reply_code: ReplyCode::Success.code(),
            reply_text: ShortStr::from_static("done"),
            ..Default::default()
        })
        .encode(&mut goodbye);
        push_frame(&mut self.output, FRAME_METHOD, 0, &goodbye);
    }

    /// Writes what the socket takes and reads what has arrived, deliveries being thrown away; true
    /// once the broker has answered the goodbye. Only then has it taken all that was published:
    /// without that, what is still on its way would land in the queues of the next run.
    pub(crate) fn await_farewell(&mut self) -> Result<bool, BenchError> {
        self.write()?;
        let mut farewell = Farewell::default();
        self.read(&mut farewell)?;
        Ok(farewell.is_over)
    }

    pub(crate) const fn has_output(&self) -> bool {
        !self.output.is_empty()
    }
}

/// Waits for `connection.close-ok` and ignores everything before it.
#[derive(Debug, Default)]
struct Farewell {
    is_over: bool,
}

impl Sink for Farewell {
    type Error = BenchError;

    fn delivery(&mut self, _delivery: Delivery) -> Result<(), BenchError> {
        Ok(())
    }

    fn confirm(&mut self, _confirm: Confirm) -> Result<(), BenchError> {
        Ok(())
    }

    fn returned(&mut self) {}

    fn control(&mut self, _channel: u16, payload: &[u8]) -> Result<(), BenchError> {
        // The broker may have closed it at the same moment; either way it is over.
        self.is_over |=
            payload.starts_with(&CONNECTION_CLOSE) || payload.starts_with(&CONNECTION_CLOSE_OK);
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

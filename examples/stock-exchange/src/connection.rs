//! A program's connection to the broker: it declares the exchange's queues, publishes, and gets deliveries, all on one
//! thread. Made for one purpose: 100,000 messages of nine bytes a second, where a general client costs more than the work.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quelea_amqp_codec::method::{Method, basic, confirm, connection, exchange, queue};
use quelea_amqp_codec::{ReplyCode, ShortStr};
use quelea_bench::shared::{Client, push_ack, push_frame};
use quelea_bench::{BenchError, BrokerUri};
use quelea_model::{Properties, PropertyView, Table, Value};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::error::Error;
use crate::messages::Message;

const CHANNEL: u16 = 1;
const FRAME_METHOD: u8 = 1;
const FRAME_HEADER: u8 = 2;
const FRAME_BODY: u8 = 3;
/// Type, channel and size; then the payload, and an octet.
const HEAD_BYTES: usize = 7;
/// Class, weight and the body's size; then the properties.
const CONTENT_BYTES: usize = 12;
/// Digits of a message's number.
const NUMBER_DIGITS: usize = 8;
/// One read takes as much.
const INPUT_BYTES: usize = 256 * 1024;
/// Class and method of `connection.close-ok`.
const CLOSE_OK: [u8; 4] = [0, 10, 0, 51];
/// How long the broker may take to say it.
const CLOSE: Duration = Duration::from_secs(10);
/// How much may wait to be written before the program stops making more.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// A durable queue that nobody uses any more ends after so long.
const EXPIRES_MS: i32 = 60_000;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the matching engine.
    Orders,
    /// To the gateway.
    Trades,
    /// To the reporter.
    Statistics,
    /// To who looks at the quotes, if somebody does.
    Feed,
}

impl Route {
    /// All.
    pub const ALL: [Self; 4] = [Self::Orders, Self::Trades, Self::Statistics, Self::Feed];

    const fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Trades => "trades",
            Self::Statistics => "statistics",
            Self::Feed => "feed",
        }
    }
}

/// Which queues a run uses, and how safe they are.
#[derive(Clone, Debug)]
pub struct Venue {
    /// The broker.
    pub uri: BrokerUri,
    /// What the names of the exchange and its queues begin with.
    pub prefix: String,
    /// Durable queues, persistent messages, confirms and acknowledgements; else nothing of the kind, as in the paper.
    pub durable: bool,
    /// Whether there is a queue for the feed.
    pub feed: bool,
    /// Whether durable queues end when nobody has used them for a while.
    pub expires: bool,
}

impl Venue {
    fn queue(&self, route: Route) -> Result<ShortStr, BenchError> {
        short(&format!("{}.{}", self.prefix, route.name()))
    }

    /// Removes the queues and the exchange. What is not there is no error.
    ///
    /// # Errors
    /// If the broker cannot be reached for so long.
    pub fn clear(&self, patience_s: f64) -> Result<(), BenchError> {
        let mut client = Client::connect_patiently(&self.uri, patience_s)?;
        client.open_channel(CHANNEL)?;
        for route in Route::ALL {
            let queue = self.queue(route)?;
            delete(&mut client, queue::Delete { queue, ..Default::default() })?;
        }
        let exchange = short(&self.prefix)?;
        delete(&mut client, exchange::Delete { exchange, ..Default::default() })?;
        client.close()
    }

    fn declare(&self, client: &mut Client) -> Result<(), BenchError> {
        let exchange = short(&self.prefix)?;
        let declare = exchange::Declare {
            exchange: exchange.clone(),
            kind: ShortStr::from_static("direct"),
            durable: self.durable,
            auto_delete: true,
            ..Default::default()
        };
        client.call(CHANNEL, &declare.into())?;
        for route in Route::ALL.into_iter().filter(|route| *route != Route::Feed || self.feed) {
            let queue = self.queue(route)?;
            let mut arguments = Table::new();
            if self.durable && self.expires {
                arguments.set("x-expires", Value::I32(EXPIRES_MS));
            }
            let declare = queue::Declare {
                queue: queue.clone(),
                durable: self.durable,
                // What was interrupted leaves nothing behind.
                auto_delete: !self.durable,
                arguments,
                ..Default::default()
            };
            client.call(CHANNEL, &declare.into())?;
            let (exchange, routing_key) = (exchange.clone(), ShortStr::from_static(route.name()));
            let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
            client.call(CHANNEL, &bind.into())?;
        }
        Ok(())
    }
}

/// Deletes a queue or an exchange, if it is there. RabbitMQ says ok of what is not there, Qpid
/// closes the channel, which is then opened again.
fn delete(client: &mut Client, method: impl Into<Method>) -> Result<(), BenchError> {
    let not_found = ReplyCode::NotFound.code();
    match client.call(CHANNEL, &method.into()) {
        Err(BenchError::ChannelClosed { code, .. }) if code == not_found => {
            client.open_channel(CHANNEL)
        }
        answer => answer.map(|_| ()),
    }
}

/// What a broker says.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message of the queue that is consumed.
    Delivery {
        /// Its delivery tag.
        tag: u64,
        /// The number that its publisher gave it, where messages may be sent again.
        number: Option<u32>,
        /// Its bytes.
        body: &'a [u8],
    },
    /// The broker has it, with `multiple` all up to it.
    Confirm {
        /// The number of the message, from 1 on.
        tag: u64,
        /// Whether those before it are meant, too.
        multiple: bool,
    },
}

/// A connection that consumes one queue.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    input_end: usize,
    /// Whether messages may be sent again.
    durable: bool,
    /// The delivery whose content comes.
    delivery: Option<u64>,
    number: Option<u32>,
    output: Vec<u8>,
    written: usize,
    heads: [Head; 4],
    body: Vec<u8>,
    is_closed: bool,
}

impl Connection {
    /// Connects, waiting for a broker that is just starting; declares everything and consumes the queue of `route`.
    ///
    /// # Errors
    /// What the broker refuses.
    pub fn open(venue: &Venue, route: Route, patience_s: f64) -> Result<Self, Error> {
        let mut client = Client::connect_patiently(&venue.uri, patience_s)?;
        client.open_channel(CHANNEL)?;
        venue.declare(&mut client)?;
        if venue.durable {
            client.call(CHANNEL, &confirm::Select::default().into())?;
            let qos = basic::Qos { prefetch_count: 10_000, ..Default::default() };
            client.call(CHANNEL, &qos.into())?;
        }
        let consume = basic::Consume {
            queue: venue.queue(route)?,
            no_ack: !venue.durable,
            ..Default::default()
        };
        client.call(CHANNEL, &consume.into())?;
        let (stream, received) = client.into_parts();
        stream.set_nonblocking(true).map_err(BenchError::Socket)?;
        let mut input = vec![0; INPUT_BYTES.max(received.len())];
        input[..received.len()].copy_from_slice(&received);
        Ok(Self {
            stream,
            input,
            input_end: received.len(),
            durable: venue.durable,
            delivery: None,
            number: None,
            output: Vec::new(),
            written: 0,
            heads: Route::ALL.map(|route| Head::new(venue, route)),
            body: Vec::new(),
            is_closed: false,
        })
    }

    /// Publishes a message with the next write, with its number if it is an answer that may be sent again.
    pub fn publish(&mut self, route: Route, message: &Message, number: u32) {
        self.body.clear();
        message.encode(&mut self.body);
        self.heads[route as usize].append(&mut self.output, self.body.len(), number);
        push_frame(&mut self.output, FRAME_BODY, CHANNEL, &self.body);
    }

    /// Acknowledges all deliveries up to `tag` with the next write.
    pub fn acknowledge(&mut self, tag: u64) {
        push_ack(&mut self.output, CHANNEL, tag);
    }

    /// Returns whether so much waits to be written that nothing more should be made.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.output.len() - self.written > OUTPUT_BYTES_MAX
    }

    /// Returns whether all is written.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    /// Writes what the socket takes.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn write(&mut self) -> Result<(), Error> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(disconnected()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::Socket(error).into()),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what has come, once, and hands it to `take`. Returns whether anything came.
    ///
    /// # Errors
    /// If the connection is broken or was closed, or as `take`.
    pub fn read(
        &mut self,
        mut take: impl FnMut(Event<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let count = match self.stream.read(&mut self.input[self.input_end..]) {
            Ok(0) => return Err(disconnected()),
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(error) => return Err(BenchError::Socket(error).into()),
        };
        self.input_end += count;
        let mut at = 0;
        while let Some(frame) = next_frame(&self.input[at..self.input_end])? {
            at += HEAD_BYTES + frame.payload.len() + 1;
            match frame.kind {
                FRAME_METHOD => {
                    self.is_closed |= frame.payload.starts_with(&CLOSE_OK);
                    if let Some(event) = method(frame.payload, &mut self.delivery)? {
                        take(event)?;
                    }
                }
                FRAME_HEADER if self.durable => self.number = number(frame.payload),
                // A message of the exchange is one frame.
                FRAME_BODY => {
                    if let Some(tag) = self.delivery.take() {
                        let number = self.number.take();
                        take(Event::Delivery { tag, number, body: frame.payload })?;
                    }
                }
                _ => {}
            }
        }
        self.input.copy_within(at..self.input_end, 0);
        self.input_end -= at;
        Ok(count > 0)
    }

    /// Ends the connection in order: the broker then has taken all that was published.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn close(mut self) -> Result<(), Error> {
        let mut close = BytesMut::new();
        let reply_code = ReplyCode::Success.code();
        let reply_text = ShortStr::from_static("done");
        Method::from(connection::Close { reply_code, reply_text, ..Default::default() })
            .encode(&mut close);
        push_frame(&mut self.output, FRAME_METHOD, 0, &close);
        let deadline = Instant::now() + CLOSE;
        while !self.is_closed && Instant::now() < deadline {
            self.write()?;
            // What still comes is nobody's.
            if !self.read(|_| Ok(()))? && !self.is_closed {
                self.wait(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Waits until something can be read, or written if something is to be, at most so long.
    pub fn wait(&self, at_most: Duration) {
        let mut wanted = PollFlags::IN;
        if !self.output.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let timeout = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // An error is seen by the next read.
        let _ = rustix::event::poll(&mut [PollFd::new(&self.stream, wanted)], Some(&timeout));
    }
}

struct Frame<'a> {
    kind: u8,
    payload: &'a [u8],
}

fn next_frame(data: &[u8]) -> Result<Option<Frame<'_>>, Error> {
    let Some(head) = data.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    if size > INPUT_BYTES / 2 {
        return Err(Error::Protocol(format!("a frame of {size} bytes")));
    }
    let Some(rest) = data.get(HEAD_BYTES..=HEAD_BYTES + size) else { return Ok(None) };
    Ok(Some(Frame { kind: head[0], payload: &rest[..size] }))
}

/// Decodes a method. Returns what it says; of a delivery it notes the tag.
fn method<'a>(payload: &[u8], delivery: &mut Option<u64>) -> Result<Option<Event<'a>>, Error> {
    let number = |at: usize| {
        let bytes = payload.get(at..at + 8)?;
        bytes.try_into().ok().map(u64::from_be_bytes)
    };
    let cut = || Error::Protocol("a method that is cut off".to_owned());
    match payload {
        // basic.deliver: a consumer tag, then the delivery tag.
        [0, 60, 0, 60, length, ..] => {
            *delivery = Some(number(5 + usize::from(*length)).ok_or_else(cut)?);
            Ok(None)
        }
        [0, 60, 0, 80, ..] => {
            let multiple = payload.get(12).is_some_and(|bits| bits & 1 > 0);
            Ok(Some(Event::Confirm { tag: number(4).ok_or_else(cut)?, multiple }))
        }
        [0, 60, 0, 120, ..] => Err(Error::Refused),
        [0, 60, 0, 30, ..] => Err(Error::Cancelled),
        [0, 10, 0, 50, ..] | [0, 20, 0, 40, ..] => {
            let closed = Method::decode(&Bytes::copy_from_slice(payload));
            Err(match closed {
                Ok(Method::ConnectionClose(close)) => BenchError::ConnectionClosed {
                    code: close.reply_code,
                    text: close.reply_text.to_string(),
                },
                Ok(Method::ChannelClose(close)) => BenchError::ChannelClosed {
                    code: close.reply_code,
                    text: close.reply_text.to_string(),
                },
                _ => return Err(cut()),
            }
            .into())
        }
        _ => Ok(None),
    }
}

/// Returns the number that stands in a content header.
fn number(header: &[u8]) -> Option<u32> {
    let properties = PropertyView::new(header.get(CONTENT_BYTES..)?);
    properties.message_id().and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

/// Method and header frames of a route's messages, and where in them stands what is of each message.
#[derive(Debug)]
struct Head {
    frames: Vec<u8>,
    size_at: usize,
    number_at: Option<usize>,
}

impl Head {
    fn new(venue: &Venue, route: Route) -> Self {
        let mut publish = vec![0, 60, 0, 40, 0, 0];
        for text in [venue.prefix.as_str(), route.name()] {
            // `short` has checked the prefix when the exchange was declared.
            publish.push(text.len() as u8);
            publish.extend_from_slice(text.as_bytes());
        }
        publish.push(0);
        let mut frames = Vec::new();
        push_frame(&mut frames, FRAME_METHOD, CHANNEL, &publish);
        // Class, weight, size.
        let mut header = BytesMut::from(&[0, 60, 0, 0][..]);
        let size_at = frames.len() + HEAD_BYTES + header.len();
        header.extend_from_slice(&[0; 8]);
        let delivery_mode = venue.durable.then_some(2);
        // Orders and measurements say themselves which they are. The paper's answers do not: where they may be sent again,
        // they are numbered, so that a repeat is no new one.
        let is_numbered = venue.durable && route == Route::Trades;
        let message_id = is_numbered.then(|| "0".repeat(NUMBER_DIGITS).into());
        Properties { delivery_mode, message_id, ..Properties::default() }.encode(&mut header);
        push_frame(&mut frames, FRAME_HEADER, CHANNEL, &header);
        // It is the last property; behind it is the frame's end.
        let number_at = is_numbered.then(|| frames.len() - 1 - NUMBER_DIGITS);
        Self { frames, size_at, number_at }
    }

    fn append(&self, to: &mut Vec<u8>, size: usize, number: u32) {
        let start = to.len();
        to.extend_from_slice(&self.frames);
        let size = (size as u64).to_be_bytes();
        to[start + self.size_at..][..size.len()].copy_from_slice(&size);
        if let Some(at) = self.number_at {
            let digits = to[start + at..][..NUMBER_DIGITS].iter_mut().rev();
            for (place, digit) in digits.enumerate() {
                *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
            }
        }
    }
}

fn short(text: &str) -> Result<ShortStr, BenchError> {
    ShortStr::from_bytes(Bytes::copy_from_slice(text.as_bytes()))
        .map_err(|error| BenchError::Arguments(format!("--prefix '{text}': {error}")))
}

fn disconnected() -> Error {
    BenchError::Disconnected { doing: "the exchange was open" }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn venue(durable: bool) -> Venue {
        let uri = "amqp://127.0.0.1".parse().unwrap();
        Venue { uri, prefix: "exchange".to_owned(), durable, feed: false, expires: true }
    }

    #[test]
    fn answers_that_may_be_sent_again_are_numbered() {
        for (durable, route, found) in [
            (true, Route::Trades, Some(0x12ab_34cd)),
            (true, Route::Orders, None),
            (false, Route::Trades, None),
        ] {
            let mut bytes = vec![1, 2, 3];
            Head::new(&venue(durable), route).append(&mut bytes, 9, 0x12ab_34cd);
            let method = next_frame(&bytes[3..]).unwrap().unwrap();
            let header = &bytes[3 + HEAD_BYTES + method.payload.len() + 1..];
            let header = next_frame(header).unwrap().unwrap();
            assert_eq!((method.kind, header.kind), (FRAME_METHOD, FRAME_HEADER));
            assert_eq!(header.payload[4..CONTENT_BYTES], 9u64.to_be_bytes());
            assert_eq!(number(header.payload), found, "{durable} {route:?}");
        }
    }
}

//! A client that sends what the test says, and reads frame by frame.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    AttachListener, Frame, Hello, Role, SlowPolicy, Start, WireError,
};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::encode_data;
use quelea_elastic_proto::{ClientId, Epoch, Fence, FrameBuffer, MessageSeq, Slot, parts};

use crate::relay::QUEUE;

/// A relay that does not answer fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: FrameBuffer,
    /// Producers that were there when it began to listen.
    pub(crate) present: Vec<Start>,
}

/// A message as a listener got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) slot: Slot,
    pub(crate) sequence: u64,
    pub(crate) parts: Vec<Bytes>,
}

impl Client {
    pub(crate) fn connected(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the relay listens"))
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        stream.set_nodelay(true).expect("a TCP socket");
        let mut buffer = FrameBuffer::new();
        buffer.greeted();
        Self { stream, buffer, present: Vec::new() }
    }

    pub(crate) fn greeted(address: SocketAddr) -> Self {
        let mut client = Self::connected(address);
        client.send(&hello());
        assert!(matches!(client.next(), Frame::Welcome(_)));
        client
    }

    pub(crate) fn send(&mut self, frame: &Frame) {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes).expect("within limits");
        self.send_bytes(&bytes);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the relay reads");
    }

    /// Reads the next frame; `None` at the connection's end.
    pub(crate) fn try_next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.buffer.next_frame().expect("the relay speaks the protocol") {
                return Some(frame);
            }
            let mut bytes = [0; 65_536];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.buffer.room_of(count).extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no frame came: {error}"),
            }
        }
    }

    pub(crate) fn next(&mut self) -> Frame {
        self.try_next().expect("the connection goes on")
    }

    /// Reads the next frame that is no CREDIT, ACK or MISSED.
    pub(crate) fn next_but_flow(&mut self) -> Frame {
        loop {
            match self.next() {
                Frame::Credit { .. } | Frame::Ack { .. } | Frame::Missed { .. } => {}
                frame => return frame,
            }
        }
    }

    pub(crate) fn error(&mut self) -> WireError {
        match self.next_but_flow() {
            Frame::Error(error) => error,
            other => panic!("{other:?} is no ERROR"),
        }
    }

    /// Reads until this message of the slot is acknowledged.
    pub(crate) fn acknowledged(&mut self, slot: Slot, below: u64) {
        loop {
            match self.next() {
                Frame::Ack { slot: of, below: at } if of == slot && at.0 >= below => {
                    assert_eq!(at.0, below);
                    return;
                }
                Frame::Ack { .. } | Frame::Credit { .. } | Frame::Missed { .. } => {}
                other => panic!("{other:?} instead of ACK"),
            }
        }
    }

    /// Sends ATTACH_PRODUCER. Returns its slot and its credit.
    pub(crate) fn attach(&mut self, producer: u128, epoch: u64) -> (Slot, u64) {
        self.send(&attach_producer(producer, epoch));
        match self.next_but_flow() {
            Frame::Attached { slot, credit_bytes, .. } => (slot, credit_bytes),
            other => panic!("{other:?} instead of ATTACHED"),
        }
    }

    /// Sends ATTACH_PRODUCER and START. Returns the slot.
    pub(crate) fn produce(&mut self, producer: u128, epoch: u64, first: u64) -> Slot {
        let (slot, _) = self.attach(producer, epoch);
        self.send(&start(slot, producer, epoch, first));
        slot
    }

    pub(crate) fn publish(&mut self, slot: Slot, sequence: u64, parts: &[&[u8]]) {
        let mut bytes = BytesMut::new();
        encode_data(&mut bytes, slot, MessageSeq(sequence), parts).expect("within limits");
        self.send_bytes(&bytes);
    }

    /// Many messages in one write: with this topic, each of `body_bytes`.
    pub(crate) fn publish_many(
        &mut self,
        slot: Slot,
        from: u64,
        count: u64,
        topic: &str,
        body_bytes: usize,
    ) {
        let body = vec![7; body_bytes];
        let mut bytes = BytesMut::new();
        for sequence in from..from + count {
            let parts: [&[u8]; 2] = [topic.as_bytes(), &body];
            encode_data(&mut bytes, slot, MessageSeq(sequence), &parts).expect("within limits");
        }
        self.send_bytes(&bytes);
    }

    pub(crate) fn listen(&mut self, listener: u128, prefixes: &[&str]) {
        self.listen_as(listener, None, prefixes);
    }

    pub(crate) fn listen_as(
        &mut self,
        listener: u128,
        slow: Option<SlowPolicy>,
        prefixes: &[&str],
    ) {
        self.send(&attach_listener(listener, slow, prefixes));
        loop {
            match self.next() {
                Frame::Attached { slot: Slot(0), .. } => return,
                // Those that are there already.
                Frame::Start(start) => self.present.push(start),
                other => panic!("{other:?} instead of ATTACHED"),
            }
        }
    }

    pub(crate) fn started(&mut self) -> Start {
        match self.next() {
            Frame::Start(start) => start,
            other => panic!("{other:?} instead of START"),
        }
    }

    pub(crate) fn message(&mut self) -> Got {
        match self.next() {
            Frame::Data { slot, sequence, parts } => {
                Got { slot, sequence: sequence.0, parts: parts::slices(&parts).collect() }
            }
            other => panic!("{other:?} instead of DATA"),
        }
    }

    /// Reads the next messages and returns their numbers.
    pub(crate) fn sequences(&mut self, count: u64) -> Vec<u64> {
        (0..count).map(|_| self.message().sequence).collect()
    }

    /// Has the relay do all that was sent to it before.
    pub(crate) fn synchronise(&mut self) {
        self.send(&Frame::Ping(77));
        loop {
            match self.next() {
                Frame::Pong(77) => return,
                Frame::Credit { .. } | Frame::Ack { .. } | Frame::Missed { .. } => {}
                other => panic!("{other:?} instead of PONG"),
            }
        }
    }
}

pub(crate) fn hello() -> Frame {
    Frame::Hello(Hello {
        version: VERSION,
        role: Role::Client,
        name: "test".to_owned(),
        key: Bytes::new(),
    })
}

pub(crate) fn attach_producer(producer: u128, epoch: u64) -> Frame {
    let (producer, fence, epoch) = (ClientId(producer), Fence(0), Epoch(epoch));
    Frame::AttachProducer { queue: QUEUE.to_owned(), producer, fence, epoch }
}

pub(crate) fn attach_listener(
    listener: u128,
    slow: Option<SlowPolicy>,
    prefixes: &[&str],
) -> Frame {
    let prefixes = prefixes.iter().map(|prefix| Bytes::copy_from_slice(prefix.as_bytes()));
    let (queue, listener) = (QUEUE.to_owned(), ClientId(listener));
    let prefixes = prefixes.collect();
    Frame::AttachListener(AttachListener { queue, listener, slow, prefixes })
}

pub(crate) fn start(slot: Slot, producer: u128, epoch: u64, first: u64) -> Frame {
    Frame::Start(Start {
        slot,
        producer: ClientId(producer),
        epoch: Epoch(epoch),
        first: MessageSeq(first),
        previous: Epoch(0),
    })
}

//! ZeroMQ's sockets at a relay's own ports, played by the protocol's state machine.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use quelea_elastic_proto::frame::{Frame, SlowPolicy};
use quelea_elastic_relay::ZmtpConfig;
use quelea_elastic_zmtp::{
    Connection, Event, Heartbeat, Security, Settings, SocketType, ZmtpTime, frame_parts,
};

use crate::relay::TestRelay;

const PATIENCE: Duration = Duration::from_secs(30);
/// Asked often, and given up late.
const HEARTBEAT: Heartbeat = Heartbeat { interval_ms: 20, timeout_ms: 30_000, ttl_ms: 90_000 };

/// A PUB that has shaken hands.
struct Pub {
    stream: TcpStream,
    connection: Connection,
    subscribed: bool,
    pings: u32,
}

impl Pub {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the relay listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let settings = Settings {
            socket_type: SocketType::Pub,
            identity: Vec::new().into(),
            heartbeat: Heartbeat::default(),
        };
        let connection = Connection::new(settings, Security::Null, ZmtpTime(0));
        let mut this = Self { stream, connection, subscribed: false, pings: 0 };
        while !this.subscribed {
            this.read();
        }
        this
    }

    /// Reads once, and answers.
    fn read(&mut self) {
        self.answer();
        let mut bytes = [0; 4_096];
        let length = self.stream.read(&mut bytes).expect("the relay is there");
        assert_ne!(length, 0, "it has closed");
        self.connection.receive(ZmtpTime(0), &bytes[..length]);
        while let Some(event) =
            self.connection.poll_event(ZmtpTime(0)).expect("it keeps the protocol")
        {
            self.subscribed |= matches!(event, Event::Subscribe(_));
        }
        self.answer();
    }

    fn answer(&mut self) {
        let output = self.connection.take_output();
        self.pings += u32::from(output.windows(4).any(|word| word == b"PONG"));
        self.stream.write_all(&output).expect("the relay is there");
    }

    /// Waits until it was asked so often whether it is there: that long has passed.
    fn wait(&mut self, pings: u32) {
        let until = self.pings + pings;
        while self.pings < until {
            self.read();
        }
    }
}

#[test]
fn a_pub_that_closes_while_it_is_held_back_loses_no_message() {
    let relay = TestRelay::with(|config| {
        config.settings.slow = SlowPolicy::HoldProducers;
        config.zmtp =
            Some(ZmtpConfig { heartbeat: HEARTBEAT, ..ZmtpConfig::open("127.0.0.1:0", "") });
    });
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let address = relay.zmtp.producers.expect("it is on");
    let (mut flood, mut clock) = (Pub::connect(address), Pub::connect(address));
    flood.stream.set_nonblocking(true).expect("a TCP socket");
    let message = frame_parts(&[b"topic", &[7; 8_000]]);
    // Until nothing more goes into the sockets for some heartbeats.
    let (mut sent, mut stuck) = (0, 0);
    let mut rest = &message[..];
    while stuck < 3 {
        match flood.stream.write(rest) {
            Ok(bytes) => {
                (rest, stuck) = (&rest[bytes..], 0);
                if rest.is_empty() {
                    (rest, sent) = (&message[..], sent + 1);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                clock.wait(1);
                stuck += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    // Closing with unread PINGs would be a reset of our own.
    let mut nobody = [0; 4_096];
    while matches!(flood.stream.read(&mut nobody), Ok(1..)) {}
    drop(flood);
    clock.wait(5);
    let mut next = 0;
    loop {
        match listener.next() {
            Frame::Data { sequence, .. } => {
                assert_eq!(sequence.0, next);
                next += 1;
            }
            // The clock's is later: it is here until the end.
            Frame::Fin { .. } => break,
            Frame::Start(_) | Frame::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next, sent);
}

//! Two connections with a wire between them.

use std::sync::Arc;

use bytes::Bytes;
use quelea_elastic_zmtp::{
    AllowedKeys, Connection, Entropy, Error, Event, Heartbeat, Peer, SecretKey, Security, Settings,
    SocketType, Users, ZmtpTime,
};

pub(crate) struct ConnectionPair {
    pub(crate) a: Connection,
    pub(crate) b: Connection,
    pub(crate) now: ZmtpTime,
}

/// What one end saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    pub(crate) error: Option<Error>,
}

impl Seen {
    pub(crate) fn peer(&self) -> &Peer {
        match self.events.first() {
            Some(Event::Ready(peer)) => peer,
            other => panic!("not ready: {other:?}, {:?}", self.error),
        }
    }
}

impl ConnectionPair {
    /// Creates an XSUB and a PUB.
    pub(crate) fn new(a: Security, b: Security) -> Self {
        Self::of(settings(SocketType::Xsub), a, settings(SocketType::Pub), b)
    }

    pub(crate) fn of(at_a: Settings, a: Security, at_b: Settings, b: Security) -> Self {
        let now = ZmtpTime(0);
        Self { a: Connection::new(at_a, a, now), b: Connection::new(at_b, b, now), now }
    }

    /// Creates an XSUB and a PUB, and runs both handshakes, which go well.
    pub(crate) fn ready(a: Security, b: Security) -> Self {
        let mut pair = Self::new(a, b);
        let (at_a, at_b) = pair.run();
        assert!(
            at_a.peer().socket_type == SocketType::Pub
                && at_b.peer().socket_type == SocketType::Xsub
        );
        pair
    }

    /// Carries bytes until nobody has any left.
    pub(crate) fn run(&mut self) -> (Seen, Seen) {
        let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
        loop {
            let (to_b, to_a) = (self.a.take_output(), self.b.take_output());
            if to_a.is_empty() && to_b.is_empty() {
                return (at_a, at_b);
            }
            take(&mut self.a, self.now, &to_a, &mut at_a);
            take(&mut self.b, self.now, &to_b, &mut at_b);
        }
    }

    /// Publishes a message from b to a. Returns what a saw.
    pub(crate) fn publish(&mut self, message: &Bytes) -> Seen {
        let sealed = self.b.seal(message).expect("the handshake is over");
        let mut seen = Seen::default();
        take(&mut self.a, self.now, &sealed, &mut seen);
        seen
    }
}

/// Passes bytes to a connection, and takes its events.
pub(crate) fn take(connection: &mut Connection, now: ZmtpTime, bytes: &[u8], seen: &mut Seen) {
    connection.receive(now, bytes);
    loop {
        match connection.poll_event(now) {
            Ok(None) => return,
            Ok(Some(event)) => seen.events.push(event),
            Err(error) => {
                seen.error = Some(error);
                return;
            }
        }
    }
}

pub(crate) fn settings(socket_type: SocketType) -> Settings {
    Settings { socket_type, identity: Bytes::new(), heartbeat: Heartbeat::default() }
}

pub(crate) fn users() -> Security {
    let mut users = Users::default();
    assert!(users.insert("ada", "lovelace"));
    assert!(users.insert("nobody", ""));
    Security::PlainServer(Arc::new(users))
}

pub(crate) fn user(user: &str, password: &str) -> Security {
    Security::PlainClient { user: user.to_owned(), password: password.to_owned() }
}

/// Returns a key pair for each number, the same in every run.
pub(crate) fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes([number; 32])
}

pub(crate) fn entropy(number: u8) -> Entropy {
    let mut bytes = [number; Entropy::BYTES];
    bytes[0] = 0;
    Entropy::from_bytes(&bytes)
}

/// Returns the security of a server with key 1.
pub(crate) fn curve_server(clients: AllowedKeys) -> Security {
    Security::CurveServer { secret: key(1), clients: Arc::new(clients), entropy: entropy(11) }
}

pub(crate) fn curve_client(secret: u8, server: u8) -> Security {
    Security::CurveClient {
        secret: key(secret),
        server: key(server).public(),
        entropy: entropy(12),
    }
}

/// Returns each mechanism, as (a's side, b's side).
pub(crate) fn mechanisms() -> Vec<(Security, Security)> {
    vec![
        (Security::Null, Security::Null),
        (users(), user("ada", "lovelace")),
        (user("ada", "lovelace"), users()),
        (curve_server(AllowedKeys::All), curve_client(2, 1)),
        (curve_client(2, 1), curve_server(AllowedKeys::All)),
    ]
}

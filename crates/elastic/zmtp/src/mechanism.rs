//! The handshake between the greeting and the first message.

mod curve_client;
mod curve_server;
mod plain;
pub(crate) mod session;

use bytes::{Bytes, BytesMut};

use self::curve_client::CurveClient;
use self::curve_server::CurveServer;
use self::session::CurveSession;
use crate::curve::PublicKey;
use crate::metadata::Metadata;
use crate::security::Security;
use crate::{Error, command};

/// A handshake under way.
#[derive(Debug)]
pub(crate) enum Mechanism {
    /// Both send READY, and wait for the other's.
    Null,
    PlainServer(plain::Server),
    PlainClient(plain::Client),
    CurveServer(Box<CurveServer>),
    CurveClient(Box<CurveClient>),
}

/// What a command of the handshake leads to.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send this command, and wait for the next.
    Send(BytesMut),
    /// Send this command, if there is one: the handshake is over.
    Done(Option<BytesMut>, Outcome),
}

/// What a handshake has found out.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) metadata: Metadata,
    /// PLAIN's user.
    pub(crate) user: Option<String>,
    /// CURVE's client.
    pub(crate) key: Option<PublicKey>,
    /// What seals the messages.
    pub(crate) session: Option<CurveSession>,
}

impl Outcome {
    const fn of(metadata: Metadata) -> Self {
        Self { metadata, user: None, key: None, session: None }
    }
}

impl Mechanism {
    pub(crate) fn new(security: Security) -> Self {
        match security {
            Security::Null => Self::Null,
            Security::PlainServer(users) => Self::PlainServer(plain::Server::new(users)),
            Security::PlainClient { user, password } => {
                Self::PlainClient(plain::Client::new(user, password))
            }
            Security::CurveServer { secret, clients, entropy } => {
                Self::CurveServer(Box::new(CurveServer::new(secret, clients, entropy)))
            }
            Security::CurveClient { secret, server, entropy } => {
                Self::CurveClient(Box::new(CurveClient::new(secret, server, entropy)))
            }
        }
    }

    /// Returns the first command, if it is ours to send.
    pub(crate) fn start(&mut self, ours: &Metadata) -> Option<BytesMut> {
        match self {
            Self::Null => Some(with_metadata("READY", ours)),
            Self::PlainClient(client) => Some(client.hello()),
            Self::CurveClient(client) => Some(client.hello()),
            Self::PlainServer(_) | Self::CurveServer(_) => None,
        }
    }

    /// Takes a command of the peer.
    pub(crate) fn receive(&mut self, body: Bytes, ours: &Metadata) -> Result<Step, Error> {
        match self {
            Self::Null => {
                let properties = command::expect("READY", body)?;
                let metadata = Metadata::parse("READY", properties, ours.socket_type)?;
                Ok(Step::Done(None, Outcome::of(metadata)))
            }
            Self::PlainServer(server) => server.receive(body, ours),
            Self::PlainClient(client) => client.receive(body, ours),
            Self::CurveServer(server) => server.receive(body, ours),
            Self::CurveClient(client) => client.receive(body, ours),
        }
    }
}

fn with_metadata(name: &str, ours: &Metadata) -> BytesMut {
    let mut body = command::begin(name, 64 + ours.identity.len());
    ours.put(&mut body);
    body
}

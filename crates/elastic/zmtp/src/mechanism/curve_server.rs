//! CURVE's server (rfc.zeromq.org/spec/26): HELLO in, WELCOME out, INITIATE in, READY out.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::session::CurveSession;
use super::{Outcome, Step};
use crate::curve::{Entropy, PublicKey, SecretKey, TAG_BYTES, counted, random};
use crate::metadata::Metadata;
use crate::security::AllowedKeys;
use crate::{Error, command};

/// HELLO without its name: version, padding, C', nonce, box of 64 zeros.
const HELLO_BYTES: usize = 2 + 72 + 32 + 8 + TAG_BYTES + 64;
/// What is in INITIATE's box in front of the metadata: C, the vouch's nonce, the vouch's box of C' and S.
const INITIATE_PLAIN_BYTES: usize = 32 + 16 + TAG_BYTES + 64;

#[derive(Debug)]
pub(crate) struct CurveServer {
    secret: SecretKey,
    clients: Arc<AllowedKeys>,
    entropy: Entropy,
    /// The client's key of this connection, from HELLO.
    short_client: Option<PublicKey>,
}

impl CurveServer {
    pub(crate) const fn new(
        secret: SecretKey,
        clients: Arc<AllowedKeys>,
        entropy: Entropy,
    ) -> Self {
        Self { secret, clients, entropy, short_client: None }
    }

    pub(crate) fn receive(&mut self, body: Bytes, ours: &Metadata) -> Result<Step, Error> {
        match self.short_client {
            None => {
                let short_client = self.hello(&command::expect("HELLO", body)?)?;
                self.short_client = Some(short_client);
                Ok(Step::Send(self.welcome(&short_client)))
            }
            Some(short_client) => {
                self.initiate(&short_client, &command::expect("INITIATE", body)?, ours)
            }
        }
    }

    /// Checks that the client shows that it knows S: who does not learns nothing of us. Returns its
    /// short-term key.
    fn hello(&self, rest: &[u8]) -> Result<PublicKey, Error> {
        let malformed = |what| Error::malformed("HELLO", what);
        if rest.len() != HELLO_BYTES {
            return Err(malformed("CURVE's has 200 bytes"));
        }
        if rest[..2] != [1, 0] {
            return Err(malformed("CURVE's version is not 1.0"));
        }
        let short_client = PublicKey(array(&rest[74..106]));
        let nonce = counted(b"CurveZMQHELLO---", number(&rest[106..114]));
        let mut sealed: [u8; TAG_BYTES + 64] = array(&rest[114..]);
        let zeros = self.secret.with(&short_client).open(&nonce, &mut sealed);
        if zeros.is_some_and(|zeros| zeros == [0; 64]) {
            Ok(short_client)
        } else {
            Err(Error::Box { command: "HELLO" })
        }
    }

    /// Returns WELCOME: S' and a cookie. A cookie lets a server forget the client until INITIATE;
    /// over TCP there is a connection to remember, so ours holds nothing: it is random, and must
    /// come back.
    fn welcome(&self, short_client: &PublicKey) -> BytesMut {
        let nonce = random(b"WELCOME-", &self.entropy.nonce);
        let mut body = command::of("WELCOME", &self.entropy.nonce);
        self.secret.with(short_client).put(&mut body, &nonce, |plain| {
            plain.put_slice(&self.entropy.short_secret.public().0);
            plain.put_slice(&self.entropy.cookie);
        });
        body
    }

    fn initiate(
        &self,
        short_client: &PublicKey,
        rest: &[u8],
        ours: &Metadata,
    ) -> Result<Step, Error> {
        const SEALED_AT: usize = Entropy::COOKIE_BYTES + 8;
        let malformed = |what| Error::malformed("INITIATE", what);
        if rest.len() < SEALED_AT + TAG_BYTES + INITIATE_PLAIN_BYTES {
            return Err(malformed("CURVE's has at least 257 bytes"));
        }
        if rest[..Entropy::COOKIE_BYTES] != self.entropy.cookie {
            return Err(malformed("the cookie is not ours"));
        }
        let seal = self.entropy.short_secret.with(short_client);
        let count = number(&rest[Entropy::COOKIE_BYTES..SEALED_AT]);
        let nonce = counted(b"CurveZMQINITIATE", count);
        let mut sealed = BytesMut::from(&rest[SEALED_AT..]);
        let plain = seal.open(&nonce, &mut sealed).ok_or(Error::Box { command: "INITIATE" })?;
        let client = self.vouched(short_client, plain)?;
        let properties = Bytes::copy_from_slice(&plain[INITIATE_PLAIN_BYTES..]);
        let metadata = Metadata::parse("INITIATE", properties, ours.socket_type)?;
        let mut session = CurveSession::server(seal, count);
        let ready = session.ready(ours);
        let outcome = Outcome { metadata, user: None, key: Some(client), session: Some(session) };
        Ok(Step::Done(Some(ready), outcome))
    }

    /// Checks the vouch, and that the client may be here. Returns its long-term key, which vouches
    /// for the short one to us and nobody else.
    fn vouched(&self, short_client: &PublicKey, plain: &[u8]) -> Result<PublicKey, Error> {
        let client = PublicKey(array(&plain[..32]));
        let nonce = random(b"VOUCH---", &plain[32..48]);
        let mut sealed: [u8; TAG_BYTES + 64] = array(&plain[48..INITIATE_PLAIN_BYTES]);
        let vouch = self.entropy.short_secret.with(&client).open(&nonce, &mut sealed);
        let vouch = vouch.ok_or(Error::Box { command: "INITIATE's vouch" })?;
        if vouch[..32] != short_client.0 || vouch[32..] != self.secret.public().0 {
            return Err(Error::malformed("INITIATE", "the vouch is for other keys"));
        }
        if self.clients.allows(&client) {
            Ok(client)
        } else {
            Err(Error::Denied { who: format!("key {client}") })
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller has cut it to this length")
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(array(bytes))
}

//! CURVE's client (rfc.zeromq.org/spec/26): HELLO out, WELCOME in, INITIATE out, READY in.

use bytes::{BufMut, Bytes, BytesMut};

use super::session::CurveSession;
use super::{Outcome, Step};
use crate::curve::{Entropy, PublicKey, Seal, SecretKey, TAG_BYTES, counted, random};
use crate::metadata::Metadata;
use crate::{Error, command};

const WELCOME_BYTES: usize = 16 + TAG_BYTES + 32 + Entropy::COOKIE_BYTES;
const HELLO_COUNT: u64 = 1;
const INITIATE_COUNT: u64 = 2;

#[derive(Debug)]
pub(crate) struct CurveClient {
    secret: SecretKey,
    server: PublicKey,
    entropy: Entropy,
    /// What the two keys of this connection share, from WELCOME.
    seal: Option<Seal>,
}

impl CurveClient {
    pub(crate) const fn new(secret: SecretKey, server: PublicKey, entropy: Entropy) -> Self {
        Self { secret, server, entropy, seal: None }
    }

    /// Returns HELLO: C', and that we know S. As long as WELCOME at least, so that nobody can use a
    /// server to amplify.
    pub(crate) fn hello(&self) -> BytesMut {
        let short = &self.entropy.short_secret;
        let mut body = command::begin("HELLO", 200);
        body.put_slice(&[1, 0]);
        body.put_bytes(0, 72);
        body.put_slice(&short.public().0);
        body.put_u64(HELLO_COUNT);
        let nonce = counted(b"CurveZMQHELLO---", HELLO_COUNT);
        short.with(&self.server).put(&mut body, &nonce, |plain| plain.put_bytes(0, 64));
        body
    }

    pub(crate) fn receive(&mut self, body: Bytes, ours: &Metadata) -> Result<Step, Error> {
        match self.seal.take() {
            None => self.welcome(&command::expect("WELCOME", body)?, ours),
            Some(seal) => {
                let mut session = CurveSession::client(seal, INITIATE_COUNT);
                let properties = session.open_ready(&command::expect("READY", body)?)?;
                let metadata = Metadata::parse("READY", properties, ours.socket_type)?;
                let outcome = Outcome {
                    key: Some(self.server),
                    session: Some(session),
                    ..Outcome::of(metadata)
                };
                Ok(Step::Done(None, outcome))
            }
        }
    }

    fn welcome(&mut self, rest: &[u8], ours: &Metadata) -> Result<Step, Error> {
        if rest.len() != WELCOME_BYTES {
            return Err(Error::malformed("WELCOME", "CURVE's has 168 bytes"));
        }
        let nonce = random(b"WELCOME-", &rest[..16]);
        let mut sealed = BytesMut::from(&rest[16..]);
        let seal = self.entropy.short_secret.with(&self.server);
        let plain = seal.open(&nonce, &mut sealed).ok_or(Error::Box { command: "WELCOME" })?;
        let (key, cookie) = plain.split_at(32);
        let short_server = PublicKey(key.try_into().expect("cut to 32 bytes"));
        let seal = self.entropy.short_secret.with(&short_server);
        let initiate = self.initiate(&seal, &short_server, cookie, ours);
        self.seal = Some(seal);
        Ok(Step::Send(initiate))
    }

    fn initiate(
        &self,
        seal: &Seal,
        short_server: &PublicKey,
        cookie: &[u8],
        ours: &Metadata,
    ) -> BytesMut {
        let mut body = command::begin("INITIATE", 512);
        body.put_slice(cookie);
        body.put_u64(INITIATE_COUNT);
        seal.put(&mut body, &counted(b"CurveZMQINITIATE", INITIATE_COUNT), |plain| {
            plain.put_slice(&self.secret.public().0);
            plain.put_slice(&self.entropy.nonce);
            let vouch_nonce = random(b"VOUCH---", &self.entropy.nonce);
            self.secret.with(short_server).put(plain, &vouch_nonce, |vouch| {
                vouch.put_slice(&self.entropy.short_secret.public().0);
                vouch.put_slice(&self.server.0);
            });
            ours.put(plain);
        });
        body
    }
}

//! PLAIN (ZMTP 3.1 §3.3.4): HELLO with name and password, WELCOME, INITIATE, READY.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Outcome, Step, with_metadata};
use crate::metadata::Metadata;
use crate::security::Users;
use crate::{Error, command};

#[derive(Debug)]
pub(crate) struct Server {
    users: Arc<Users>,
    /// Whoever was let in by HELLO.
    user: Option<String>,
}

impl Server {
    pub(crate) const fn new(users: Arc<Users>) -> Self {
        Self { users, user: None }
    }

    pub(crate) fn receive(&mut self, body: Bytes, ours: &Metadata) -> Result<Step, Error> {
        let Some(user) = self.user.take() else {
            self.user = Some(self.hello(&command::expect("HELLO", body)?)?);
            return Ok(Step::Send(command::of("WELCOME", &[])));
        };
        let properties = command::expect("INITIATE", body)?;
        let metadata = Metadata::parse("INITIATE", properties, ours.socket_type)?;
        let outcome = Outcome { user: Some(user), ..Outcome::of(metadata) };
        Ok(Step::Done(Some(with_metadata("READY", ours)), outcome))
    }

    fn hello(&self, rest: &[u8]) -> Result<String, Error> {
        let read = take(rest).and_then(|(user, rest)| Some((user, take(rest)?)));
        let Some((user, (password, []))) = read else {
            return Err(Error::malformed("HELLO", "no name and password, and nothing else"));
        };
        let name = command::text(user);
        if self.users.allows(user, password) {
            Ok(name)
        } else {
            Err(Error::Denied { who: format!("user {name:?}") })
        }
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    user: String,
    password: String,
    welcome: bool,
}

impl Client {
    pub(crate) const fn new(user: String, password: String) -> Self {
        Self { user, password, welcome: false }
    }

    pub(crate) fn hello(&self) -> BytesMut {
        let mut body = command::begin("HELLO", 2 + self.user.len() + self.password.len());
        for text in [&self.user, &self.password] {
            // Longer ones are refused by every server: none can know them.
            let kept = &text.as_bytes()[..text.len().min(crate::limits::CREDENTIAL_BYTES_MAX)];
            body.put_u8(u8::try_from(kept.len()).expect("cut to 255 bytes"));
            body.put_slice(kept);
        }
        body
    }

    pub(crate) fn receive(&mut self, body: Bytes, ours: &Metadata) -> Result<Step, Error> {
        if !self.welcome {
            if !command::expect("WELCOME", body)?.is_empty() {
                return Err(Error::malformed("WELCOME", "it is not empty"));
            }
            self.welcome = true;
            return Ok(Step::Send(with_metadata("INITIATE", ours)));
        }
        let properties = command::expect("READY", body)?;
        let metadata = Metadata::parse("READY", properties, ours.socket_type)?;
        Ok(Step::Done(None, Outcome::of(metadata)))
    }
}

/// Splits off the bytes behind their length. Returns them, and what follows them.
fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

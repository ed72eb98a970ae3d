//! How a sender opens a sealed flow.

use crate::seal::keyring::HANDSHAKE_BYTES;
use crate::seal::{FlowSeal, Keyring, Rejected};
use crate::wire::handshake::SALT_BYTES;
use crate::wire::{HEADER_BYTES, Header, Kind, flags};

/// A sender's part of a flow's handshake. It lasts as long as the flow: HELLO is said again when the
/// receiver does not answer any more, and if it has forgotten the flow (or was started anew) there
/// are new keys.
#[derive(Debug)]
pub struct Greeting {
    salt: [u8; SALT_BYTES],
    /// The number of the last HELLO.
    attempt: u64,
    /// The receiver's salt, of the keys in use.
    receiver_salt: Option<[u8; SALT_BYTES]>,
}

/// What a CHALLENGE means.
#[derive(Debug)]
pub enum Answer {
    /// The flow's seal from now on. What was sealed before and is still to be delivered has to be
    /// sealed anew ([`FlowSeal::recover`]): the receiver cannot read it.
    Keys(Box<FlowSeal>),
    /// The receiver has the keys that are in use.
    Same,
}

impl Greeting {
    /// Creates the greeting of a flow, with a salt of its own ([`crate::seal::Salts::salt`]).
    #[must_use]
    pub const fn new(salt: [u8; SALT_BYTES]) -> Self {
        Self { salt, attempt: 0, receiver_salt: None }
    }

    /// Makes the next HELLO. `header` says the flow, the session, the mailbox and the mode; the
    /// rest is filled in.
    pub fn hello(&mut self, keyring: &Keyring, mut header: Header) -> [u8; HANDSHAKE_BYTES] {
        self.attempt += 1;
        header.kind = Kind::Hello;
        header.flags = header.flags & (flags::MODE_MASK | flags::CREDIT) | flags::SEALED;
        header.sequence = self.attempt;
        header.count = 0;
        header.first_message = 0;
        let mut datagram = [0; HANDSHAKE_BYTES];
        header.write(&mut datagram);
        datagram[HEADER_BYTES..HEADER_BYTES + SALT_BYTES].copy_from_slice(&self.salt);
        keyring.sign(&mut datagram, None);
        datagram
    }

    /// Takes the CHALLENGE of the flow; `header` is the datagram's.
    ///
    /// # Errors
    /// It does not answer the last HELLO, or is forged.
    pub fn on_challenge(
        &mut self,
        keyring: &Keyring,
        header: &Header,
        datagram: &[u8],
    ) -> Result<Answer, Rejected> {
        if header.kind != Kind::Challenge || !header.has(flags::SEALED) {
            return Err(Rejected::NotAuthentic);
        }
        let salt = keyring.verify(datagram, Some(&self.salt))?;
        // A recorded CHALLENGE of a receiver that is no more would make keys that nobody has.
        if self.attempt == 0 || header.sequence != self.attempt {
            return Err(Rejected::Replayed);
        }
        if self.receiver_salt == Some(salt) {
            return Ok(Answer::Same);
        }
        self.receiver_salt = Some(salt);
        let seal = FlowSeal::of_salts(true, keyring, header, &self.salt, &salt);
        Ok(Answer::Keys(Box::new(seal)))
    }
}

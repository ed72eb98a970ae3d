//! How a receiver answers a HELLO.

use crate::seal::keyring::HANDSHAKE_BYTES;
use crate::seal::{FlowSeal, Keyring, Rejected};
use crate::wire::handshake::SALT_BYTES;
use crate::wire::{HEADER_BYTES, Header, Kind, flags};

/// A receiver's part of a flow's handshake, and the flow's seal.
///
/// The receiver's salt is fresh for each flow that it does not know, so what was recorded of a flow
/// before it was forgotten is worth nothing. A HELLO is authentic or there is no reception; still it
/// can be a recorded one, so the flow is proven only when something was opened.
#[derive(Debug)]
pub struct Reception {
    sender_salt: [u8; SALT_BYTES],
    receiver_salt: [u8; SALT_BYTES],
    /// The highest number of a HELLO.
    attempt: u64,
    /// Seals and opens the flow's datagrams.
    pub seal: FlowSeal,
}

impl Reception {
    /// Takes the HELLO of a flow that is not known here; `header` is the datagram's. `salt` is asked
    /// for if the HELLO is authentic, and must be fresh ([`crate::seal::Salts::salt`]). Returns the
    /// CHALLENGE to answer with, which is not larger.
    ///
    /// # Errors
    /// It is forged.
    pub fn new(
        keyring: &Keyring,
        header: &Header,
        datagram: &[u8],
        salt: impl FnOnce() -> [u8; SALT_BYTES],
    ) -> Result<(Self, [u8; HANDSHAKE_BYTES]), Rejected> {
        let sender_salt = verify(keyring, header, datagram)?;
        let receiver_salt = salt();
        let seal = FlowSeal::of_salts(false, keyring, header, &sender_salt, &receiver_salt);
        let new = Self { sender_salt, receiver_salt, attempt: header.sequence, seal };
        let challenge = new.challenge(keyring, header);
        Ok((new, challenge))
    }

    /// Takes another HELLO of the flow: its sender did not get an answer. Returns the CHALLENGE again.
    ///
    /// # Errors
    /// It is forged, or was recorded earlier.
    pub fn on_hello(
        &mut self,
        keyring: &Keyring,
        header: &Header,
        datagram: &[u8],
    ) -> Result<[u8; HANDSHAKE_BYTES], Rejected> {
        let salt = verify(keyring, header, datagram)?;
        // A flow has one salt as long as it lives.
        if header.sequence < self.attempt || salt != self.sender_salt {
            return Err(Rejected::Replayed);
        }
        self.attempt = header.sequence;
        Ok(self.challenge(keyring, header))
    }

    fn challenge(&self, keyring: &Keyring, hello: &Header) -> [u8; HANDSHAKE_BYTES] {
        let mut datagram = [0; HANDSHAKE_BYTES];
        Header { kind: Kind::Challenge, ..*hello }.write(&mut datagram);
        datagram[HEADER_BYTES..HEADER_BYTES + SALT_BYTES].copy_from_slice(&self.receiver_salt);
        keyring.sign(&mut datagram, Some(&self.sender_salt));
        datagram
    }
}

fn verify(
    keyring: &Keyring,
    header: &Header,
    datagram: &[u8],
) -> Result<[u8; SALT_BYTES], Rejected> {
    if header.kind != Kind::Hello || !header.has(flags::SEALED) {
        return Err(Rejected::NotAuthentic);
    }
    keyring.verify(datagram, None)
}

//! What is made of the pre-shared key.

use ring::{hkdf, hmac};

use crate::config::PreSharedKey;
use crate::seal::{HANDSHAKE_TAG_BYTES, Rejected};
use crate::wire::HEADER_BYTES;
use crate::wire::handshake::SALT_BYTES;

/// Bytes of a HELLO or CHALLENGE of those who share a key: a header, a salt, a tag. They are equal, so
/// that an answer is never larger than what it answers.
pub const HANDSHAKE_BYTES: usize = HEADER_BYTES + SALT_BYTES + HANDSHAKE_TAG_BYTES;

const TAG_AT: usize = HANDSHAKE_BYTES - HANDSHAKE_TAG_BYTES;

/// An endpoint's pre-shared key, ready for use.
pub struct Keyring {
    shared: PreSharedKey,
    greeting: hmac::Key,
    /// The secret of all groups.
    group: hkdf::Prk,
}

impl Keyring {
    /// Creates the keyring of the secret that both ends have.
    #[must_use]
    pub fn new(shared: PreSharedKey) -> Self {
        let secret =
            hkdf::Salt::new(hkdf::HKDF_SHA256, b"quelea cmq 1 greeting").extract(&shared.0);
        let okm = secret
            .expand(&[b"hello and challenge"], hmac::HMAC_SHA256)
            .expect("32 bytes are within what HKDF-SHA256 gives");
        let group = hkdf::Salt::new(hkdf::HKDF_SHA256, b"quelea cmq 1 group").extract(&shared.0);
        Self { shared, greeting: okm.into(), group }
    }

    /// Returns the secret of one flow.
    pub(super) fn flow_secret(
        &self,
        sender_salt: &[u8; SALT_BYTES],
        receiver_salt: &[u8; SALT_BYTES],
    ) -> hkdf::Prk {
        let mut salts = [0; 2 * SALT_BYTES];
        salts[..SALT_BYTES].copy_from_slice(sender_salt);
        salts[SALT_BYTES..].copy_from_slice(receiver_salt);
        hkdf::Salt::new(hkdf::HKDF_SHA256, &salts).extract(&self.shared.0)
    }

    /// Returns the secret of all groups: nobody answers there, so nobody has a salt.
    pub(super) const fn group_secret(&self) -> &hkdf::Prk {
        &self.group
    }

    /// Fills in the tag of a HELLO (`sender_salt` is none: it is in the datagram) or of a CHALLENGE.
    pub(super) fn sign(
        &self,
        datagram: &mut [u8; HANDSHAKE_BYTES],
        sender_salt: Option<&[u8; SALT_BYTES]>,
    ) {
        let context = self.context(&datagram[..TAG_AT], sender_salt);
        datagram[TAG_AT..].copy_from_slice(context.sign().as_ref());
    }

    /// Checks the tag of a HELLO or of a CHALLENGE, and returns its salt. Padding may follow.
    pub(super) fn verify(
        &self,
        datagram: &[u8],
        sender_salt: Option<&[u8; SALT_BYTES]>,
    ) -> Result<[u8; SALT_BYTES], Rejected> {
        let datagram: &[u8; HANDSHAKE_BYTES] =
            datagram.first_chunk().ok_or(Rejected::NotAuthentic)?;
        let mut signed = [0; TAG_AT + SALT_BYTES];
        signed[..TAG_AT].copy_from_slice(&datagram[..TAG_AT]);
        let mut end = TAG_AT;
        if let Some(salt) = sender_salt {
            signed[TAG_AT..].copy_from_slice(salt);
            end += SALT_BYTES;
        }
        hmac::verify(&self.greeting, &signed[..end], &datagram[TAG_AT..])
            .map_err(|_| Rejected::NotAuthentic)?;
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(&datagram[HEADER_BYTES..TAG_AT]);
        Ok(salt)
    }

    fn context(&self, signed: &[u8], sender_salt: Option<&[u8; SALT_BYTES]>) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.greeting);
        context.update(signed);
        if let Some(salt) = sender_salt {
            context.update(salt);
        }
        context
    }
}

impl core::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keyring(..)")
    }
}

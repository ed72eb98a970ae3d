//! CURVE's keys and boxes (rfc.zeromq.org/spec/26), over NaCl's `crypto_box`.

use core::fmt;
use core::str::FromStr;

use bytes::{BufMut, BytesMut};
use crypto_box::SalsaBox;
use crypto_box::aead::AeadInPlace;

use crate::z85::{self, KeyError};

/// The authenticator in front of each box.
pub(crate) const TAG_BYTES: usize = 16;

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&z85::encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        z85::decode(text).map(Self)
    }
}

/// A secret key; wiped when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretKey(crypto_box::SecretKey);

impl SecretKey {
    /// Creates a key from 32 random bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(crypto_box::SecretKey::from_bytes(bytes))
    }

    /// Returns its public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(*self.0.public_key().as_bytes())
    }

    /// Returns its text form, for who has to store it.
    #[must_use]
    pub fn to_z85(&self) -> String {
        z85::encode(&self.0.to_bytes())
    }

    /// Returns the box between this key and a peer's.
    pub(crate) fn with(&self, peer: &PublicKey) -> Seal {
        Seal(SalsaBox::new(&crypto_box::PublicKey::from_bytes(peer.0), &self.0))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        z85::decode(text).map(Self::from_bytes)
    }
}

/// All the randomness that a connection needs. Never use the same bytes twice.
#[derive(Clone)]
pub struct Entropy {
    /// The key of this connection only.
    pub(crate) short_secret: SecretKey,
    /// The long nonce: WELCOME's, or the vouch's.
    pub(crate) nonce: [u8; 16],
    /// What a server calls its cookie.
    pub(crate) cookie: [u8; Self::COOKIE_BYTES],
}

impl Entropy {
    /// What [`Self::from_bytes`] takes.
    pub const BYTES: usize = 32 + 16 + Self::COOKIE_BYTES;
    pub(crate) const COOKIE_BYTES: usize = 96;

    /// Creates the randomness from random bytes, as good as keys.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (mut short_secret, mut nonce, mut cookie) = ([0; 32], [0; 16], [0; Self::COOKIE_BYTES]);
        short_secret.copy_from_slice(&bytes[..32]);
        nonce.copy_from_slice(&bytes[32..48]);
        cookie.copy_from_slice(&bytes[48..]);
        Self { short_secret: SecretKey::from_bytes(short_secret), nonce, cookie }
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

/// Returns a nonce whose last eight bytes count.
pub(crate) fn counted(prefix: &[u8; 16], count: u64) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(prefix);
    nonce[16..].copy_from_slice(&count.to_be_bytes());
    nonce
}

/// Returns a nonce whose last sixteen bytes are random.
pub(crate) fn random(prefix: &[u8; 8], bytes: &[u8]) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(prefix);
    nonce[8..].copy_from_slice(bytes);
    nonce
}

/// Seals and opens what two keys share.
pub(crate) struct Seal(SalsaBox);

impl Seal {
    /// Appends the box of what `fill` appends.
    pub(crate) fn put(
        &self,
        out: &mut BytesMut,
        nonce: &[u8; 24],
        fill: impl FnOnce(&mut BytesMut),
    ) {
        let at = out.len();
        out.put_bytes(0, TAG_BYTES);
        fill(out);
        let (tag, plain) = out[at..].split_at_mut(TAG_BYTES);
        let made = self.0.encrypt_in_place_detached(nonce.into(), &[], plain);
        tag.copy_from_slice(&made.expect("XSalsa20 takes 2^70 bytes, a message has fewer"));
    }

    /// Opens a box in its place: what was sealed, `None` if it is forged.
    pub(crate) fn open<'a>(&self, nonce: &[u8; 24], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let (tag, plain) = sealed.split_at_mut_checked(TAG_BYTES)?;
        let tag: &[u8] = tag;
        self.0.decrypt_in_place_detached(nonce.into(), &[], plain, tag.into()).ok()?;
        Some(plain)
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

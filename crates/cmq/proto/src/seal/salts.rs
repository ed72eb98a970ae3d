//! Random numbers from the endpoint's seed.

use ring::hmac;

use crate::wire::handshake::SALT_BYTES;

/// Salts and session numbers, no two the same: a keyed hash of a counter, the key being the seed that
/// the endpoint was given. Nobody without the seed can predict the next one.
pub struct Salts {
    key: hmac::Key,
    next: u64,
}

impl Salts {
    /// Creates the salts of `seed`, which must be random, and never be used for another endpoint.
    #[must_use]
    pub fn new(seed: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, seed), next: 0 }
    }

    /// Returns another salt.
    pub fn salt(&mut self) -> [u8; SALT_BYTES] {
        self.bytes(b"salt")
    }

    /// Returns another session number.
    pub fn session(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(b"session"))
    }

    /// Returns another seed, for something that needs one of its own.
    pub fn seed(&mut self) -> [u8; 32] {
        self.bytes(b"seed")
    }

    fn bytes<const N: usize>(&mut self, purpose: &[u8]) -> [u8; N] {
        const { assert!(N <= 32, "a hash has no more") };
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&self.next.to_le_bytes());
        context.update(purpose);
        self.next += 1;
        let hash = context.sign();
        let mut bytes = [0; N];
        bytes.copy_from_slice(&hash.as_ref()[..N]);
        bytes
    }
}

impl core::fmt::Debug for Salts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Salts(..)")
    }
}
